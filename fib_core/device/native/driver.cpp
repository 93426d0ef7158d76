// The driver: calls and times a candidate's entry point, and hands every output over before the next inputs exist.
//
// Lives in the candidate's process, loaded and wired before any candidate code. Everything it calls was captured then:
// libc through a read-only table, torch through objects that it holds. It reads the key of its channel itself, so no
// Python code ever sees it. It judges nothing: facts and bytes go to the referee.
#include <fcntl.h>
#include <sys/socket.h>

#include "driver.h"

namespace fib {

bool Driver::join(int fd) {
  if (fd != fd_) close(fd_);
  fd_ = fd;
  sent_ = 0;
  ready_ = recv(fd_, key_, sizeof key_, MSG_WAITALL) == sizeof key_;
  return ready_;
}

ssize_t Driver::receive(char* buffer, size_t size, int fds[3]) const {
  iovec part{buffer, size};
  alignas(cmsghdr) char control[CMSG_SPACE(3 * sizeof(int))];
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  ssize_t got;
  do {
    bool spin = now_ns() < spin_until_;
    got = recvmsg(fd_, &header, MSG_CMSG_CLOEXEC | (spin ? MSG_DONTWAIT : 0));
  } while (got < 0 && (errno == EINTR || errno == EAGAIN));
  cmsghdr* first = CMSG_FIRSTHDR(&header);
  if (got > 0 && first != nullptr && first->cmsg_type == SCM_RIGHTS)
    std::memcpy(fds, CMSG_DATA(first), first->cmsg_len - CMSG_LEN(0));
  return got;
}

int Driver::serve(PyObject* entry) {
  std::vector<char> buffer(sizeof(Setup) + kMaxTensors * sizeof(Tensor));
  while (true) {
    int fds[3] = {-1, -1, -1};
    ssize_t got = receive(buffer.data(), buffer.size(), fds);
    uint32_t type = 0;
    if (got >= static_cast<ssize_t>(sizeof type)) std::memcpy(&type, buffer.data(), sizeof type);
    bool well = false;
    if (type == kSetup) well = set_up(buffer.data(), static_cast<size_t>(got), fds);
    if (type == kGo && got == sizeof(Go)) {
      Go order;
      ordered_ = now_ns();
      own_ns_ = spin_until_ != 0 ? thread_ns() - spin_from_ : 0;
      staged_ = fds[0];
      std::memcpy(&order, buffer.data(), sizeof order);
      go(entry, order);
      well = true;
    }
    for (int fd : fds)
      if (fd >= 0) close(fd);
    if (well) continue;
    if (type == kEnd) {
      Done done{};
      done.type = kDone;
      done.changed = changed(held_);
      held_.clear();
      send_done(done, {});
    }
    leave();
    return type == kEnd ? 0 : -1;
  }
}

bool Driver::set_up(const char* message, size_t size, const int fds[3]) {
  Setup setup;
  if (size < sizeof setup) return false;
  std::memcpy(&setup, message, sizeof setup);
  size_t tensors = static_cast<size_t>(setup.arguments) + setup.outputs;
  if (setup.version != kVersion || tensors > kMaxTensors || size != sizeof setup + tensors * sizeof(Tensor))
    return false;
  arguments_.resize(setup.arguments);
  outputs_.resize(setup.outputs);
  const char* from = message + sizeof setup;
  std::memcpy(arguments_.data(), from, setup.arguments * sizeof(Tensor));
  std::memcpy(outputs_.data(), from + setup.arguments * sizeof(Tensor), setup.outputs * sizeof(Tensor));
  held_.clear();
  Region* regions[] = {&static_, &fresh_, &output_};
  const size_t sizes[] = {setup.static_bytes, setup.fresh_bytes, setup.output_bytes};
  for (int i = 0; i < 3; ++i)
    cuda_.used() ? regions[i]->open(cuda_, setup.handles + i * sizeof(IpcHandle), sizes[i])
                 : regions[i]->map(fds[i], sizes[i]);
  if (!cuda_.used()) {
    drop_file();
    output_fd_ = fcntl(fds[2], F_DUPFD_CLOEXEC, 0);
  }
  return static_.base != nullptr && fresh_.base != nullptr && output_.base != nullptr;
}

void Driver::leave() {
  held_.clear();
  if (cuda_.used()) {
    cuda_.sync();
    static_.leave_open();
    fresh_.close(cuda_);
    output_.close(cuda_);
    return;
  }
  drop_file();
  static_.retire();
  fresh_.unmap();
  output_.unmap();
}

bool Driver::send_done(Done& done, const std::vector<char>& payload) {
  done.payload = static_cast<uint32_t>(payload.size());
  // The count of messages is tagged too: an old answer cannot be sent again.
  std::vector<char> body(sizeof done + payload.size() + sizeof sent_);
  std::memcpy(body.data(), &done, sizeof done);
  if (!payload.empty()) std::memcpy(body.data() + sizeof done, payload.data(), payload.size());
  std::memcpy(body.data() + sizeof done + payload.size(), &sent_, sizeof sent_);
  ++sent_;
  uint64_t tag = siphash(key_, reinterpret_cast<uint8_t*>(body.data()), body.size());
  std::memcpy(body.data() + body.size() - sizeof tag, &tag, sizeof tag);
  return send(fd_, body.data(), body.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(body.size());
}

}  // namespace fib

#define FIB_EXPORT extern "C" __attribute__((visibility("default")))

// A driver on this socket, with the captured objects (see driver.py for their order); null if the key does not come.
FIB_EXPORT void* fib_driver_open(int fd, PyObject* captured) {
  auto* driver = new fib::Driver(fd, captured);
  if (driver->ready()) return driver;
  delete driver;
  return nullptr;
}

// Measure on a CUDA device from now on, by the clock library at this path (opened in this process); 0 if all is there.
FIB_EXPORT int fib_driver_use_cuda(void* driver, const char* clock, int device) {
  return static_cast<fib::Driver*>(driver)->use_cuda(clock, device) ? 0 : -1;
}

// Serve another referee from now on; 0 if its key came.
FIB_EXPORT int fib_driver_join(void* driver, int fd) { return static_cast<fib::Driver*>(driver)->join(fd) ? 0 : -1; }

// Serve one workload: 0 after an orderly end, -1 if the referee is gone or talks nonsense.
FIB_EXPORT int fib_driver_serve(void* driver, PyObject* entry) { return static_cast<fib::Driver*>(driver)->serve(entry); }

// The digest that an answer carries, continued from `value`.
FIB_EXPORT uint64_t fib_digest(const char* data, size_t size, uint64_t value) {
  return fib::digest_in_pieces(data, size, value);
}

// The tag of a message, for the referee's side.
FIB_EXPORT uint64_t fib_tag(const uint8_t* key, const uint8_t* data, size_t size) { return fib::siphash(key, data, size); }
