// The few functions of CPython's ABI that the driver needs, declared by hand: no Python headers on the host are needed.
// All exist unchanged in 3.11 and 3.12. Called with the GIL held (the library is loaded through ctypes.PyDLL).
#pragma once
#include <cstddef>
#include <cstdint>

extern "C" {
struct PyObject;
PyObject* PyObject_Call(PyObject* callable, PyObject* args, PyObject* kwargs);
PyObject* PyObject_CallFunctionObjArgs(PyObject* callable, ...);
PyObject* PyObject_Type(PyObject* object);
int PyType_IsSubtype(PyObject* type, PyObject* base);
PyObject* PyTuple_New(std::ptrdiff_t size);
int PyTuple_SetItem(PyObject* tuple, std::ptrdiff_t index, PyObject* stolen);
std::ptrdiff_t PyTuple_Size(PyObject* tuple);
PyObject* PyTuple_GetItem(PyObject* tuple, std::ptrdiff_t index);
std::ptrdiff_t PyList_Size(PyObject* list);
PyObject* PyList_GetItem(PyObject* list, std::ptrdiff_t index);
PyObject* PyLong_FromLongLong(long long value);
PyObject* PyLong_FromUnsignedLongLong(unsigned long long value);
long long PyLong_AsLongLong(PyObject* value);
PyObject* PyFloat_FromDouble(double value);
PyObject* PyBool_FromLong(long value);
PyObject* PyCapsule_New(void* pointer, const char* name, void (*destructor)(PyObject*));
void* PyCapsule_GetPointer(PyObject* capsule, const char* name);
int PyCapsule_SetName(PyObject* capsule, const char* name);
int PyCapsule_IsValid(PyObject* capsule, const char* name);
int PyBytes_AsStringAndSize(PyObject* bytes, char** data, std::ptrdiff_t* size);
void PyErr_Fetch(PyObject** type, PyObject** value, PyObject** traceback);
void PyErr_NormalizeException(PyObject** type, PyObject** value, PyObject** traceback);
int PyException_SetTraceback(PyObject* value, PyObject* traceback);
void PyErr_Clear();
void Py_IncRef(PyObject* object);
void Py_DecRef(PyObject* object);
}

namespace fib {

// An owned reference.
class Ref {
 public:
  explicit Ref(PyObject* object = nullptr) : object_(object) {}
  Ref(Ref&& other) noexcept : object_(other.release()) {}
  Ref& operator=(Ref&& other) noexcept {
    reset(other.release());
    return *this;
  }
  Ref(const Ref&) = delete;
  ~Ref() { reset(nullptr); }
  static Ref share(PyObject* borrowed) {
    Py_IncRef(borrowed);
    return Ref(borrowed);
  }
  PyObject* get() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }
  PyObject* release() {
    PyObject* object = object_;
    object_ = nullptr;
    return object;
  }
  void reset(PyObject* object) {
    if (object_ != nullptr) Py_DecRef(object_);
    object_ = object;
  }

 private:
  PyObject* object_;
};

}  // namespace fib
