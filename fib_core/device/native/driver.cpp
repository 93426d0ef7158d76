// The driver: calls and times a candidate's entry point, and hands every output over before the next inputs exist.
//
// Lives in the candidate's process, loaded and wired before any candidate code. Everything it calls was captured then:
// libc through a read-only table, torch through objects that it holds. It reads the key of its channel itself, so no
// Python code ever sees it. It judges nothing: facts and bytes go to the referee.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "cuda_side.h"
#include "digest.h"
#include "siphash.h"
#include "tensors.h"

namespace fib {
namespace {

struct Region {
  char* base = nullptr;
  size_t bytes = 0;
  void open(const CudaSide& cuda, const char* handle, size_t size) {
    close(cuda);
    IpcHandle given;
    std::memcpy(&given, handle, sizeof given);
    unsigned long long address = 0;
    base = cuda.open(&address, given, 1) == 0 ? reinterpret_cast<char*>(address) : nullptr;
    bytes = base != nullptr ? size : 0;
  }
  void close(const CudaSide& cuda) {
    if (base != nullptr) cuda.close(reinterpret_cast<unsigned long long>(base));
    base = nullptr;
  }
  // As `retire` below, for memory of a device.
  void retire(const CudaSide& cuda) {
    constexpr size_t kGrain = size_t{2} << 20;
    unsigned long long address = reinterpret_cast<unsigned long long>(base), kept = 0;
    bool known = base != nullptr;
    close(cuda);
    if (known && cuda.reserve != nullptr) cuda.reserve(&kept, (bytes + kGrain - 1) / kGrain * kGrain, 0, address, 0);
  }
  void map(int fd, size_t size) {
    unmap();
    void* place = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    base = place == MAP_FAILED ? nullptr : static_cast<char*>(place);
    bytes = base != nullptr ? size : 0;
  }
  void unmap() {
    if (base != nullptr) munmap(base, bytes);
    base = nullptr;
  }
  // Gives the memory back but never the addresses: what a candidate keeps by the address of a static input can then
  // not be mistaken for another workload's.
  void retire() {
    if (base != nullptr)
      mmap(base, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    base = nullptr;
  }
  bool meets(const char* data, size_t size) const {
    return size != 0 && base != nullptr && data < base + bytes && base < data + size;
  }
};

// A returned tensor that is looked at again before the next call: does it still hold what was copied from it?
struct Held {
  Facts facts;
  char* copy;
  size_t bytes;
};

// Long enough for the referee to put small inputs in place; bounded, since it is CPU time that nobody's call used.
constexpr int64_t kSpinNs = 200000;

// From the first byte of the inputs to the last of the outputs nobody else should run on this core. Who did for longer
// than reading clocks takes may have worked on them: that time is part of the call.
constexpr int64_t kDisplacedNs = 2000;

int64_t clock_ns(clockid_t clock) {
  timespec time;
  clock_gettime(clock, &time);
  return time.tv_sec * 1000000000LL + time.tv_nsec;
}

int64_t now_ns() { return clock_ns(CLOCK_MONOTONIC); }

int64_t thread_ns() { return clock_ns(CLOCK_THREAD_CPUTIME_ID); }

// `size` bytes of a file into a region.
bool fill(int fd, const Region& region, uint64_t base, uint64_t size, uint64_t offset) {
  if (base + size > region.bytes) return false;
  while (size > 0) {
    ssize_t got = pread(fd, region.base + base, size, static_cast<off_t>(offset));
    if (got <= 0 && errno != EINTR) return false;
    if (got <= 0) continue;
    base += static_cast<uint64_t>(got);
    offset += static_cast<uint64_t>(got);
    size -= static_cast<uint64_t>(got);
  }
  return true;
}

class Driver;

// Time in which the driver copies by itself and nothing of the candidate's can run on this thread.
class Aside {
 public:
  explicit Aside(Driver& driver) : driver_(driver), from_ns_(now_ns()), used_ns_(thread_ns()) {}
  ~Aside();
  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;

