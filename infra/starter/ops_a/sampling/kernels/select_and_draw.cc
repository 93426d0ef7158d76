// Top-k, top-p and top-k-top-p sampling without a sort. Tokens rank by (probability down, index up), so ties are exact.
// top-k: one scan keeps a shrinking buffer above a rising threshold. top-p: draw, accept if the mass ranked before is <= p, else
// draw again among the tokens ranked before (exact: each draw is proportional over a superset of the nucleus).
// Uniform numbers come from the operating system, fresh for every call: no seed, no state to share with a fork.
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/function.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#if defined(__linux__)
#include <sys/random.h>
#endif

namespace {

constexpr int64_t BLOCK = 64;

struct Pick {
  float chance;
  int64_t token;
};

inline bool ranks_before(const Pick& a, const Pick& b) {
  return a.chance > b.chance || (a.chance == b.chance && a.token < b.token);
}

void uniforms(double* out, int64_t count) {
  std::vector<uint64_t> bits(count);
#if defined(__linux__)
  const int64_t bytes = count * static_cast<int64_t>(sizeof(uint64_t));
  if (getrandom(bits.data(), bytes, 0) != bytes)
#endif
  {
    std::random_device device;
    for (uint64_t& word : bits) word = (static_cast<uint64_t>(device()) << 32) | device();
  }
  for (int64_t i = 0; i < count; ++i) out[i] = static_cast<double>(bits[i] >> 11) * 0x1.0p-53;
}

bool any_above(const float* row, float threshold) {
  int32_t found = 0;
  for (int64_t i = 0; i < BLOCK; ++i) found |= row[i] > threshold;
  return found != 0;
}

void shrink(std::vector<Pick>& picks, int64_t k) {
  std::nth_element(picks.begin(), picks.begin() + (k - 1), picks.end(), ranks_before);
  picks.resize(k);
}

// The k tokens that rank first, in no order. A later token equal to the threshold ranks behind, so ">" is exact.
void best(const float* row, int64_t width, int64_t k, std::vector<Pick>& picks) {
  picks.clear();
  const int64_t capacity = std::max<int64_t>(4 * k, 256);
  float threshold = -1.0f;
  for (int64_t start = 0; start < width; start += BLOCK) {
    const int64_t end = std::min(start + BLOCK, width);
    if (end - start == BLOCK && !any_above(row + start, threshold)) continue;
    for (int64_t i = start; i < end; ++i) {
      if (row[i] > threshold) picks.push_back({row[i], i});
    }
    if (static_cast<int64_t>(picks.size()) >= capacity) {
      shrink(picks, k);
      threshold = picks[k - 1].chance;
    }
  }
  if (static_cast<int64_t>(picks.size()) > k) shrink(picks, k);
}

int64_t draw_from(const std::vector<Pick>& picks, int64_t count, double uniform) {
  double total = 0;
  for (int64_t i = 0; i < count; ++i) total += picks[i].chance;
  double left = uniform * total;
  int64_t last = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (picks[i].chance <= 0) continue;
    last = i;
    left -= picks[i].chance;
    if (left < 0) break;
  }
  return picks[last].token;
}

// Sixteen partial sums, so that the compiler may use vectors without reordering one chain.
template <typename Keep>
float block_sum(const float* row, int64_t count, Keep keep) {
  float lanes[16] = {};
  int64_t i = 0;
  for (; i + 16 <= count; i += 16) {
    for (int lane = 0; lane < 16; ++lane) lanes[lane] += keep(row[i + lane]) ? row[i + lane] : 0.0f;
  }
  float sum = 0;
  for (; i < count; ++i) sum += keep(row[i]) ? row[i] : 0.0f;
  for (float lane : lanes) sum += lane;
  return sum;
}

// Mass of the tokens that rank before `than`, by blocks; the block that holds it is cut at its index.
double mass_before(const float* row, int64_t width, const Pick& than, std::vector<float>& sums, int64_t block) {
  double total = 0;
  const float chance = than.chance;
  auto above = [chance](float value) { return value > chance; };
  auto above_or_equal = [chance](float value) { return value >= chance; };
  for (int64_t start = 0, at = 0; start < width; start += block, ++at) {
    const int64_t end = std::min(start + block, width);
    const int64_t cut = std::clamp(than.token, start, end);
    float sum = cut > start ? block_sum(row + start, cut - start, above_or_equal) : 0.0f;
    if (end > cut) sum += block_sum(row + cut, end - cut, above);
    sums[at] = sum;
    total += sum;
  }
  return total;
}

