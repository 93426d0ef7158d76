// NeoX rotary embedding of q and k in bf16 with fp32 arithmetic: one pass, each element read and written once.
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/function.h>

#include <cstdint>
#include <cstring>

namespace {

constexpr int64_t LANES = 8;
constexpr int64_t HALF = ROTARY_DIM / 2;
static_assert(HALF % LANES == 0, "half of the rotary dimensions is cut in whole vectors");
typedef float Floats __attribute__((vector_size(32)));
typedef uint32_t Words __attribute__((vector_size(32)));
typedef uint16_t Halves __attribute__((vector_size(16)));

inline Floats load(const float* from) {
  Floats value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

inline Floats widen(const uint16_t* from) {
  Halves half;
  std::memcpy(&half, from, sizeof(half));
  Words word = __builtin_convertvector(half, Words) << 16;
  Floats value;
  std::memcpy(&value, &word, sizeof(value));
  return value;
}

// Round to nearest even.
inline void store(uint16_t* to, Floats value) {
  Words word;
  std::memcpy(&word, &value, sizeof(word));
  word = (word + 0x7fffu + ((word >> 16) & 1u)) >> 16;
  Halves half = __builtin_convertvector(word, Halves);
  std::memcpy(to, &half, sizeof(half));
}

void rotate_token(const uint16_t* x, uint16_t* out, const float* cos, const float* sin, int64_t heads) {
  for (int64_t head = 0; head < heads; ++head, x += HEAD_SIZE, out += HEAD_SIZE) {
    for (int64_t i = 0; i < HALF; i += LANES) {
      const Floats first = widen(x + i), second = widen(x + HALF + i), c = load(cos + i), s = load(sin + i);
      store(out + i, first * c - second * s);
      store(out + HALF + i, second * c + first * s);
    }
    if (HEAD_SIZE > ROTARY_DIM) std::memcpy(out + ROTARY_DIM, x + ROTARY_DIM, (HEAD_SIZE - ROTARY_DIM) * sizeof(*x));
  }
}

}  // namespace

void run(tvm::ffi::TensorView q, tvm::ffi::TensorView k, tvm::ffi::TensorView cache, tvm::ffi::TensorView positions,
         tvm::ffi::TensorView q_out, tvm::ffi::TensorView k_out) {
  const int64_t q_heads = q.size(1), k_heads = k.size(1);
  const int64_t* position = static_cast<const int64_t*>(positions.data_ptr());
  for (int64_t token = 0; token < q.size(0); ++token) {
    const float* cos = static_cast<const float*>(cache.data_ptr()) + position[token] * ROTARY_DIM;
    const int64_t q_at = token * q_heads * HEAD_SIZE, k_at = token * k_heads * HEAD_SIZE;
    rotate_token(static_cast<const uint16_t*>(q.data_ptr()) + q_at, static_cast<uint16_t*>(q_out.data_ptr()) + q_at, cos,
                 cos + HALF, q_heads);
    rotate_token(static_cast<const uint16_t*>(k.data_ptr()) + k_at, static_cast<uint16_t*>(k_out.data_ptr()) + k_at, cos,
                 cos + HALF, k_heads);
  }
}

TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, run);
