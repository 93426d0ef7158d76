// The structures of DLPack (v0.8 and later, unversioned capsules), by which tensors cross between torch and the driver
// without a line of Python that a candidate could have replaced.
#pragma once
#include <cstdint>

namespace fib {

constexpr int32_t kDLCPU = 1, kDLCUDA = 2;

struct DLDevice { int32_t type, id; };
struct DLDataType { uint8_t code, bits; uint16_t lanes; };
struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor tensor;
  void* context;
  void (*deleter)(DLManagedTensor*);
};

}  // namespace fib
