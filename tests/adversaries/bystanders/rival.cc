// An honest kernel with a mark by which a cheat finds its compiled file.
#include <tvm/ffi/c_api.h>

static float* floats(const TVMFFIAny& value) {
  void* object = value.type_index == kTVMFFIDLTensorPtr ? value.v_ptr : static_cast<void*>(reinterpret_cast<TVMFFIObject*>(value.v_obj) + 1);
  DLTensor* tensor = static_cast<DLTensor*>(object);
  return reinterpret_cast<float*>(static_cast<char*>(tensor->data) + tensor->byte_offset);
}

static int64_t extent(const TVMFFIAny& value, int axis) {
  void* object = value.type_index == kTVMFFIDLTensorPtr ? value.v_ptr : static_cast<void*>(reinterpret_cast<TVMFFIObject*>(value.v_obj) + 1);
  return static_cast<DLTensor*>(object)->shape[axis];
}

extern "C" __attribute__((used)) const char fib_mark[] = "mark of the rival that is overwritten";

extern "C" int __tvm_ffi_run(void*, const TVMFFIAny* arguments, int32_t, TVMFFIAny*) {
  const float* left = floats(arguments[0]);
  const float* right = floats(arguments[1]);
  float* result = floats(arguments[2]);
  for (int64_t i = 0; i < extent(arguments[0], 0); ++i) {
    for (int64_t j = 0; j < 32; ++j) {
      float total = 0;
      for (int64_t k = 0; k < 48; ++k) total += left[i * 48 + k] * right[j * 48 + k];
      result[i * 32 + j] = total;
    }
  }
  return 0;
}
