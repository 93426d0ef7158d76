// FP8 block-scaled MoE, one core: weights are widened two rows at a time and used at once by all tokens of the expert;
// nothing of a weight matrix is ever stored in fp32.
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/function.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

using tvm::ffi::TensorView;

namespace {
typedef float F8 __attribute__((vector_size(32)));
typedef int32_t I8 __attribute__((vector_size(32)));
constexpr int BLOCK = 128, H = HIDDEN_SIZE, I = INTERMEDIATE_SIZE, E = NUM_EXPERTS;

// e4m3 -> fp32: the low seven bits become fp32 exponent and mantissa bits, too small by 2^120; the scale carries that.
void widen(const int8_t* __restrict src, const float* scale, float* __restrict dst, int n) {
  for (int block = 0; block < n; block += BLOCK) {
    const float factor = scale[block / BLOCK] * 0x1p120f;
    for (int i = 0; i < BLOCK; ++i) {
      const int32_t bits = (static_cast<int32_t>(src[block + i]) << 20) & static_cast<int32_t>(0x87f00000);
      float value;
      std::memcpy(&value, &bits, 4);
      dst[block + i] = value * factor;
    }
  }
}

F8 load8(const float* p) {
  F8 v;
  std::memcpy(&v, p, sizeof(v));
  return v;
}

F8 sums(const F8* v) {  // lane i = sum of v[i]
  F8 a[4], b[2];
  for (int i = 0; i < 4; ++i)
    a[i] = __builtin_shuffle(v[2 * i], v[2 * i + 1], I8{0, 8, 2, 10, 4, 12, 6, 14}) +
           __builtin_shuffle(v[2 * i], v[2 * i + 1], I8{1, 9, 3, 11, 5, 13, 7, 15});
  for (int i = 0; i < 2; ++i)
    b[i] = __builtin_shuffle(a[2 * i], a[2 * i + 1], I8{0, 1, 8, 9, 4, 5, 12, 13}) +
           __builtin_shuffle(a[2 * i], a[2 * i + 1], I8{2, 3, 10, 11, 6, 7, 14, 15});
  return __builtin_shuffle(b[0], b[1], I8{0, 1, 2, 3, 8, 9, 10, 11}) +
         __builtin_shuffle(b[0], b[1], I8{4, 5, 6, 7, 12, 13, 14, 15});
}

// y[t][0..1] = x[t] . w[0..1] for T tokens at once (T <= 4), rows of `n`.
template <int T>
void dots(const float* const* x, const float* w, int n, float* const* y) {
  F8 acc[8] = {};
  for (int d = 0; d < n; d += 8) {
    const F8 w0 = load8(w + d), w1 = load8(w + n + d);
    for (int t = 0; t < T; ++t) {
      const F8 v = load8(x[t] + d);
      acc[2 * t] += v * w0;
      acc[2 * t + 1] += v * w1;
    }
  }
  const F8 all = sums(acc);
  for (int t = 0; t < T; ++t) std::memcpy(y[t], reinterpret_cast<const char*>(&all) + 8 * t, 8);
}

// y [count][rows] = x [count][n] times the quantised w [rows][n], transposed.
void product(const float* x, int count, const int8_t* w, const float* scale, int rows, int n, float* y) {
  alignas(64) float wide[2 * (H > I ? H : I)];
  for (int r = 0; r < rows; r += 2) {
    const float* factors = scale + (r / BLOCK) * (n / BLOCK);
    widen(w + static_cast<int64_t>(r) * n, factors, wide, n);
    widen(w + static_cast<int64_t>(r + 1) * n, factors, wide + n, n);
    for (int t = 0; t < count; t += 4) {
      const float* in[4];
      float* out[4];
      for (int j = 0; j < 4; ++j) {
        in[j] = x + static_cast<int64_t>(std::min(t + j, count - 1)) * n;
        out[j] = y + static_cast<int64_t>(std::min(t + j, count - 1)) * rows + r;
      }
      switch (count - t) {
        case 1: dots<1>(in, wide, n, out); break;
        case 2: dots<2>(in, wide, n, out); break;
        case 3: dots<3>(in, wide, n, out); break;
        default: dots<4>(in, wide, n, out);
      }
    }
  }
}

template <int N, class Less>
void best(int* order, int k, Less less) {
  std::iota(order, order + N, 0);
  std::partial_sort(order, order + k, order + N, less);
}

void route(const float* logits, const uint16_t* bias, float scaling, int* chosen, float* weight) {
  constexpr int SIZE = E / NUM_GROUPS;
  float score[E], biased[E], merit[NUM_GROUPS], total = 1e-20f;
  for (int e = 0; e < E; ++e) {
    const uint32_t bits = static_cast<uint32_t>(bias[e]) << 16;
    float b;
    std::memcpy(&b, &bits, 4);
    score[e] = 1.0f / (1.0f + std::exp(-logits[e]));
    biased[e] = score[e] + b;
  }
  for (int g = 0; g < NUM_GROUPS; ++g) {
    float sorted[SIZE];
    std::copy(biased + g * SIZE, biased + (g + 1) * SIZE, sorted);
    std::partial_sort(sorted, sorted + 2, sorted + SIZE, std::greater<float>());
    merit[g] = sorted[0] + sorted[1];
  }
  int groups[NUM_GROUPS], order[E];
  best<NUM_GROUPS>(groups, TOP_GROUPS, [&](int a, int b) { return merit[a] > merit[b]; });
  bool kept[NUM_GROUPS] = {};
  for (int g = 0; g < TOP_GROUPS; ++g) kept[groups[g]] = true;
  for (int e = 0; e < E; ++e)
    if (!kept[e / SIZE]) biased[e] = -INFINITY;
  best<E>(order, TOP_K, [&](int a, int b) { return biased[a] > biased[b]; });
  for (int k = 0; k < TOP_K; ++k) total += score[order[k]];
  for (int k = 0; k < TOP_K; ++k) {
    chosen[k] = order[k];
    weight[k] = score[order[k]] * scaling / total;
  }
}

uint16_t narrow(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fc0u;
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}
}  // namespace

