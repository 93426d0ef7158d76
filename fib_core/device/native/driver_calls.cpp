// One order: arguments, seeds, clock, call, clock.
#include "driver.h"

namespace fib {

void Driver::go(PyObject* entry, const Go& order) {
  Done done{};
  std::vector<char> payload;
  done.type = kDone;
  done.call = order.call;
  done.changed = changed(held_);
  // What was returned before is held until this call is over: who hands out one buffer twice is seen.
  std::vector<Held> before = std::move(held_);
  held_.clear();
  int64_t stop = now_ns() + static_cast<int64_t>(order.soft_ns);
  if (modes_active()) {
    done.result = kModeActive;
  } else {
    while (done.made < order.count && call(entry, order, done.made, done, payload)) {
      ++done.made;
      if (now_ns() >= stop) break;
    }
  }
  if (changed(before)) done.changed = 1;
  if (order.prime != 0) {
    held_ = std::move(before);
    if (done.result == kOk) done.result = kSkipped;
    done.strays = 0;
  }
  done.own_ns = static_cast<uint64_t>(own_ns_);
  send_done(done, payload);
  // The order that follows a priming comes at once: stay awake for it, with warm caches.
  spin_until_ = order.prime != 0 ? now_ns() + kSpinNs : 0;
  spin_from_ = order.prime != 0 ? thread_ns() : 0;
}

bool Driver::call(PyObject* entry, const Go& order, uint32_t number, Done& done, std::vector<char>& payload) {
  char* block = output_.base + order.output_base + number * order.output_stride;
  held_.clear();
  Ref arguments = this->arguments(order, block);
  // An odd multiplier spreads consecutive calls over all seeds.
  Ref seed(PyLong_FromUnsignedLongLong((order.seed + 0x9E3779B97F4A7C15ULL * number) >> 1));
  bool seeded = true;
  for (std::ptrdiff_t i = 0; i < PyTuple_Size(seeds_); ++i)
    seeded = Ref(PyObject_CallFunctionObjArgs(PyTuple_GetItem(seeds_, i), seed.get(), nullptr)) && seeded;
  if (!arguments || !seeded) {
    done.result = kBroken;
    describe_exception(payload);
    return false;
  }
  if (!put_in_place(order)) {
    constexpr char kWhy[] = R"({"rule": "exception", "message": "the memory of the inputs cannot be written", "log": ""})";
    done.result = kBroken;
    payload.assign(kWhy, kWhy + sizeof kWhy - 1);
    return false;
  }
  aside_ns_ = 0;
  bool timed = begin();
  int64_t start = now_ns();
  Ref returned(PyObject_Call(entry, arguments.get(), nullptr));
  arguments.reset(nullptr);  // whatever hangs on the life of an argument happens inside the call's time
  int64_t stop = now_ns(), used = thread_ns();
  timed = end(done) && timed;
  done.head_ns = static_cast<uint64_t>(start - ordered_);
  if (!timed) {
    done.result = kBroken;
    return false;
  }
  if (!returned) {
    done.result = kRaised;
    describe_exception(payload);
    return false;
  }
  done.elapsed_ns += static_cast<uint64_t>(stop - start + displaced_ns_);
  if (order.prime != 0) return true;
  if (!take(returned.get(), block, done)) {
    done.result = kProblem;
    PyErr_Clear();
    return false;
  }
  returned.reset(nullptr);
  if (!cuda_.used()) done.digest = writable_digest(block);
  int64_t tail = now_ns() - stop, displaced = tail - (thread_ns() - used);
  if (!cuda_.used() && displaced > kDisplacedNs) done.elapsed_ns += static_cast<uint64_t>(displaced);
  done.tail_ns = static_cast<uint64_t>(tail - aside_ns_);
  return true;
}

bool Driver::end(Done& done) const {
  if (!cuda_.used()) return true;
  int64_t event_ns = 0, cupti_ns = 0, host_ns = 0, facts[9] = {};
  int32_t kernels = 0;
  uint64_t digest = 0;
  if (cuda_.end(nullptr, &event_ns, &cupti_ns, &host_ns, &kernels) != 0) return false;
  done.event_ns += event_ns;
  done.cupti_ns = cupti_ns < 0 ? cupti_ns : done.cupti_ns + cupti_ns;
  done.kernels += kernels;
  if (cuda_.details(0, facts, &digest, nullptr, 0) == 0) done.idle_ns += facts[8];
  // Copies to the host as well: who fetches the next inputs early works on them there.
  if (cuda_.details(1, facts, &digest, nullptr, 0) == 0) done.strays += static_cast<int32_t>(facts[3] + facts[7]);
  return true;
}

bool Driver::modes_active() const {
  for (PyObject* length : {function_modes_, dispatch_modes_}) {
    Ref depth(PyObject_CallFunctionObjArgs(length, nullptr));
    if (!depth || PyLong_AsLongLong(depth.get()) != 0) return true;
  }
  return false;
}

Ref Driver::arguments(const Go& order, char* block) const {
  std::vector<const Tensor*> wanted;
  for (const Tensor& spec : arguments_) wanted.push_back(&spec);
  for (const Tensor& spec : outputs_)
    if (spec.place == kBuffer) wanted.push_back(&spec);
  Ref tuple(PyTuple_New(static_cast<std::ptrdiff_t>(wanted.size())));
  for (size_t i = 0; i < wanted.size(); ++i) {
    bool own = i >= arguments_.size() || wanted[i]->place == kOutput;
    char* base = own ? block : wanted[i]->place == kStatic ? static_.base : fresh_.base + order.fresh_base;
    Ref value = make(*wanted[i], base);
    if (!value) return Ref();
    PyTuple_SetItem(tuple.get(), static_cast<std::ptrdiff_t>(i), value.release());
  }
  return tuple;
}

Ref Driver::make(const Tensor& spec, char* block) const {
  long long whole;
  double real;
  std::memcpy(&whole, &spec.offset, sizeof whole);
  std::memcpy(&real, &spec.offset, sizeof real);
  switch (spec.place) {
    case kInteger: return Ref(PyLong_FromLongLong(whole));
    case kFloat: return Ref(PyFloat_FromDouble(real));
    case kBoolean: return Ref(PyBool_FromLong(whole != 0));
    default: return tensor_over(torch_, spec, block, device());
  }
}

void Driver::describe_exception(std::vector<char>& payload) const {
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  Ref kind(type), error(value), trace(traceback);
  if (!error) return;
  if (trace) PyException_SetTraceback(error.get(), trace.get());
  Ref text(PyObject_CallFunctionObjArgs(describe_, error.get(), nullptr));
  char* data = nullptr;
  std::ptrdiff_t size = 0;
  if (text && PyBytes_AsStringAndSize(text.get(), &data, &size) == 0)
    payload.assign(data, data + (size < static_cast<std::ptrdiff_t>(kPayloadBytes) ? size : kPayloadBytes));
  PyErr_Clear();
}

}  // namespace fib
