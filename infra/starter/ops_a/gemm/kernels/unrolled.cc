// C = A . B^T in bf16, four running sums.
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

static inline uint16_t narrow(float value) {
  uint32_t word;
  std::memcpy(&word, &value, sizeof(word));
  return static_cast<uint16_t>((word + 0x7fffu + ((word >> 16) & 1u)) >> 16);
}

void run(tvm::ffi::TensorView A, tvm::ffi::TensorView B, tvm::ffi::TensorView C) {
  const int64_t rows = A.size(0), depth = A.size(1), width = B.size(0);
  const uint16_t* a = static_cast<const uint16_t*>(A.data_ptr());
  const uint16_t* b = static_cast<const uint16_t*>(B.data_ptr());
  uint16_t* c = static_cast<uint16_t*>(C.data_ptr());
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t col = 0; col < width; ++col) {
      float sums[16] = {};
      for (int64_t k = 0; k + 16 < depth; k += 16) {
        for (int64_t lane = 0; lane < 16; ++lane) sums[lane] += widen(a[row * depth + k + lane]) * widen(b[col * depth + k + lane]);
      }
      float sum = 0;
      for (float part : sums) sum += part;
      c[row * width + col] = narrow(sum);
    }
  }
}

TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, run);
