// output = x / sqrt(mean(x^2) + eps) * weight in bf16, fp32 inside. Pass one sums squares, pass two scales; the row stays in L1.
// With -DFUSED_ADD x = hidden_states + residual, and the residual is overwritten with the rounded sum.
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/function.h>

#include <cmath>
#include <cstdint>
#include <cstring>

#ifndef EPS
#define EPS 1e-6f
#endif

namespace {

constexpr int64_t WIDTH = HIDDEN_SIZE;
constexpr int64_t LANES = 8;
static_assert(WIDTH % (4 * LANES) == 0, "the row is cut in steps of four vectors");
typedef float Floats __attribute__((vector_size(32)));
typedef uint32_t Words __attribute__((vector_size(32)));
typedef uint16_t Halves __attribute__((vector_size(16)));

inline Floats widen(const uint16_t* from) {
  Halves half;
  std::memcpy(&half, from, sizeof(half));
  Words word = __builtin_convertvector(half, Words) << 16;
  Floats value;
  std::memcpy(&value, &word, sizeof(value));
  return value;
}

// Round to nearest even; NaN keeps its quiet bit because the carry cannot leave the mantissa of a canonical NaN.
inline void store(uint16_t* to, Floats value) {
  Words word;
  std::memcpy(&word, &value, sizeof(word));
  word = (word + 0x7fffu + ((word >> 16) & 1u)) >> 16;
  Halves half = __builtin_convertvector(word, Halves);
  std::memcpy(to, &half, sizeof(half));
}

inline Floats load(const float* from) {
  Floats value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

inline float inverse_rms(const Floats* sums) {
  Floats four = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  float sum = 0;
  for (int lane = 0; lane < LANES; ++lane) sum += four[lane];
  return 1.0f / std::sqrt(sum / WIDTH + EPS);
}

void row_norm(const uint16_t* x, uint16_t* residual, const uint16_t* weight, uint16_t* out) {
  alignas(32) float row[WIDTH];
  Floats sums[4] = {};
  for (int64_t i = 0; i < WIDTH; i += 4 * LANES) {
    for (int part = 0; part < 4; ++part) {
      const int64_t at = i + part * LANES;
      Floats value = widen(x + at);
#ifdef FUSED_ADD
      value += widen(residual + at);
      store(residual + at, value);
#endif
      std::memcpy(row + at, &value, sizeof(value));
      sums[part] += value * value;
    }
  }
  const float scale = inverse_rms(sums);
  for (int64_t i = 0; i < WIDTH; i += LANES) store(out + i, load(row + i) * scale * widen(weight + i));
}

inline uint16_t* halves(tvm::ffi::TensorView tensor) { return static_cast<uint16_t*>(tensor.data_ptr()); }

}  // namespace

#ifdef FUSED_ADD
void run(tvm::ffi::TensorView x, tvm::ffi::TensorView residual, tvm::ffi::TensorView weight, tvm::ffi::TensorView out) {
  for (int64_t row = 0; row < x.size(0); ++row) {
    const int64_t at = row * WIDTH;
    row_norm(halves(x) + at, halves(residual) + at, halves(weight), halves(out) + at);
  }
}
#else
void run(tvm::ffi::TensorView x, tvm::ffi::TensorView weight, tvm::ffi::TensorView out) {
  for (int64_t row = 0; row < x.size(0); ++row) row_norm(halves(x) + row * WIDTH, nullptr, halves(weight), halves(out) + row * WIDTH);
}
#endif

TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, run);
