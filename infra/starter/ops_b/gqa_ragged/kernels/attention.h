// Flash attention for one core in plain C++: fp32 accumulation over bf16 rows, scores and exponentials in base 2.
//
// A tile is up to ROWS query rows that share their keys (the query heads of one kv head, or several queries of them).
// Keys and values are widened block by block into fp32 scratch by the caller's `load`; the two products are 2 x 4 and 2 x 32
// register tiles over GCC vectors, which the compiler maps to whatever width the machine has. No intrinsics.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>

namespace attention {

typedef float F8 __attribute__((vector_size(32)));
typedef int32_t I8 __attribute__((vector_size(32)));
constexpr float LOG2_E = 1.4426950408889634f;

inline F8 load8(const float* p) {
  F8 v;
  std::memcpy(&v, p, sizeof(v));
  return v;
}
inline void store8(float* p, F8 v) { std::memcpy(p, &v, sizeof(v)); }

inline void widen(const uint16_t* __restrict src, float* __restrict dst, int n) {
  for (int i = 0; i < n; ++i) {
    uint32_t bits = static_cast<uint32_t>(src[i]) << 16;
    std::memcpy(dst + i, &bits, 4);
  }
}

// Round to nearest even; NaN stays a NaN.
inline void narrow(const float* __restrict src, uint16_t* __restrict dst, int n) {
  for (int i = 0; i < n; ++i) {
    uint32_t bits;
    std::memcpy(&bits, src + i, 4);
    uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    dst[i] = static_cast<uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? 0x7fc0u : rounded);
  }
}

// 2^x for x <= 0, eight at once: round to the nearest integer, degree-6 polynomial on [-0.5, 0.5], exponent by bits; 0
// below 2^-126.
inline F8 exp2_fast(F8 x) {
  const F8 low = F8{} - 126.0f, magic = F8{} + 12582912.0f;
  const F8 clamped = x < low ? low : x;
  const F8 shifted = clamped + magic;
  const F8 f = clamped - (shifted - magic);
  F8 p = F8{} + 1.5403530e-4f;
  p = p * f + 1.3333558e-3f;
  p = p * f + 9.6181291e-3f;
  p = p * f + 5.5504109e-2f;
  p = p * f + 2.4022651e-1f;
  p = p * f + 6.9314718e-1f;
  p = p * f + 1.0f;
  const F8 y = (F8)((I8)p + ((I8)shifted << 23));
  return x < low ? F8{} : y;
}
inline float exp2_fast(float x) { return exp2_fast(F8{} + x)[0]; }

