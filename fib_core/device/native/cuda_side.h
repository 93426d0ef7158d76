// What the driver needs of a CUDA device: memory of another process, copies, and the clock library beside it. Found by
// name at run time, before any candidate code, so that the driver builds and loads where there is no CUDA.
#pragma once
#include <dlfcn.h>

#include <cstdint>
#include <cstring>

namespace fib {

struct IpcHandle { char bytes[64]; };

struct CudaSide {
  int (*open)(unsigned long long* address, IpcHandle handle, unsigned int flags) = nullptr;
  int (*close)(unsigned long long address) = nullptr;
  int (*copy)(unsigned long long target, unsigned long long source, size_t bytes) = nullptr;
  int (*begin)(void* stream) = nullptr;
  int (*end)(void* stream, int64_t* event_ns, int64_t* cupti_ns, int64_t* host_ns, int32_t* kernels) = nullptr;
  int (*details)(int between, int64_t facts[9], uint64_t* digest, char* names, size_t size) = nullptr;
  int (*sync)() = nullptr;
  int index = -1;

  // `clock`: path of the clock library, opened and started already in this process.
  bool find(const char* clock, int device) {
    void* cuda = dlopen("libcuda.so.1", RTLD_NOW);
    void* clocks = dlopen(clock, RTLD_NOW);
    if (cuda == nullptr || clocks == nullptr) return false;
    bool all = take(cuda, "cuIpcOpenMemHandle_v2", &open) && take(cuda, "cuIpcCloseMemHandle", &close) &&
               take(cuda, "cuMemcpyDtoD_v2", &copy) && take(clocks, "fib_clock_begin", &begin) &&
               take(clocks, "fib_clock_end", &end) && take(clocks, "fib_clock_details", &details) &&
               take(clocks, "fib_clock_sync", &sync);
    if (all) index = device;
    return all;
  }
  bool used() const { return index >= 0; }

 private:
  template <typename Function>
  static bool take(void* library, const char* name, Function* into) {
    *into = reinterpret_cast<Function>(dlsym(library, name));
    return *into != nullptr;
  }
};

}  // namespace fib
