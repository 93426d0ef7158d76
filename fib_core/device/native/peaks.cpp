// What one core can do at most: bytes per second next to it and one cache level further out, operations per second.
//
// Arguments: core, rounds, bytes of the near and of the far working set. Prints one line a round: near and far bytes
// per second, operations per second. A program of its own: nobody's code shares its process.
#include <sched.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif
typedef float Floats __attribute__((vector_size(kVectorBytes)));
typedef int64_t Words __attribute__((vector_size(kVectorBytes)));
constexpr int kLanes = 8;
constexpr int kChains = 10;  // more than latency times units of any core we know; fewer than its registers
constexpr int kTurns = 4000;

double now_s() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec + time.tv_nsec * 1e-9;
}

// The compiler must believe that these bytes are read and written here.
void keep(void* place) { asm volatile("" : : "r"(place) : "memory"); }

double read_s(const Words* from, size_t count, int passes) {
  Words sums[kLanes] = {};
  double start = now_s();
  for (int pass = 0; pass < passes; ++pass) {
    for (size_t i = 0; i < count; i += kLanes)
      for (int lane = 0; lane < kLanes; ++lane) sums[lane] += from[i + lane];
    keep(const_cast<Words*>(from));
  }
  double stop = now_s();
  keep(sums);
  return stop - start;
}

double copy_s(Words* to, const Words* from, size_t count, int passes) {
  double start = now_s();
  for (int pass = 0; pass < passes; ++pass) {
    for (size_t i = 0; i < count; i += kLanes)
      for (int lane = 0; lane < kLanes; ++lane) to[i + lane] = from[i + lane];
    keep(to);
  }
  return now_s() - start;
}

// The better of reading all and of copying one half to the other.
double bytes_per_s(Words* set, size_t bytes, int passes, int tries) {
  size_t count = bytes / sizeof(Words) / (2 * kLanes) * (2 * kLanes);
  double moved = static_cast<double>(count) * sizeof(Words) * passes, best = 0;
  for (int i = 0; i < tries; ++i) {
    best = std::max(best, moved / read_s(set, count, passes));
    best = std::max(best, moved / copy_s(set + count / 2, set, count / 2, passes));
  }
  return best;
}

double flops_per_s(int tries) {
  double best = 0;
  Floats chains[kChains], factor, addend;
  for (size_t i = 0; i < sizeof(Floats) / sizeof(float); ++i) factor[i] = 0.5f, addend[i] = 1.0f;
  for (Floats& chain : chains) chain = addend;
  for (int i = 0; i < tries; ++i) {
    keep(&factor);
    double start = now_s();
    for (int turn = 0; turn < kTurns; ++turn)
      for (Floats& chain : chains) chain = chain * factor + addend;
    keep(chains);
    double taken = now_s() - start;
    best = std::max(best, 2.0 * kTurns * kChains * (sizeof(Floats) / sizeof(float)) / taken);
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(std::atoi(argv[1]), &cores);
  if (std::atoi(argv[1]) >= 0 && sched_setaffinity(0, sizeof cores, &cores) != 0) return 3;
  size_t near_bytes = std::strtoull(argv[3], nullptr, 10), far_bytes = std::strtoull(argv[4], nullptr, 10);
  void *near_set = nullptr, *far_set = nullptr;
  if (posix_memalign(&near_set, 4096, near_bytes) != 0 || posix_memalign(&far_set, 4096, far_bytes) != 0) return 4;
  std::memset(near_set, 1, near_bytes);
  std::memset(far_set, 1, far_bytes);
  int passes = static_cast<int>((1 << 20) / near_bytes) + 1;  // about a megabyte: long for the clock, short for others
  for (int round = 0; round < std::atoi(argv[2]); ++round) {
    double near_rate = bytes_per_s(static_cast<Words*>(near_set), near_bytes, passes, 400);
    double far_rate = bytes_per_s(static_cast<Words*>(far_set), far_bytes, 1, 30);
    std::printf("%.6g %.6g %.6g\n", near_rate, far_rate, flops_per_s(400));
  }
  return 0;
}
