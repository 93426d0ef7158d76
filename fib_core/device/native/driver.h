// The driver's state and its parts: driver.cpp talks, driver_calls.cpp calls and times, driver_outputs.cpp takes what was
// returned, driver_memory.cpp moves bytes between the shared memory and the candidate's.
#pragma once
#include <time.h>

#include <vector>

#include "digest.h"
#include "region.h"
#include "siphash.h"

namespace fib {

// Long enough for the referee to put small inputs in place; bounded, since it is CPU time that nobody's call used.
constexpr int64_t kSpinNs = 200000;

// From the first byte of the inputs to the last of the outputs nobody else should run on this core. Who did for longer
// than reading clocks takes may have worked on them: that time is part of the call.
constexpr int64_t kDisplacedNs = 2000;

inline int64_t clock_ns(clockid_t clock) {
  timespec time;
  clock_gettime(clock, &time);
  return time.tv_sec * 1000000000LL + time.tv_nsec;
}

inline int64_t now_ns() { return clock_ns(CLOCK_MONOTONIC); }

inline int64_t thread_ns() { return clock_ns(CLOCK_THREAD_CPUTIME_ID); }

class Driver;

// Time in which the driver copies by itself and nothing of the candidate's can run on this thread.
class Aside {
 public:
  explicit Aside(Driver& driver) : driver_(driver), from_ns_(now_ns()), used_ns_(thread_ns()) {}
  ~Aside();
  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;

 private:
  Driver& driver_;
  int64_t from_ns_, used_ns_;
};

class Driver {
 public:
  Driver(int fd, PyObject* captured) : fd_(fd) {
    auto item = [captured](int index) { return Ref::share(PyTuple_GetItem(captured, index)).release(); };
    torch_ = {item(0), item(1), item(2), item(3), item(4), item(5), item(6), item(7), item(8)};
    seeds_ = item(9);
    describe_ = item(10);
    function_modes_ = item(11);
    dispatch_modes_ = item(12);
    join(fd);
  }
  bool ready() const { return ready_; }
  // Another referee's channel, with a key of its own; what was captured stays as it was before any candidate code.
  bool join(int fd);
  int serve(PyObject* entry);
  void count_aside(int64_t wall_ns, int64_t cpu_ns) {
    aside_ns_ += wall_ns;
    own_ns_ += cpu_ns;
  }
  bool use_cuda(const char* clock, int device) { return cuda_.find(clock, device); }

 private:
  bool set_up(const char* message, size_t size, const int fds[3]);
  void go(PyObject* entry, const Go& order);
  void leave();
  bool changed(const std::vector<Held>& held) const;
  uint64_t writable_digest(const char* block);
  bool take_over(const char* source, char* target, size_t bytes);
  bool begin() const { return !cuda_.used() || cuda_.begin(nullptr) == 0; }
  bool end(Done& done) const;
  void copy_on_device(char* target, const char* source, size_t bytes) const;
  DLDevice device() const { return cuda_.used() ? DLDevice{kDLCUDA, cuda_.index} : DLDevice{kDLCPU, 0}; }
  bool put_in_place(const Go& order);
  void drop_file() {
    if (output_fd_ >= 0) close(output_fd_);
    output_fd_ = -1;
  }
  bool modes_active() const;
  Ref arguments(const Go& order, char* block) const;
  Ref make(const Tensor& spec, char* block) const;
  bool call(PyObject* entry, const Go& order, uint32_t number, Done& done, std::vector<char>& payload);
  bool take(PyObject* returned, char* block, Done& done);
  Problem look(const std::vector<PyObject*>& found, std::vector<Held>& held, char* block, Done& done);
  void describe_exception(std::vector<char>& payload) const;
  bool send_done(Done& done, const std::vector<char>& payload);
  ssize_t receive(char* buffer, size_t size, int fds[3]) const;

  int fd_;
  bool ready_ = false;
  uint8_t key_[16];
  uint64_t sent_ = 0;
  int64_t spin_until_ = 0, spin_from_ = 0, ordered_ = 0, own_ns_ = 0, displaced_ns_ = 0;
  int staged_ = -1, output_fd_ = -1;
  int64_t aside_ns_ = 0;
  std::vector<char> piece_ = std::vector<char>(kPieceBytes);
  CudaSide cuda_;
  Torch torch_;
  PyObject *seeds_, *describe_, *function_modes_, *dispatch_modes_;
  Region static_, fresh_, output_;
  std::vector<Tensor> arguments_, outputs_;
  std::vector<Held> held_;
};

}  // namespace fib
