// Memory that driver and referee share, and what the driver keeps of a returned tensor.
#pragma once
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "cuda_side.h"
#include "tensors.h"

namespace fib {

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
  // As `retire` below, for memory of a device: it stays open, and so do its addresses, until the process ends.
  void leave_open() { base = nullptr; }
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

// All of `size` bytes by `move(done, left)`, a system call that may do less. Nothing done is the end of the file, or a
// file that is another one by now: never tried again.
template <typename Move>
bool whole(size_t size, Move move) {
  for (size_t done = 0; done < size;) {
    ssize_t now = move(done, size - done);
    if (now > 0) done += static_cast<size_t>(now);
    else if (now == 0 || errno != EINTR) return false;
  }
  return true;
}

// `size` bytes of a file into a region.
inline bool fill(int fd, const Region& region, uint64_t base, uint64_t size, uint64_t offset) {
  return base + size <= region.bytes && whole(size, [&](size_t done, size_t left) {
    return pread(fd, region.base + base + done, left, static_cast<off_t>(offset + done));
  });
}

}  // namespace fib