// The token at which the cumulative sum of the tokens ranked before `than` passes `left`.
Pick walk(const float* row, int64_t width, const Pick& than, const std::vector<float>& sums, int64_t block, double left) {
  const int64_t blocks = static_cast<int64_t>(sums.size());
  int64_t at = 0;
  while (at + 1 < blocks && left >= sums[at]) left -= sums[at++];
  while (at > 0 && sums[at] <= 0) --at;
  Pick last = than;
  for (int64_t i = at * block; i < std::min((at + 1) * block, width); ++i) {
    const Pick here{row[i], i};
    if (row[i] <= 0 || !ranks_before(here, than)) continue;
    last = here;
    left -= row[i];
    if (left < 0) break;
  }
  return last;
}

int64_t nucleus(const float* row, int64_t width, double p) {
  constexpr int64_t WALK_BLOCK = 512;
  if (p <= 0) return std::max_element(row, row + width) - row;
  thread_local std::vector<float> sums;
  sums.resize((width + WALK_BLOCK - 1) / WALK_BLOCK);
  Pick than{-1.0f, width};  // ranks behind every token
  double mass = mass_before(row, width, than, sums, WALK_BLOCK);
  for (;;) {
    double uniform;
    uniforms(&uniform, 1);
    const Pick drawn = walk(row, width, than, sums, WALK_BLOCK, uniform * mass);
    if (drawn.token >= width) return 0;  // no positive probability at all
    if (p >= 1 || drawn.token == than.token) return drawn.token;
    mass = mass_before(row, width, drawn, sums, WALK_BLOCK);
    if (mass <= p) return drawn.token;
    than = drawn;
  }
}

inline const float* row_of(tvm::ffi::TensorView probs, int64_t row) {
  return static_cast<const float*>(probs.data_ptr()) + row * probs.size(1);
}

int64_t filtered(const float* row, int64_t width, int64_t k, double p, double uniform) {
  thread_local std::vector<Pick> picks;
  if (k <= 0 || k >= width) return nucleus(row, width, p);
  best(row, width, k, picks);
  int64_t kept = static_cast<int64_t>(picks.size());
  if (p < 1) {
    std::sort(picks.begin(), picks.end(), ranks_before);
    double total = 0, before = 0;
    for (const Pick& pick : picks) total += pick.chance;
    int64_t stays = 0;
    while (stays < kept && (stays == 0 || (p > 0 && before <= p * total))) before += picks[stays++].chance;
    kept = stays;
  }
  return draw_from(picks, kept, uniform);
}

}  // namespace

void top_k_top_p(tvm::ffi::TensorView probs, tvm::ffi::TensorView top_k, tvm::ffi::TensorView top_p, tvm::ffi::TensorView samples) {
  const int64_t rows = probs.size(0), width = probs.size(1);
  thread_local std::vector<double> uniform;
  uniform.resize(rows);
  uniforms(uniform.data(), rows);
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t k = static_cast<const int32_t*>(top_k.data_ptr())[row];
    const double p = static_cast<const float*>(top_p.data_ptr())[row];
    static_cast<int64_t*>(samples.data_ptr())[row] = filtered(row_of(probs, row), width, k, p, uniform[row]);
  }
}

void top_k(tvm::ffi::TensorView probs, tvm::ffi::TensorView top_k, tvm::ffi::TensorView samples) {
  const int64_t rows = probs.size(0), width = probs.size(1);
  thread_local std::vector<double> uniform;
  uniform.resize(rows);
  uniforms(uniform.data(), rows);
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t k = static_cast<const int32_t*>(top_k.data_ptr())[row];
    static_cast<int64_t*>(samples.data_ptr())[row] = filtered(row_of(probs, row), width, k, 1.0, uniform[row]);
  }
}

void top_p(tvm::ffi::TensorView probs, tvm::ffi::TensorView top_p, tvm::ffi::TensorView samples) {
  for (int64_t row = 0; row < probs.size(0); ++row) {
    const double p = static_cast<const float*>(top_p.data_ptr())[row];
    static_cast<int64_t*>(samples.data_ptr())[row] = nucleus(row_of(probs, row), probs.size(1), p);
  }
}

TVM_FFI_DLL_EXPORT_TYPED_FUNC(top_k, top_k);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(top_p, top_p);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(top_k_top_p, top_k_top_p);
