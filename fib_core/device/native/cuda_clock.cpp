// Times one call on a CUDA device by three clocks: a pair of events, CUPTI's record of what the device did, the host.
//
// In: a stream, before and after the call. Out: nanoseconds by each clock, launches, a digest of kernel names. Knows
// nothing of tensors, definitions or verdicts, and decides nothing: whoever reads the clocks compares them.
//
// fib_clock_init calls no CUDA function, so that a process which forks may run it; fib_clock_open belongs to the
// process that times. The pointers found lie in a read-only page: nothing redirects them without undoing that first.
#include <sys/random.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "cuda_functions.h"
#include "cuda_trace.h"

namespace {

using namespace fib_clock;

constexpr int64_t kNoCupti = -1, kBlinded = -2, kDropped = -3;
constexpr size_t kBufferBytes = 64 * 1024, kCanaryBytes = 16;

struct State {
  bool traced = false;
  Handle context = nullptr, start = nullptr, stop = nullptr;
  Address canary_at = 0;
  size_t canary_words = 0;
  uint32_t canary = 0;
  int64_t host_start_ns = 0, launch_ns = 0, event_ns = 0;
  std::mutex mutex;  // CUPTI hands buffers over from a thread of its own
  std::vector<uint8_t*> spare;
  std::vector<Record> records;
  int64_t canary_start = 0, canary_end = 0;
  Tally inside, between;
};

State state;

int64_t host_ns() {
  timespec time{};
  table.clock(CLOCK_MONOTONIC_RAW, &time);
  return int64_t{time.tv_sec} * 1000000000 + time.tv_nsec;
}

void give_buffer(uint8_t** buffer, size_t* size, size_t* max_records) {
  std::lock_guard<std::mutex> hold(state.mutex);
  if (state.spare.empty()) state.spare.push_back(static_cast<uint8_t*>(std::aligned_alloc(8, kBufferBytes)));
  *buffer = state.spare.back();
  state.spare.pop_back();
  *size = *buffer == nullptr ? 0 : kBufferBytes;
  *max_records = 0;  // as many as fit
}

void keep(const uint8_t* record) {
  const auto kind = field<uint32_t>(record, 0);
  if (kind != kKernel && kind != kCopy && kind != kPeerCopy && kind != kSet) return;
  const auto start = field<int64_t>(record, kStart), end = field<int64_t>(record, kEnd);
  if (kind == kSet && field<uint32_t>(record, kSetValue) == state.canary && state.canary_end == 0) {
    state.canary_start = start, state.canary_end = end;
    return;
  }
  const bool copy = kind == kCopy || kind == kPeerCopy;
  const bool to_host = copy && std::count(std::begin(kOfHost), std::end(kOfHost), record[kCopyTarget]) != 0;
  const char* name = kind == kKernel ? field<const char*>(record, kKernelName) : nullptr;
  state.records.push_back({kind, start, end, to_host, name != nullptr ? name : ""});
}

void take_buffer(Handle, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  std::lock_guard<std::mutex> hold(state.mutex);
  uint8_t* record = nullptr;
  while (valid > 0 && table.cupti.next(buffer, valid, &record) == 0) keep(record);
  state.spare.push_back(buffer);
}

// Everything that CUPTI knows by now, parted by the fill: the device was idle before it. The device must be idle again.
void collect() {
  table.cupti.flush(0);
  std::lock_guard<std::mutex> hold(state.mutex);
  state.inside = state.between = Tally{};
  for (const Record& one : state.records) {
    const bool before = state.canary_end != 0 && one.end <= state.canary_start;
    add(one, before ? &state.between : &state.inside);
  }
  state.records.clear();
}

uint64_t hash(const std::string& text) {  // FNV-1a
  uint64_t value = 1469598103934665603u;
  for (unsigned char byte : text) value = (value ^ byte) * 1099511628211u;
  return value;
}

bool enable_kinds() {
  const int kinds[] = {kKernel, kCopy, kSet, kPeerCopy};
  return std::all_of(std::begin(kinds), std::end(kinds), [](int kind) { return table.cupti.enable(kind) == 0; });
}

bool start_tracing() {
  return table.has_cupti && table.cupti.register_callbacks(give_buffer, take_buffer) == 0 && enable_kinds();
}

int set_canary(size_t bytes) {
  if (state.canary_at != 0) table.cuda.release(state.canary_at);
  state.canary_at = 0;
  state.canary_words = std::max(bytes, kCanaryBytes) / sizeof(uint32_t);
  return table.cuda.allocate(&state.canary_at, state.canary_words * sizeof(uint32_t));
}

int open_device(int index) {
  int device = 0;
  const Driver& cuda = table.cuda;
  if (int code = cuda.device_get(&device, index)) return code;
  if (int code = cuda.context_retain(&state.context, device)) return code;
  if (int code = cuda.context_set(state.context)) return code;
  if (int code = cuda.event_create(&state.start, 0)) return code;
  if (int code = cuda.event_create(&state.stop, 0)) return code;
  return set_canary(kCanaryBytes);
}

int64_t cupti_span_ns() {
  if (!state.traced) return kNoCupti;
  size_t dropped = 0;
  if (table.cupti.dropped(nullptr, 0, &dropped) == 0 && dropped > 0) return kDropped;
  if (state.canary_end == 0) return kBlinded;
  return state.inside.last == 0 ? 0 : state.inside.last - state.inside.first;
}

// The first event stands behind the fill, the second where the call returned.
int64_t idle_ns() {
  if (state.canary_end == 0 || state.inside.last == 0) return 0;
  return std::max<int64_t>(state.event_ns - (state.inside.last - state.canary_end), 0);
}

}  // namespace

