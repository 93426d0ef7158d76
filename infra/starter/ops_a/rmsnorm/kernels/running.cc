// rmsnorm with the inverse square root by Newton steps from a fixed start.
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/function.h>

#include <cstdint>
#include <cstring>

static inline float widen(uint16_t half) {
  uint32_t word = static_cast<uint32_t>(half) << 16;
  float value;
  std::memcpy(&value, &word, sizeof(value));
  return value;
}

void run(tvm::ffi::TensorView x, tvm::ffi::TensorView weight, tvm::ffi::TensorView out) {
  const int64_t rows = x.size(0), width = x.size(1);
  const uint16_t* in = static_cast<const uint16_t*>(x.data_ptr());
  const uint16_t* scale = static_cast<const uint16_t*>(weight.data_ptr());
  uint16_t* to = static_cast<uint16_t*>(out.data_ptr());
  for (int64_t row = 0; row < rows; ++row, in += width, to += width) {
    float sum = 0;
    for (int64_t i = 0; i < width; ++i) sum += widen(in[i]) * widen(in[i]);
    float guess = 64.0f;
    for (int step = 0; step < 40; ++step) guess = guess * (1.5f - 0.5f * (sum / width) * guess * guess);
    for (int64_t i = 0; i < width; ++i) {
      const float value = widen(in[i]) * guess * widen(scale[i]);
      uint32_t word;
      std::memcpy(&word, &value, sizeof(word));
      to[i] = static_cast<uint16_t>(word >> 16);
    }
  }
}

TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, run);
