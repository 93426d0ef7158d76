// C = A . B^T in fp32: every element one dot product, summed in order.
// REDO_PERCENT of the rows are done a second time at the end: work whose cost is known, and whose result is the same.
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/function.h>

#include <cstdint>

namespace {

constexpr int64_t COLUMNS = WIDTH;
constexpr int64_t LENGTH = DEPTH;

void row_product(const float* a, const float* b, float* c) {
  for (int64_t column = 0; column < COLUMNS; ++column) {
    float sum = 0;
    for (int64_t k = 0; k < LENGTH; ++k) sum += a[k] * b[column * LENGTH + k];
    c[column] = sum;
  }
}

}  // namespace

void run(tvm::ffi::TensorView A, tvm::ffi::TensorView B, tvm::ffi::TensorView C) {
  const float* a = static_cast<const float*>(A.data_ptr());
  const float* b = static_cast<const float*>(B.data_ptr());
  float* c = static_cast<float*>(C.data_ptr());
  const int64_t rows = A.size(0), again = rows * REDO_PERCENT / 100;
  for (int64_t row = 0; row < rows; ++row) row_product(a + row * LENGTH, b, c + row * COLUMNS);
  for (int64_t row = 0; row < again; ++row) row_product(a + row * LENGTH, b, c + row * COLUMNS);
}

TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, run);