#define FIB_EXPORT extern "C" __attribute__((visibility("default")))

// Finds every function once; calls none of the driver's. 0: all there; 1: no CUPTI (`error` says why); -1: no driver.
FIB_EXPORT int fib_clock_init(const char* cupti_path, char* error, size_t size) {
  return fill_table(cupti_path, error, size);
}

// Starts tracing and makes the primary context current, after a fork and before code under test.
// 0: ready; 1: ready without CUPTI; -1: the driver refused (`error` holds its code).
FIB_EXPORT int fib_clock_open(int device, char* error, size_t size) {
  if (table.clock == nullptr) return say(error, size, -1, "fib_clock_init did not find a driver");
  int code = table.cuda.init(0);
  state.traced = code == 0 && start_tracing();
  if (code == 0) code = open_device(device);
  if (code != 0) return say(error, size, -1, "CUDA driver: CUresult ", std::to_string(code).c_str());
  if (!state.traced) return say(error, size, 1, "CUPTI: tracing is not on");
  return say(error, size, 0, "");
}

// How much memory the fill before every timed call writes; 0: a few words. Twice the L2 cache leaves no input there and
// keeps the device busy while the host launches, so that the events do not measure the host. Answers a CUresult.
FIB_EXPORT int fib_clock_flush(size_t bytes) {
  if (int code = table.cuda.context_set(state.context)) return code;
  return set_canary(bytes);
}

// Waits for the whole context, fills, then marks the start on `stream`. Answers a CUresult.
FIB_EXPORT int fib_clock_begin(void* stream) {
  const Driver& cuda = table.cuda;
  if (int code = cuda.context_set(state.context)) return code;
  if (int code = cuda.synchronize()) return code;
  if (state.traced) enable_kinds();  // in case somebody switched one off
  state.canary_start = state.canary_end = 0;
  // The fill's value is secret and must be in the trace at the end: otherwise somebody took the trace away.
  if (getrandom(&state.canary, sizeof state.canary, 0) != sizeof state.canary) return -1;
  state.host_start_ns = host_ns();
  if (int code = cuda.fill(state.canary_at, state.canary, state.canary_words, stream)) return code;
  return cuda.event_record(state.start, stream);
}

// Marks the end on `stream`, then waits for the whole context, other streams included. Answers a CUresult.
// `host_ns`: from before the fill to after the wait.
// `cupti_ns`: first start to last end; -1 there is no CUPTI, -2 the trace was taken away, -3 records were dropped.
FIB_EXPORT int fib_clock_end(void* stream, int64_t* event_ns, int64_t* cupti_ns, int64_t* host_ns_out,
                             int32_t* kernels) {
  const Driver& cuda = table.cuda;
  state.launch_ns = host_ns() - state.host_start_ns;
  if (int code = cuda.context_set(state.context)) return code;
  if (int code = cuda.event_record(state.stop, stream)) return code;
  if (int code = cuda.synchronize()) return code;
  *host_ns_out = host_ns() - state.host_start_ns;
  float elapsed_ms = 0;
  if (int code = cuda.event_elapsed_ms(&elapsed_ms, state.start, state.stop)) return code;
  *event_ns = state.event_ns = static_cast<int64_t>(static_cast<double>(elapsed_ms) * 1e6);
  if (state.traced) collect();
  *cupti_ns = cupti_span_ns();
  *kernels = state.traced ? state.inside.kernels : -1;
  return 0;
}

// More of the last timed call (`between` = 0) or of what ran since the call before it (1). `facts`: summed time of what
// ran, time of the fill, host time from before the fill until the call returned (the events measure the device alone
// where this is less than the fill's), kernels, copies, fills, and whether one of these began before the fill ended (was
// not ordered after what came before the call), copies to the host, and how long the device had nothing to do at the end
// of the call. Times are in ns. `digest` is of the set of kernel names, in any order; `names` gets them, a line each, as
// far as they fit.
FIB_EXPORT int fib_clock_details(int between, int64_t facts[9], uint64_t* digest, char* names, size_t size) {
  if (!state.traced) return 1;
  const Tally& tally = between ? state.between : state.inside;
  const int64_t fill_ns = between ? 0 : state.canary_end - state.canary_start;
  const int64_t found[] = {tally.busy_ns, fill_ns, between ? 0 : state.launch_ns, tally.kernels, tally.copies, tally.sets,
                           tally.first < state.canary_end, tally.fetched, between ? 0 : idle_ns()};
  std::copy(std::begin(found), std::end(found), facts);
  *digest = 0;
  std::string lines;
  for (const std::string& name : tally.names) *digest += hash(name), lines += name + '\n';
  return say(names, size, 0, lines.c_str());
}

// Waits for the whole context. Answers a CUresult.
FIB_EXPORT int fib_clock_sync() {
  if (int code = table.cuda.context_set(state.context)) return code;
  return table.cuda.synchronize();
}
