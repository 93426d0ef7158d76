// A stand-in for libcuda.so.1 and libcupti.so in one file: two kernels and one fill per timed call, on a made-up clock.
// FAKE_CUPTI_VERSION sets the API version; FAKE_CUPTI_BLIND makes it forget the canary; FAKE_CUDA_BROKEN fails waiting.
// FAKE_CUPTI_COPY adds a copy to memory of that kind; FAKE_CUPTI_STRAY starts the first kernel that early and ends it
// before the canary.
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace {
using Give = void (*)(uint8_t**, size_t*, size_t*);
using Take = void (*)(void*, uint32_t, uint8_t*, size_t, size_t);
Give give;
Take take;
uint32_t canary;  // FAKE_CUPTI_EARLY lets the canary end after the first kernel began
int fills = 0, waits = 0;
constexpr size_t kRecord = 216;

void put(uint8_t* at, uint32_t kind, uint32_t value, int64_t start, int64_t end, const char* name) {
  std::memset(at, 0, kRecord);
  std::memcpy(at, &kind, 4);
  std::memcpy(at + 4, &value, 4);
  std::memcpy(at + 16, &start, 8);
  std::memcpy(at + 24, &end, 8);
  std::memcpy(at + 104, &name, 8);
}
}  // namespace

extern "C" {
int cuInit(unsigned) { return 0; }
int cuDeviceGet(int* device, int index) { return *device = index, index < 1 ? 0 : 101; }
int cuDevicePrimaryCtxRetain(void** context, int) { return *context = &give, 0; }
int cuCtxSetCurrent(void*) { return 0; }
int cuCtxSynchronize() { return std::getenv("FAKE_CUDA_BROKEN") != nullptr && ++waits > 1 ? 700 : 0; }
int cuEventCreate(void** event, unsigned) { return *event = &take, 0; }
int cuEventRecord(void*, void*) { return 0; }
int cuEventElapsedTime(float* ms, void*, void*) { return *ms = 0.0125f, 0; }
int cuMemAlloc_v2(unsigned long long* at, size_t) { return *at = 4096, 0; }
int cuMemFree_v2(unsigned long long) { return 0; }
int cuMemsetD32Async(unsigned long long, unsigned value, size_t, void*) { return canary = value, ++fills, 0; }

int cuptiGetVersion(uint32_t* version) {
  const char* text = std::getenv("FAKE_CUPTI_VERSION");
  return *version = text != nullptr ? std::atoi(text) : 130001, 0;
}
int cuptiActivityRegisterCallbacks(Give first, Take second) { return give = first, take = second, 0; }
int cuptiActivityEnable(int) { return 0; }
int cuptiActivityGetNumDroppedRecords(void*, uint32_t, size_t* dropped) { return *dropped = 0, 0; }
int cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid, uint8_t** record) {
  uint8_t* next = *record == nullptr ? buffer : *record + kRecord;
  if (next >= buffer + valid) return 12;
  return *record = next, 0;
}
int cuptiActivityFlushAll(uint32_t) {
  if (fills == 0) return 0;  // before the first timed call
  fills = 0;
  uint8_t* buffer;
  size_t size, most;
  give(&buffer, &size, &most);
  const bool blind = std::getenv("FAKE_CUPTI_BLIND") != nullptr;
  put(buffer, blind ? 99 : 2, canary, 500, std::getenv("FAKE_CUPTI_EARLY") != nullptr ? 1500 : 900, nullptr);
  const char* stray = std::getenv("FAKE_CUPTI_STRAY");
  put(buffer + kRecord, 10, 0, stray != nullptr ? std::atoi(stray) : 1000, stray != nullptr ? 450 : 3000, "second");
  put(buffer + 2 * kRecord, 10, 0, 2000, 5000, "first");
  put(buffer + 3 * kRecord, 2, canary + 1, 5500, 6000, nullptr);
  const char* copy = std::getenv("FAKE_CUPTI_COPY");
  if (copy != nullptr) put(buffer + 4 * kRecord, 1, std::atoi(copy) << 16, 5500, 6000, nullptr);
  take(nullptr, 0, buffer, size, (copy != nullptr ? 5 : 4) * kRecord);
  return 0;
}
}
