// Tensors in and out, natively: a torch tensor over given memory, and the plain facts about a returned one.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "dlpack.h"
#include "python_api.h"
#include "wire.h"

namespace fib {

// Objects of torch that were looked up before any candidate code was imported. `dtypes` is a tuple in wire order.
struct Torch {
  PyObject *from_dlpack, *to_dlpack, *tensor_type, *tuple_type, *list_type, *view, *dtype_of, *dtypes, *byte_dtype;
};

constexpr uint8_t kPlainDtypes = 8;  // the first eight dtypes of the table cross DLPack as they are, the rest as bytes

struct Loan {
  DLManagedTensor managed;
  int64_t shape[kMaxDims], strides[kMaxDims];
};

inline void end_loan(DLManagedTensor* managed) { std::free(managed->context); }

// A tensor over memory that the region owns; nothing is copied.
inline Ref tensor_over(const Torch& torch, const Tensor& spec, char* base, DLDevice device) {
  auto* loan = static_cast<Loan*>(std::calloc(1, sizeof(Loan)));
  std::memcpy(loan->shape, spec.shape, sizeof loan->shape);
  std::memcpy(loan->strides, spec.strides, sizeof loan->strides);
  loan->managed.tensor = {base + spec.offset, device, static_cast<int32_t>(spec.ndim), {spec.code, spec.bits, 1},
                          loan->shape,        loan->strides, 0};
  loan->managed.context = loan;
  loan->managed.deleter = end_loan;
  Ref capsule(PyCapsule_New(&loan->managed, "dltensor", nullptr));
  Ref tensor(PyObject_CallFunctionObjArgs(torch.from_dlpack, capsule.get(), nullptr));
  if (!tensor || spec.dtype < kPlainDtypes) return tensor;
  PyObject* dtype = PyTuple_GetItem(torch.dtypes, spec.dtype);
  return Ref(PyObject_CallFunctionObjArgs(torch.view, tensor.get(), dtype, nullptr));
}

inline bool is_exactly(PyObject* object, PyObject* type) {
  Ref found(PyObject_Type(object));
  return found.get() == type;
}

// Of the type or of one derived from it; asks the type, never the object, which may say anything.
inline bool is_a(PyObject* object, PyObject* type) {
  Ref found(PyObject_Type(object));
  return PyType_IsSubtype(found.get(), type) != 0;
}

// What DLPack says about a tensor; `owner` keeps the memory until it goes.
class Facts {
 public:
  Facts() = default;
  Facts(const Facts&) = delete;
  Facts(Facts&& other) noexcept : owner_(other.owner_) { other.owner_ = nullptr; }
  Facts& operator=(Facts&& other) noexcept {
    std::swap(owner_, other.owner_);
    return *this;
  }
  ~Facts() {
    if (owner_ != nullptr && owner_->deleter != nullptr) owner_->deleter(owner_);
  }
  bool read(const Torch& torch, PyObject* tensor, bool as_bytes) {
    Ref view = as_bytes ? Ref(PyObject_CallFunctionObjArgs(torch.view, tensor, torch.byte_dtype, nullptr))
                        : Ref::share(tensor);
    if (!view) return false;
    Ref capsule(PyObject_CallFunctionObjArgs(torch.to_dlpack, view.get(), nullptr));
    if (!capsule || !PyCapsule_IsValid(capsule.get(), "dltensor")) return false;
    owner_ = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule.get(), "dltensor"));
    return owner_ != nullptr && PyCapsule_SetName(capsule.get(), "used_dltensor") == 0;
  }
  const DLTensor& tensor() const { return owner_->tensor; }
  char* data() const { return static_cast<char*>(tensor().data) + tensor().byte_offset; }

 private:
  DLManagedTensor* owner_ = nullptr;
};

inline void print_shape(char* text, size_t size, const int64_t* shape, int ndim) {
  size_t used = static_cast<size_t>(std::snprintf(text, size, "["));
  for (int i = 0; i < ndim && used + 24 < size; ++i)
    used += static_cast<size_t>(std::snprintf(text + used, size - used, i ? ", %lld" : "%lld",
                                              static_cast<long long>(shape[i])));
  std::snprintf(text + used, size - used, "]");
}

inline bool same_shape(const DLTensor& found, const Tensor& wanted) {
  if (found.ndim != static_cast<int32_t>(wanted.ndim)) return false;
  for (int i = 0; i < found.ndim; ++i)
    if (found.shape[i] != wanted.shape[i]) return false;
  return true;
}

// Row-major without gaps; strides of unit and of empty axes mean nothing.
inline bool is_dense(const DLTensor& found) {
  int64_t expected = 1;
  for (int i = 0; i < found.ndim; ++i)
    if (found.shape[i] == 0) return true;
  if (found.strides == nullptr) return true;
  for (int i = found.ndim - 1; i >= 0; --i) {
    if (found.shape[i] != 1 && found.strides[i] != expected) return false;
    expected *= found.shape[i];
  }
  return true;
}

}  // namespace fib