void run(TensorView routing_logits, TensorView routing_bias, TensorView hidden_states, TensorView hidden_states_scale,
         TensorView gemm1_weights, TensorView gemm1_weights_scale, TensorView gemm2_weights,
         TensorView gemm2_weights_scale, int64_t local_expert_offset, double routed_scaling_factor, TensorView output) {
  const int tokens = static_cast<int>(hidden_states.size(0)), local = static_cast<int>(gemm1_weights.size(0));
  auto* logits = static_cast<const float*>(routing_logits.data_ptr());
  auto* bias = static_cast<const uint16_t*>(routing_bias.data_ptr());
  auto* x8 = static_cast<const int8_t*>(hidden_states.data_ptr());
  auto* xs = static_cast<const float*>(hidden_states_scale.data_ptr());
  auto* w1 = static_cast<const int8_t*>(gemm1_weights.data_ptr());
  auto* s1 = static_cast<const float*>(gemm1_weights_scale.data_ptr());
  auto* w2 = static_cast<const int8_t*>(gemm2_weights.data_ptr());
  auto* s2 = static_cast<const float*>(gemm2_weights_scale.data_ptr());
  auto* out = static_cast<uint16_t*>(output.data_ptr());
  thread_local std::vector<float> x, picked, inner, down, total, weight;
  thread_local std::vector<int> chosen, rows;
  x.resize(tokens * H), picked.resize(tokens * H), down.resize(tokens * H);
  inner.resize(tokens * 2 * I), total.assign(tokens * H, 0.0f);
  weight.resize(tokens * TOP_K), chosen.resize(tokens * TOP_K);
  for (int t = 0; t < tokens; ++t) {
    float scale[H / BLOCK];
    for (int b = 0; b < H / BLOCK; ++b) scale[b] = xs[b * tokens + t];
    widen(x8 + t * H, scale, x.data() + t * H, H);
    route(logits + t * E, bias, static_cast<float>(routed_scaling_factor), &chosen[t * TOP_K], &weight[t * TOP_K]);
  }
  for (int e = 0; e < local; ++e) {
    rows.clear();
    for (int i = 0; i < tokens * TOP_K; ++i)
      if (chosen[i] == e + local_expert_offset) rows.push_back(i);
    const int count = static_cast<int>(rows.size());
    if (count == 0) continue;
    for (int j = 0; j < count; ++j) std::memcpy(&picked[j * H], &x[rows[j] / TOP_K * H], H * sizeof(float));
    product(picked.data(), count, w1 + int64_t{e} * 2 * I * H, s1 + e * (2 * I / BLOCK) * (H / BLOCK), 2 * I, H, inner.data());
    for (int j = 0; j < count; ++j)
      for (int i = 0; i < I; ++i) {
        const float up = inner[j * 2 * I + i], gate = inner[j * 2 * I + I + i];
        picked[j * I + i] = up * gate / (1.0f + std::exp(-gate)) * weight[rows[j]];
      }
    product(picked.data(), count, w2 + int64_t{e} * H * I, s2 + e * (H / BLOCK) * (I / BLOCK), H, I, down.data());
    for (int j = 0; j < count; ++j)
      for (int d = 0; d < H; ++d) total[rows[j] / TOP_K * H + d] += down[j * H + d];
  }
  for (int i = 0; i < tokens * H; ++i) out[i] = narrow(total[i]);
}
TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, run);
