// What was returned: is it what was asked for, and where are its bytes?
#include "driver.h"

namespace fib {

// Names the results and copies them at once, before anything of the candidate's can run again.
bool Driver::take(PyObject* returned, char* block, Done& done) {
  size_t wanted = 0;
  for (const Tensor& spec : outputs_) wanted += spec.place == kReturned;
  if (wanted == 0) return true;
  // Named tuples too: their items are read from their storage, past whatever methods they have.
  bool is_tuple = is_a(returned, torch_.tuple_type), is_list = is_a(returned, torch_.list_type);
  std::vector<PyObject*> found;
  if (is_tuple)
    for (std::ptrdiff_t i = 0; i < PyTuple_Size(returned); ++i) found.push_back(PyTuple_GetItem(returned, i));
  if (is_list)
    for (std::ptrdiff_t i = 0; i < PyList_Size(returned); ++i) found.push_back(PyList_GetItem(returned, i));
  if (!is_tuple && !is_list) found.push_back(returned);
  if (found.size() != wanted) {
    done.problem = kCount;
    std::snprintf(done.detail, sizeof done.detail, "%zu values returned, %zu expected", found.size(), wanted);
    return false;
  }
  done.problem = look(found, held_, block, done);
  return done.problem == kNone;
}

Problem Driver::look(const std::vector<PyObject*>& found, std::vector<Held>& held, char* block, Done& done) {
  std::vector<uint32_t> names;
  for (uint32_t i = 0; i < outputs_.size(); ++i)
    if (outputs_[i].place == kReturned) names.push_back(i);
  auto fail = [&](size_t i, Problem problem) {
    done.output = names[i];
    return problem;
  };
  std::vector<PyObject*> dtypes;
  for (size_t i = 0; i < found.size(); ++i)
    if (!is_exactly(found[i], torch_.tensor_type)) {
      bool derived = is_a(found[i], torch_.tensor_type);
      std::snprintf(done.detail, sizeof done.detail, derived ? "not exactly a torch.Tensor" : "not a torch.Tensor");
      return fail(i, derived ? kTensorType : kNoTensor);
    }
  std::vector<Facts> facts(found.size());
  std::vector<bool> right_dtype;
  for (size_t i = 0; i < found.size(); ++i) {
    const Tensor& wanted = outputs_[names[i]];
    Ref dtype(PyObject_CallFunctionObjArgs(torch_.dtype_of, found[i], nullptr));
    right_dtype.push_back(dtype.get() == PyTuple_GetItem(torch_.dtypes, wanted.dtype));
    bool as_bytes = right_dtype[i] && wanted.dtype >= kPlainDtypes;
    if (!facts[i].read(torch_, found[i], as_bytes) || facts[i].tensor().device.type != device().type) {
      std::snprintf(done.detail, sizeof done.detail, "not a plain strided tensor on the device of the inputs");
      return fail(i, kLayout);
    }
  }
  for (size_t i = 0; i < found.size(); ++i)
    if (!same_shape(facts[i].tensor(), outputs_[names[i]])) {
      char got[96], expected[96];
      print_shape(got, sizeof got, facts[i].tensor().shape, facts[i].tensor().ndim);
      print_shape(expected, sizeof expected, outputs_[names[i]].shape, static_cast<int>(outputs_[names[i]].ndim));
      std::snprintf(done.detail, sizeof done.detail, "shape %s, expected %s", got, expected);
      return fail(i, kShape);
    }
  for (size_t i = 0; i < found.size(); ++i)
    if (!right_dtype[i]) {
      DLDataType type = facts[i].tensor().dtype;
      std::snprintf(done.detail, sizeof done.detail, "another element type (DLPack code %d, %d bits)", type.code, type.bits);
      return fail(i, kDtype);
    }
  for (size_t i = 0; i < found.size(); ++i) {
    const char* data = facts[i].data();
    size_t bytes = outputs_[names[i]].bytes;
    if (static_.meets(data, bytes) || fresh_.meets(data, bytes) || output_.meets(data, bytes)) {
      std::snprintf(done.detail, sizeof done.detail, "shares memory with an input");
      return fail(i, kInputAlias);
    }
    if (!is_dense(facts[i].tensor())) {
      std::snprintf(done.detail, sizeof done.detail, "not contiguous: the caller would have to copy it");
      return fail(i, kStrides);
    }
  }
  for (size_t i = 0; i < found.size(); ++i) {
    char* copy = block + outputs_[names[i]].offset;
    size_t bytes = outputs_[names[i]].bytes;
    if (!take_over(facts[i].data(), copy, bytes)) {
      std::snprintf(done.detail, sizeof done.detail, "its memory cannot be read");
      return fail(i, kUnreadable);
    }
    held.push_back({std::move(facts[i]), copy, bytes});
  }
  return kNone;
}

}  // namespace fib
