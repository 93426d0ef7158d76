// The CUDA driver's and CUPTI's functions that the clock needs, found once, before code under test is loaded.
//
// In: where CUPTI lies. Out: a table of pointers that is read-only from then on. Calls no function of the driver, so
// that a process which forks may fill it. Prototypes are declared by hand: no CUDA header is needed to compile this.
#pragma once

#include <dlfcn.h>
#include <sys/mman.h>
#include <time.h>

#include <cstdint>
#include <cstdio>
#include <string>

namespace fib_clock {

using Handle = void*;                // CUcontext, CUevent, CUstream
using Address = unsigned long long;  // CUdeviceptr
using Give = void (*)(uint8_t**, size_t*, size_t*);
using Take = void (*)(Handle, uint32_t, uint8_t*, size_t, size_t);

struct Driver {  // every function answers a CUresult: 0 is success
  int (*init)(unsigned);
  int (*device_get)(int*, int);
  int (*context_retain)(Handle*, int);
  int (*context_set)(Handle);
  int (*synchronize)();
  int (*event_create)(Handle*, unsigned);
  int (*event_record)(Handle, Handle);
  int (*event_elapsed_ms)(float*, Handle, Handle);
  int (*allocate)(Address*, size_t);
  int (*release)(Address);
  int (*fill)(Address, unsigned, size_t, Handle);
};

struct Cupti {  // every function answers a CUptiResult: 0 is success
  int (*version)(uint32_t*);
  int (*register_callbacks)(Give, Take);
  int (*enable)(int);
  int (*flush)(uint32_t);
  int (*next)(uint8_t*, size_t, uint8_t**);
  int (*dropped)(Handle, uint32_t, size_t*);
};

struct alignas(4096) Table {
  uint64_t mark = 0x666962636c6f636bu;  // not zero: the page comes from the file, so that its mapping has a name
  Driver cuda{};
  Cupti cupti{};
  int (*clock)(clockid_t, timespec*) = nullptr;
  bool has_cupti = false;
};

// CUPTI API versions whose records the clock can read (12.8; 13.0 to 13.5).
constexpr uint32_t kOnly12 = 26, kOldest13 = 130000, kNewest13 = 130500;

static Table table;

inline int say(char* error, size_t size, int code, const char* text, const char* detail = "") {
  if (error != nullptr && size > 0) std::snprintf(error, size, "%s%s", text, detail);
  return code;
}

template <typename F>
inline bool find(void* library, const char* name, F* into) {
  *into = reinterpret_cast<F>(dlsym(library, name));
  return *into != nullptr;
}

inline bool find_driver(void* library, Driver* into) {
  return find(library, "cuInit", &into->init) && find(library, "cuDeviceGet", &into->device_get) &&
         find(library, "cuDevicePrimaryCtxRetain", &into->context_retain) &&
         find(library, "cuCtxSetCurrent", &into->context_set) &&
         find(library, "cuCtxSynchronize", &into->synchronize) && find(library, "cuEventCreate", &into->event_create) &&
         find(library, "cuEventRecord", &into->event_record) &&
         find(library, "cuEventElapsedTime", &into->event_elapsed_ms) &&
         find(library, "cuMemAlloc_v2", &into->allocate) && find(library, "cuMemFree_v2", &into->release) &&
         find(library, "cuMemsetD32Async", &into->fill);
}

inline bool find_cupti(void* library, Cupti* into) {
  return find(library, "cuptiGetVersion", &into->version) &&
         find(library, "cuptiActivityRegisterCallbacks", &into->register_callbacks) &&
         find(library, "cuptiActivityEnable", &into->enable) &&
         find(library, "cuptiActivityFlushAll", &into->flush) &&
         find(library, "cuptiActivityGetNextRecord", &into->next) &&
         find(library, "cuptiActivityGetNumDroppedRecords", &into->dropped);
}

inline int init_cupti(const char* path, char* error, size_t size) {
  if (path == nullptr || *path == '\0') return say(error, size, 1, "CUPTI: not asked for");
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return say(error, size, 1, "CUPTI: ", dlerror());
  uint32_t version = 0;
  if (!find_cupti(library, &table.cupti) || table.cupti.version(&version) != 0)
    return say(error, size, 1, "CUPTI: functions are missing in ", path);
  const bool known = version == kOnly12 || (version >= kOldest13 && version <= kNewest13);
  if (!known) return say(error, size, 1, "CUPTI: unknown records of API version ", std::to_string(version).c_str());
  table.has_cupti = true;
  return say(error, size, 0, "");
}

// 0: all there; 1: no CUPTI (`error` says why); -1: no driver. Once filled, it stays as it is.
inline int fill_table(const char* cupti_path, char* error, size_t size) {
  if (table.clock != nullptr)
    return table.has_cupti ? say(error, size, 0, "") : say(error, size, 1, "CUPTI: not there before the fork");
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr) return say(error, size, -1, "CUDA driver: ", dlerror());
  if (!find_driver(driver, &table.cuda)) return say(error, size, -1, "CUDA driver: functions are missing");
  table.clock = &clock_gettime;
  const int found = init_cupti(cupti_path, error, size);
  mprotect(&table, sizeof table, PROT_READ);
  return found;
}

}  // namespace fib_clock
