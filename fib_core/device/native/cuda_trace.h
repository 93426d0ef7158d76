// What CUPTI records of a device's work, and sums of it.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <set>
#include <string>

namespace fib_clock {

// Activity kinds and field offsets: the same in the headers of CUPTI 12.8, 13.0, 13.1, 13.3 and 13.5, for the newest
// record of each kind.
constexpr uint32_t kCopy = 1, kSet = 2, kKernel = 10, kPeerCopy = 22;
constexpr size_t kStart = 16, kEnd = 24, kSetValue = 4, kCopyTarget = 6, kKernelName = 104;
// Memory that the host reads: pageable, pinned, managed (of either kind).
constexpr uint8_t kOfHost[] = {1, 2, 5, 7};

struct Record {  // one thing that the device did
  uint32_t kind;
  int64_t start, end;
  bool to_host;
  std::string name;
};

struct Tally {  // what the device did in one span
  int64_t first = INT64_MAX, last = 0, busy_ns = 0;
  int32_t kernels = 0, copies = 0, sets = 0, fetched = 0;
  std::set<std::string> names;
};

template <typename T>
inline T field(const uint8_t* record, size_t offset) {
  T value;
  std::memcpy(&value, record + offset, sizeof value);
  return value;
}

inline void add(const Record& one, Tally* into) {
  into->first = std::min(into->first, one.start);
  into->last = std::max(into->last, one.end);
  into->busy_ns += one.end - one.start;
  (one.kind == kKernel ? into->kernels : one.kind == kSet ? into->sets : into->copies) += 1;
  into->fetched += one.to_host;
  if (!one.name.empty()) into->names.insert(one.name);
}

}  // namespace fib_clock