 private:
  Driver& driver_;
  int64_t from_ns_, used_ns_;
};

class Driver {
 public:
  Driver(int fd, PyObject* captured) : fd_(fd) {
    auto item = [captured](int index) { return Ref::share(PyTuple_GetItem(captured, index)).release(); };
    torch_ = {item(0), item(1), item(2), item(3), item(4), item(5), item(6), item(7), item(8)};
    seeds_ = item(9);
    describe_ = item(10);
    function_modes_ = item(11);
    dispatch_modes_ = item(12);
    join(fd);
  }
  bool ready() const { return ready_; }
  // Another referee's channel, with a key of its own; what was captured stays as it was before any candidate code.
  bool join(int fd) {
    if (fd != fd_) close(fd_);
    fd_ = fd;
    sent_ = 0;
    ready_ = recv(fd_, key_, sizeof key_, MSG_WAITALL) == sizeof key_;
    return ready_;
  }
  int serve(PyObject* entry);
  void count_aside(int64_t wall_ns, int64_t cpu_ns) {
    aside_ns_ += wall_ns;
    own_ns_ += cpu_ns;
  }
  bool use_cuda(const char* clock, int device) { return cuda_.find(clock, device); }

 private:
  bool set_up(const char* message, size_t size, const int fds[3]);
  void go(PyObject* entry, const Go& order);
  void leave();
  bool changed(const std::vector<Held>& held) const;
  uint64_t writable_digest(const char* block);
  bool take_over(const char* source, char* target, size_t bytes);
  bool begin() const { return !cuda_.used() || cuda_.begin(nullptr) == 0; }
  bool end(Done& done) const;
  void copy(char* target, const char* source, size_t bytes) const;
  DLDevice device() const { return cuda_.used() ? DLDevice{kDLCUDA, cuda_.index} : DLDevice{kDLCPU, 0}; }
  bool put_in_place(const Go& order);
  void drop_file() {
    if (output_fd_ >= 0) close(output_fd_);
    output_fd_ = -1;
  }
  bool modes_active() const;
  Ref arguments(const Go& order, char* block) const;
  Ref make(const Tensor& spec, char* block) const;
  bool call(PyObject* entry, const Go& order, uint32_t number, Done& done, std::vector<char>& payload);
  bool take(PyObject* returned, char* block, Done& done);
  Problem look(const std::vector<PyObject*>& found, std::vector<Held>& held, char* block, Done& done);
  void describe_exception(std::vector<char>& payload) const;
  bool send_done(Done& done, const std::vector<char>& payload);
  ssize_t receive(char* buffer, size_t size, int fds[3]) const;

