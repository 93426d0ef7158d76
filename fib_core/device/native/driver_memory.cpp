// Bytes in and out of the shared memory, past whatever the candidate did to its own mappings of it.
#include "driver.h"

namespace fib {

Aside::~Aside() { driver_.count_aside(now_ns() - from_ns_, thread_ns() - used_ns_); }

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
    copy_on_device(target, source, bytes);
    return true;
  }
  return whole(bytes, [&](size_t done, size_t left) {
    return pwrite(output_fd_, source + done, left, static_cast<off_t>(target - output_.base + done));
  });
}

// On the host the driver compares by itself; on a device it copies again, and the referee compares.
bool Driver::changed(const std::vector<Held>& held) const {
  bool found = false;
  for (const Held& one : held) {
    if (cuda_.used()) copy_on_device(one.copy, one.facts.data(), one.bytes);
    else found |= std::memcmp(one.facts.data(), one.copy, one.bytes) != 0;
  }
  return found;
}

void Driver::copy_on_device(char* target, const char* source, size_t bytes) const {
  if (bytes != 0)
    cuda_.copy(reinterpret_cast<unsigned long long>(target), reinterpret_cast<unsigned long long>(source), bytes);
}

}  // namespace fib
