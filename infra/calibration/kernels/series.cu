// Launches series_rows on the caller's stream: the same grid for any number of rows. REDO_PERCENT of the terms are done twice, and a dozen more.
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/function.h>

#include "series.cuh"

void run(tvm::ffi::TensorView x, tvm::ffi::TensorView weight, tvm::ffi::TensorView out) {
  constexpr int DOZENS = TERMS / DOZEN, AGAIN = 1 + DOZENS * REDO_PERCENT / 100;
  auto* stream = static_cast<cudaStream_t>(TVMFFIEnvGetStream(x.device().device_type, x.device().device_id));
  series_rows<<<BLOCKS, LANES, 0, stream>>>(static_cast<const float*>(x.data_ptr()),
      static_cast<const float*>(weight.data_ptr()), static_cast<float*>(out.data_ptr()), x.size(0), DOZENS, AGAIN);
}

TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, run);