  int fd_;
  bool ready_ = false;
  uint8_t key_[16];
  uint64_t sent_ = 0;
  int64_t spin_until_ = 0, spin_from_ = 0, ordered_ = 0, own_ns_ = 0, displaced_ns_ = 0;
  int staged_ = -1, output_fd_ = -1;
  int64_t aside_ns_ = 0;
  std::vector<char> piece_ = std::vector<char>(kPieceBytes);
  CudaSide cuda_;
  Torch torch_;
  PyObject *seeds_, *describe_, *function_modes_, *dispatch_modes_;
  Region static_, fresh_, output_;
  std::vector<Tensor> arguments_, outputs_;
  std::vector<Held> held_;
};

Aside::~Aside() { driver_.count_aside(now_ns() - from_ns_, thread_ns() - used_ns_); }

ssize_t Driver::receive(char* buffer, size_t size, int fds[3]) const {
  iovec part{buffer, size};
  alignas(cmsghdr) char control[CMSG_SPACE(3 * sizeof(int))];
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  ssize_t got;
  do {
    bool spin = now_ns() < spin_until_;
    got = recvmsg(fd_, &header, MSG_CMSG_CLOEXEC | (spin ? MSG_DONTWAIT : 0));
  } while (got < 0 && (errno == EINTR || errno == EAGAIN));
  cmsghdr* first = CMSG_FIRSTHDR(&header);
  if (got > 0 && first != nullptr && first->cmsg_type == SCM_RIGHTS)
    std::memcpy(fds, CMSG_DATA(first), first->cmsg_len - CMSG_LEN(0));
  return got;
}

int Driver::serve(PyObject* entry) {
  std::vector<char> buffer(sizeof(Setup) + kMaxTensors * sizeof(Tensor));
  while (true) {
    int fds[3] = {-1, -1, -1};
    ssize_t got = receive(buffer.data(), buffer.size(), fds);
    uint32_t type = 0;
    if (got >= static_cast<ssize_t>(sizeof type)) std::memcpy(&type, buffer.data(), sizeof type);
    bool well = false;
    if (type == kSetup) well = set_up(buffer.data(), static_cast<size_t>(got), fds);
    if (type == kGo && got == sizeof(Go)) {
      Go order;
      ordered_ = now_ns();
      own_ns_ = spin_until_ != 0 ? thread_ns() - spin_from_ : 0;
      staged_ = fds[0];
      std::memcpy(&order, buffer.data(), sizeof order);
      go(entry, order);
      well = true;
    }
    for (int fd : fds)
      if (fd >= 0) close(fd);
    if (well) continue;
    if (type == kEnd) {
      Done done{};
      done.type = kDone;
      done.changed = changed(held_);
      held_.clear();
      send_done(done, {});
    }
    leave();
    return type == kEnd ? 0 : -1;
  }
}

void Driver::leave() {
  held_.clear();
  if (cuda_.used()) {
    cuda_.sync();
    static_.retire(cuda_);
    fresh_.close(cuda_);
    output_.close(cuda_);
    return;
  }
  drop_file();
  static_.retire();
  fresh_.unmap();
  output_.unmap();
}

bool Driver::set_up(const char* message, size_t size, const int fds[3]) {
  Setup setup;
  if (size < sizeof setup) return false;
  std::memcpy(&setup, message, sizeof setup);
  size_t tensors = static_cast<size_t>(setup.arguments) + setup.outputs;
  if (setup.version != kVersion || tensors > kMaxTensors || size != sizeof setup + tensors * sizeof(Tensor))
    return false;
  arguments_.resize(setup.arguments);
  outputs_.resize(setup.outputs);
  const char* from = message + sizeof setup;
  std::memcpy(arguments_.data(), from, setup.arguments * sizeof(Tensor));
  std::memcpy(outputs_.data(), from + setup.arguments * sizeof(Tensor), setup.outputs * sizeof(Tensor));
  held_.clear();
  Region* regions[] = {&static_, &fresh_, &output_};
  const size_t sizes[] = {setup.static_bytes, setup.fresh_bytes, setup.output_bytes};
  for (int i = 0; i < 3; ++i)
    cuda_.used() ? regions[i]->open(cuda_, setup.handles + i * sizeof(IpcHandle), sizes[i])
                 : regions[i]->map(fds[i], sizes[i]);
  if (!cuda_.used()) {
    drop_file();
    output_fd_ = fcntl(fds[2], F_DUPFD_CLOEXEC, 0);
  }
  return static_.base != nullptr && fresh_.base != nullptr && output_.base != nullptr;
}

// On the host the driver compares by itself; on a device it copies again, and the referee compares.
bool Driver::changed(const std::vector<Held>& held) const {
  bool found = false;
  for (const Held& one : held) {
    if (cuda_.used()) copy(one.copy, one.facts.data(), one.bytes);
    else found |= std::memcmp(one.facts.data(), one.copy, one.bytes) != 0;
  }
  return found;
}

// Of the outputs that lie in memory which the candidate was given. Read from the file, past the candidate's mappings: a
// page of those could compute when it is read.
uint64_t Driver::writable_digest(const char* block) {
  Aside aside(*this);
  uint64_t value = 0;
  for (const Tensor& spec : outputs_) {
    if (spec.place == kReturned) continue;
    for (uint64_t at = 0; at < spec.bytes; at += kPieceBytes) {
      size_t size = spec.bytes - at < kPieceBytes ? spec.bytes - at : kPieceBytes;
      off_t place = static_cast<off_t>(block - output_.base + spec.offset + at);
      if (pread(output_fd_, piece_.data(), size, place) != static_cast<ssize_t>(size)) return ~value;
      value = digest_of(piece_.data(), size, value);
    }
  }
  return value;
}

// A returned output into the shared block. By a system call, as above; false if the memory cannot be read.
bool Driver::take_over(const char* source, char* target, size_t bytes) {
  Aside aside(*this);
  if (cuda_.used()) {
    copy(target, source, bytes);
    return true;
  }
  for (size_t at = 0; at < bytes;) {
    ssize_t done = pwrite(output_fd_, source + at, bytes - at, static_cast<off_t>(target - output_.base + at));
    if (done <= 0 && errno != EINTR) return false;
    if (done > 0) at += static_cast<size_t>(done);
  }
  return true;
}

void Driver::copy(char* target, const char* source, size_t bytes) const {
  if (!cuda_.used()) std::memcpy(target, source, bytes);
  else if (bytes != 0)
    cuda_.copy(reinterpret_cast<unsigned long long>(target), reinterpret_cast<unsigned long long>(source), bytes);
}

bool Driver::end(Done& done) const {
  if (!cuda_.used()) return true;
  int64_t event_ns = 0, cupti_ns = 0, host_ns = 0, facts[7] = {};
  int32_t kernels = 0;
  uint64_t digest = 0;
  if (cuda_.end(nullptr, &event_ns, &cupti_ns, &host_ns, &kernels) != 0) return false;
  done.event_ns += event_ns;
  done.cupti_ns = cupti_ns < 0 ? cupti_ns : done.cupti_ns + cupti_ns;
  done.kernels += kernels;
  if (cuda_.details(1, facts, &digest, nullptr, 0) == 0) done.stray_kernels += static_cast<int32_t>(facts[3]);
  return true;
}

// Contents that are not there before everything else is ready: no thread of the candidate can begin with them early. A
// file, since nothing that the candidate does to its mappings can run its code here; and it leaves them in the caches of
// the core that will call, wherever the referee's is.
bool Driver::put_in_place(const Go& order) {
  displaced_ns_ = 0;
  if (order.fresh_bytes + order.output_bytes == 0) return true;
  int64_t used = thread_ns();
  ordered_ = now_ns();
  bool well = fill(staged_, fresh_, order.fresh_base, order.fresh_bytes, 0) &&
              fill(staged_, output_, order.output_base, order.output_bytes, order.fresh_bytes);
  used = thread_ns() - used;
  own_ns_ += used;
  int64_t displaced = now_ns() - ordered_ - used;
  displaced_ns_ = displaced > kDisplacedNs ? displaced : 0;
  return well;
}

bool Driver::modes_active() const {
  for (PyObject* length : {function_modes_, dispatch_modes_}) {
    Ref depth(PyObject_CallFunctionObjArgs(length, nullptr));
    if (!depth || PyLong_AsLongLong(depth.get()) != 0) return true;
  }
  return false;
}

Ref Driver::make(const Tensor& spec, char* block) const {
  long long whole;
  double real;
  std::memcpy(&whole, &spec.offset, sizeof whole);
  std::memcpy(&real, &spec.offset, sizeof real);
  switch (spec.place) {
    case kInteger: return Ref(PyLong_FromLongLong(whole));
    case kFloat: return Ref(PyFloat_FromDouble(real));
    case kBoolean: return Ref(PyBool_FromLong(whole != 0));
    default: return tensor_over(torch_, spec, block, device());
  }
}

Ref Driver::arguments(const Go& order, char* block) const {
  std::vector<const Tensor*> wanted;
  for (const Tensor& spec : arguments_) wanted.push_back(&spec);
  for (const Tensor& spec : outputs_)
    if (spec.place == kBuffer) wanted.push_back(&spec);
  Ref tuple(PyTuple_New(static_cast<std::ptrdiff_t>(wanted.size())));
  for (size_t i = 0; i < wanted.size(); ++i) {
    bool own = i >= arguments_.size() || wanted[i]->place == kOutput;
    char* base = own ? block : wanted[i]->place == kStatic ? static_.base : fresh_.base + order.fresh_base;
    Ref value = make(*wanted[i], base);
    if (!value) return Ref();
    PyTuple_SetItem(tuple.get(), static_cast<std::ptrdiff_t>(i), value.release());
  }
  return tuple;
}

void Driver::go(PyObject* entry, const Go& order) {
  Done done{};
  std::vector<char> payload;
  done.type = kDone;
  done.call = order.call;
  done.changed = changed(held_);
  // What was returned before is held until this call is over: who hands out one buffer twice is seen.
  std::vector<Held> before = std::move(held_);
  held_.clear();
  int64_t stop = now_ns() + static_cast<int64_t>(order.soft_ns);
  if (modes_active()) {
    done.result = kModeActive;
  } else {
    while (done.made < order.count && call(entry, order, done.made, done, payload)) {
      ++done.made;
      if (now_ns() >= stop) break;
    }
  }
  if (changed(before)) done.changed = 1;
  if (order.prime != 0) {
    held_ = std::move(before);
    if (done.result == kOk) done.result = kSkipped;
    done.stray_kernels = 0;
  }
  done.own_ns = static_cast<uint64_t>(own_ns_);
  send_done(done, payload);
  // The order that follows a priming comes at once: stay awake for it, with warm caches.
  spin_until_ = order.prime != 0 ? now_ns() + kSpinNs : 0;
  spin_from_ = order.prime != 0 ? thread_ns() : 0;
}

bool Driver::call(PyObject* entry, const Go& order, uint32_t number, Done& done, std::vector<char>& payload) {
  char* block = output_.base + order.output_base + number * order.output_stride;
  held_.clear();
  Ref arguments = this->arguments(order, block);
  // An odd multiplier spreads consecutive calls over all seeds.
  Ref seed(PyLong_FromUnsignedLongLong((order.seed + 0x9E3779B97F4A7C15ULL * number) >> 1));
  bool seeded = true;
  for (std::ptrdiff_t i = 0; i < PyTuple_Size(seeds_); ++i)
    seeded = Ref(PyObject_CallFunctionObjArgs(PyTuple_GetItem(seeds_, i), seed.get(), nullptr)) && seeded;
  if (!arguments || !seeded) {
    done.result = kBroken;
    describe_exception(payload);
    return false;
  }
  if (!put_in_place(order)) {
    constexpr char kWhy[] = R"({"rule": "exception", "message": "the memory of the inputs cannot be written", "log": ""})";
    done.result = kBroken;
    payload.assign(kWhy, kWhy + sizeof kWhy - 1);
    return false;
  }
  aside_ns_ = 0;
  bool timed = begin();
  int64_t start = now_ns();
  Ref returned(PyObject_Call(entry, arguments.get(), nullptr));
  arguments.reset(nullptr);  // whatever hangs on the life of an argument happens inside the call's time
  int64_t stop = now_ns(), used = thread_ns();
  timed = end(done) && timed;
  done.head_ns = static_cast<uint64_t>(start - ordered_);
  if (!timed) {
    done.result = kBroken;
    return false;
  }
  if (!returned) {
    done.result = kRaised;
    describe_exception(payload);
    return false;
  }
  done.elapsed_ns += static_cast<uint64_t>(stop - start + displaced_ns_);
  if (order.prime != 0) return true;
  if (!take(returned.get(), block, done)) {
    done.result = kProblem;
    PyErr_Clear();
    return false;
  }
  returned.reset(nullptr);
  if (!cuda_.used()) done.digest = writable_digest(block);
  int64_t tail = now_ns() - stop, displaced = tail - (thread_ns() - used);
  if (!cuda_.used() && displaced > kDisplacedNs) done.elapsed_ns += static_cast<uint64_t>(displaced);
  done.tail_ns = static_cast<uint64_t>(tail - aside_ns_);
  return true;
}

// Names the results and copies them at once, before anything of the candidate's can run again.
bool Driver::take(PyObject* returned, char* block, Done& done) {
  size_t wanted = 0;
  for (const Tensor& spec : outputs_) wanted += spec.place == kReturned;
  if (wanted == 0) return true;
  // Named tuples too: their items are read from their storage, past whatever methods they have.
  bool is_tuple = is_a(returned, torch_.tuple_type), is_list = is_a(returned, torch_.list_type);
  std::vector<PyObject*> found;
  if (is_tuple)
    for (std::ptrdiff_t i = 0; i < PyTuple_Size(returned); ++i) found.push_back(PyTuple_GetItem(returned, i));
  if (is_list)
    for (std::ptrdiff_t i = 0; i < PyList_Size(returned); ++i) found.push_back(PyList_GetItem(returned, i));
  if (!is_tuple && !is_list) found.push_back(returned);
  if (found.size() != wanted) {
    done.problem = kCount;
    std::snprintf(done.detail, sizeof done.detail, "%zu values returned, %zu expected", found.size(), wanted);
    return false;
  }
  done.problem = look(found, held_, block, done);
  return done.problem == kNone;
}

Problem Driver::look(const std::vector<PyObject*>& found, std::vector<Held>& held, char* block, Done& done) {
  std::vector<uint32_t> names;
  for (uint32_t i = 0; i < outputs_.size(); ++i)
    if (outputs_[i].place == kReturned) names.push_back(i);
  auto fail = [&](size_t i, Problem problem) {
    done.output = names[i];
    return problem;
  };
  std::vector<PyObject*> dtypes;
  for (size_t i = 0; i < found.size(); ++i)
    if (!is_exactly(found[i], torch_.tensor_type)) {
      bool derived = is_a(found[i], torch_.tensor_type);
      std::snprintf(done.detail, sizeof done.detail, derived ? "not exactly a torch.Tensor" : "not a torch.Tensor");
      return fail(i, derived ? kTensorType : kNoTensor);
    }
  std::vector<Facts> facts(found.size());
  std::vector<bool> right_dtype;
  for (size_t i = 0; i < found.size(); ++i) {
    const Tensor& wanted = outputs_[names[i]];
    Ref dtype(PyObject_CallFunctionObjArgs(torch_.dtype_of, found[i], nullptr));
    right_dtype.push_back(dtype.get() == PyTuple_GetItem(torch_.dtypes, wanted.dtype));
    bool as_bytes = right_dtype[i] && wanted.dtype >= kPlainDtypes;
    if (!facts[i].read(torch_, found[i], as_bytes) || facts[i].tensor().device.type != device().type) {
      std::snprintf(done.detail, sizeof done.detail, "not a plain strided tensor on the device of the inputs");
      return fail(i, kLayout);
    }
  }
  for (size_t i = 0; i < found.size(); ++i)
    if (!same_shape(facts[i].tensor(), outputs_[names[i]])) {
      char got[96], expected[96];
      print_shape(got, sizeof got, facts[i].tensor().shape, facts[i].tensor().ndim);
      print_shape(expected, sizeof expected, outputs_[names[i]].shape, static_cast<int>(outputs_[names[i]].ndim));
      std::snprintf(done.detail, sizeof done.detail, "shape %s, expected %s", got, expected);
      return fail(i, kShape);
    }
  for (size_t i = 0; i < found.size(); ++i)
    if (!right_dtype[i]) {
      DLDataType type = facts[i].tensor().dtype;
      std::snprintf(done.detail, sizeof done.detail, "another element type (DLPack code %d, %d bits)", type.code, type.bits);
      return fail(i, kDtype);
    }
  for (size_t i = 0; i < found.size(); ++i) {
    const char* data = facts[i].data();
    size_t bytes = outputs_[names[i]].bytes;
    if (static_.meets(data, bytes) || fresh_.meets(data, bytes) || output_.meets(data, bytes)) {
      std::snprintf(done.detail, sizeof done.detail, "shares memory with an input");
      return fail(i, kInputAlias);
    }
    if (!is_dense(facts[i].tensor())) {
      std::snprintf(done.detail, sizeof done.detail, "not contiguous: the caller would have to copy it");
      return fail(i, kStrides);
    }
  }
  for (size_t i = 0; i < found.size(); ++i) {
    char* copy = block + outputs_[names[i]].offset;
    size_t bytes = outputs_[names[i]].bytes;
    if (!take_over(facts[i].data(), copy, bytes)) {
      std::snprintf(done.detail, sizeof done.detail, "its memory cannot be read");
      return fail(i, kUnreadable);
    }
    held.push_back({std::move(facts[i]), copy, bytes});
  }
  return kNone;
}

void Driver::describe_exception(std::vector<char>& payload) const {
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  Ref kind(type), error(value), trace(traceback);
  if (!error) return;
  if (trace) PyException_SetTraceback(error.get(), trace.get());
  Ref text(PyObject_CallFunctionObjArgs(describe_, error.get(), nullptr));
  char* data = nullptr;
  std::ptrdiff_t size = 0;
  if (text && PyBytes_AsStringAndSize(text.get(), &data, &size) == 0)
    payload.assign(data, data + (size < static_cast<std::ptrdiff_t>(kPayloadBytes) ? size : kPayloadBytes));
  PyErr_Clear();
}

bool Driver::send_done(Done& done, const std::vector<char>& payload) {
  done.payload = static_cast<uint32_t>(payload.size());
  // The count of messages is tagged too: an old answer cannot be sent again.
  std::vector<char> body(sizeof done + payload.size() + sizeof sent_);
  std::memcpy(body.data(), &done, sizeof done);
  if (!payload.empty()) std::memcpy(body.data() + sizeof done, payload.data(), payload.size());
  std::memcpy(body.data() + sizeof done + payload.size(), &sent_, sizeof sent_);
  ++sent_;
  uint64_t tag = siphash(key_, reinterpret_cast<uint8_t*>(body.data()), body.size());
  std::memcpy(body.data() + body.size() - sizeof tag, &tag, sizeof tag);
  return send(fd_, body.data(), body.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(body.size());
}

}  // namespace
}  // namespace fib

#define FIB_EXPORT extern "C" __attribute__((visibility("default")))

// A driver on this socket, with the captured objects (see driver.py for their order); null if the key does not come.
FIB_EXPORT void* fib_driver_open(int fd, PyObject* captured) {
  auto* driver = new fib::Driver(fd, captured);
  if (driver->ready()) return driver;
  delete driver;
  return nullptr;
}

// Measure on a CUDA device from now on, by the clock library at this path (opened in this process); 0 if all is there.
FIB_EXPORT int fib_driver_use_cuda(void* driver, const char* clock, int device) {
  return static_cast<fib::Driver*>(driver)->use_cuda(clock, device) ? 0 : -1;
}

// Serve another referee from now on; 0 if its key came.
FIB_EXPORT int fib_driver_join(void* driver, int fd) { return static_cast<fib::Driver*>(driver)->join(fd) ? 0 : -1; }

// Serve one workload: 0 after an orderly end, -1 if the referee is gone or talks nonsense.
FIB_EXPORT int fib_driver_serve(void* driver, PyObject* entry) { return static_cast<fib::Driver*>(driver)->serve(entry); }

// The digest that an answer carries, continued from `value`.
FIB_EXPORT uint64_t fib_digest(const char* data, size_t size, uint64_t value) {
  return fib::digest_in_pieces(data, size, value);
}

// The tag of a message, for the referee's side.
FIB_EXPORT uint64_t fib_tag(const uint8_t* key, const uint8_t* data, size_t size) { return fib::siphash(key, data, size); }
