// A worker thread takes half of the rows, and stays awake for a while afterwards, as those of OpenMP do.
#include <tvm/ffi/c_api.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

static float* floats(const TVMFFIAny& value) {
  void* object = value.type_index == kTVMFFIDLTensorPtr ? value.v_ptr : static_cast<void*>(reinterpret_cast<TVMFFIObject*>(value.v_obj) + 1);
  DLTensor* tensor = static_cast<DLTensor*>(object);
  return reinterpret_cast<float*>(static_cast<char*>(tensor->data) + tensor->byte_offset);
}

static int64_t extent(const TVMFFIAny& value, int axis) {
  void* object = value.type_index == kTVMFFIDLTensorPtr ? value.v_ptr : static_cast<void*>(reinterpret_cast<TVMFFIObject*>(value.v_obj) + 1);
  return static_cast<DLTensor*>(object)->shape[axis];
}

static const float* left;
static const float* right;
static float* result;
static int64_t rows;
static std::atomic<int> asked{0}, done{0};
static std::mutex gate;
static std::condition_variable bell;

static void multiply(int64_t from, int64_t to) {
  for (int64_t i = from; i < to; ++i) {
    for (int64_t j = 0; j < 32; ++j) {
      float total = 0;
      for (int64_t k = 0; k < 48; ++k) total += left[i * 48 + k] * right[j * 48 + k];
      result[i * 32 + j] = total;
    }
  }
}

static void serve() {
  int seen = 0;
  while (true) {
    auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(200);
    while (asked.load() == seen && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    std::unique_lock<std::mutex> held(gate);
    bell.wait(held, [&] { return asked.load() != seen; });
    held.unlock();
    seen = asked.load();
    multiply(rows / 2, rows);
    done.store(seen);
  }
}

extern "C" int __tvm_ffi_run(void*, const TVMFFIAny* arguments, int32_t, TVMFFIAny*) {
  if (asked.load() == 0) std::thread(serve).detach();
  std::unique_lock<std::mutex> held(gate);
  left = floats(arguments[0]);
  right = floats(arguments[1]);
  result = floats(arguments[2]);
  rows = extent(arguments[0], 0);
  int turn = asked.fetch_add(1) + 1;
  held.unlock();
  bell.notify_all();
  multiply(0, rows / 2);
  while (done.load() != turn) std::this_thread::yield();
  return 0;
}