// Sums of eight vectors, lane i = sum of v[i].
inline F8 sums(const F8 v[8]) {
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

template <int ROWS, int DQK, int DV, int BLOCK>
struct Tile {
  alignas(64) float q[ROWS][DQK];
  alignas(64) float o[ROWS][DV];
  alignas(64) float k[BLOCK][DQK];
  alignas(64) float v[BLOCK][DV];
  alignas(64) float s[ROWS][BLOCK];
  float top[ROWS], total[ROWS];
  int seen[ROWS];  // kv tokens that a row may see, from the start of the sequence
  int rows = 0;    // in use; padded to a pair with a zero row

  // q must already hold sm_scale * log2(e); call after rows, q and seen are set.
  void begin() {
    if (rows % 2) std::memset(q[rows], 0, sizeof(q[rows]));
    if (rows % 2) seen[rows] = 0;
    for (int r = 0; r < rows + rows % 2; ++r) {
      std::memset(o[r], 0, sizeof(o[r]));
      top[r] = -INFINITY;
      total[r] = 0.0f;
    }
  }

  void scores(int count) {
    for (int r = 0; r < rows; r += 2)
      for (int t = 0; t < count; t += 4) {
        F8 acc[8] = {};
        for (int d = 0; d < DQK; d += 8) {
          F8 q0 = load8(&q[r][d]), q1 = load8(&q[r + 1][d]);
          for (int j = 0; j < 4; ++j) {
            F8 key = load8(&k[t + j][d]);
            acc[j] += q0 * key;
            acc[4 + j] += q1 * key;
          }
        }
        F8 both = sums(acc);
        std::memcpy(&s[r][t], &both, 16);
        std::memcpy(&s[r + 1][t], reinterpret_cast<const char*>(&both) + 16, 16);
      }
  }

  // Scores of row r become weights against its running maximum; returns the factor for what was summed before.
  float soften(int r, int visible) {
    for (int t = visible; t < BLOCK; ++t) s[r][t] = -INFINITY;
    F8 highs = F8{} + top[r], parts = {};
    for (int t = 0; t < BLOCK; t += 8) {
      const F8 x = load8(&s[r][t]);
      highs = x > highs ? x : highs;
    }
    float high = highs[0], sum = 0.0f;
    for (int i = 1; i < 8; ++i) high = highs[i] > high ? highs[i] : high;
    const float factor = top[r] == -INFINITY ? 0.0f : exp2_fast(top[r] - high);
    for (int t = 0; t < BLOCK; t += 8) {
      const F8 w = exp2_fast(load8(&s[r][t]) - high);
      store8(&s[r][t], w);
      parts += w;
    }
    for (int i = 0; i < 8; ++i) sum += parts[i];
    total[r] = total[r] * factor + sum;
    top[r] = high;
    return factor;
  }

  void values(int r, int count, float f0, float f1) {
    for (int d = 0; d < DV; d += 32) {
      F8 a[4], b[4];
      for (int j = 0; j < 4; ++j) {
        a[j] = load8(&o[r][d + 8 * j]) * f0;
        b[j] = load8(&o[r + 1][d + 8 * j]) * f1;
      }
      for (int t = 0; t < count; ++t) {
        float w0 = s[r][t], w1 = s[r + 1][t];
        for (int j = 0; j < 4; ++j) {
          F8 val = load8(&v[t][d + 8 * j]);
          a[j] += val * w0;
          b[j] += val * w1;
        }
      }
      for (int j = 0; j < 4; ++j) {
        store8(&o[r][d + 8 * j], a[j]);
        store8(&o[r + 1][d + 8 * j], b[j]);
      }
    }
  }

  // `load(first, count)` fills k and v with tokens [first, first + count).
  template <class Load>
  void attend(Load load) {
    int length = 0;
    for (int r = 0; r < rows; ++r) length = seen[r] > length ? seen[r] : length;
    for (int first = 0; first < length; first += BLOCK) {
      int count = length - first < BLOCK ? length - first : BLOCK;
      load(first, count);
      for (int t = count; t % 4; ++t) std::memset(k[t], 0, sizeof(k[t]));
      scores(count);
      for (int r = 0; r < rows; r += 2) {
        int n0 = visible(r, first, count), n1 = visible(r + 1, first, count);
        if (n0 + n1 == 0) continue;
        float f0 = n0 ? soften(r, n0) : silence(r), f1 = n1 ? soften(r + 1, n1) : silence(r + 1);
        values(r, count, f0, f1);
      }
    }
  }

  int visible(int r, int first, int count) const {
    int n = seen[r] - first;
    return n < 0 ? 0 : (n > count ? count : n);
  }
  float silence(int r) {
    std::memset(s[r], 0, sizeof(s[r]));
    return 1.0f;
  }

  // A row that saw nothing gives zeros and -inf.
  void finish(int r, uint16_t* out, float* lse) {
    float scale = total[r] > 0.0f ? 1.0f / total[r] : 0.0f;
    for (int d = 0; d < DV; ++d) o[r][d] *= scale;
    narrow(o[r], out, DV);
    *lse = total[r] > 0.0f ? top[r] + std::log2(total[r]) : -INFINITY;
  }
};

}  // namespace attention
