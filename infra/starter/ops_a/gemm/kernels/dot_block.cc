// C[M,N] = A[M,K] . B[N,K]^T in bf16 with fp32 accumulation, for few rows.
// A is widened once, its rows padded so that a power-of-two depth does not put them all in one cache set. Each tile of 3 x 4 dot
// products keeps its sums in registers; rows go in chunks that stay in L2 while the weight streams by, widened once per chunk.
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/function.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

namespace {

constexpr int64_t LANES = 8;
typedef float Floats __attribute__((vector_size(32)));
typedef uint32_t Words __attribute__((vector_size(32)));
typedef uint16_t Halves __attribute__((vector_size(16)));

inline Floats load(const float* from) {
  Floats value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

// bf16 is the upper half of a float.
inline Floats widen(const uint16_t* from) {
  Halves half;
  std::memcpy(&half, from, sizeof(half));
  Words word = __builtin_convertvector(half, Words) << 16;
  Floats value;
  std::memcpy(&value, &word, sizeof(value));
  return value;
}

inline float widen_one(uint16_t half) {
  uint32_t word = static_cast<uint32_t>(half) << 16;
  float value;
  std::memcpy(&value, &word, sizeof(value));
  return value;
}

// Round to nearest even; NaN stays NaN.
inline uint16_t narrow(float value) {
  uint32_t word;
  std::memcpy(&word, &value, sizeof(word));
  if ((word & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((word >> 16) | 0x40u);
  return static_cast<uint16_t>((word + 0x7fffu + ((word >> 16) & 1u)) >> 16);
}

inline float total(Floats value) {
  float sum = 0;
  for (int lane = 0; lane < LANES; ++lane) sum += value[lane];
  return sum;
}

// Without this the compiler loads a row's vector again for each column, and the loads become the limit.
#if defined(__x86_64__)
#define IN_REGISTER(value) __asm__("" : "+x"(value))
#else
#define IN_REGISTER(value)
#endif

constexpr int64_t PAD = 16;
constexpr int64_t ROW_CHUNK = 24;
constexpr int64_t DEPTH_CHUNK = 1024;
constexpr int COLS = 4;

inline Floats fetch(const float* from) { return load(from); }
inline Floats fetch(const uint16_t* from) { return widen(from); }
inline float fetch_one(float value) { return value; }
inline float fetch_one(uint16_t value) { return widen_one(value); }

// sums[row][col] += a[row] . b[col] over `depth`; b is bf16 (few rows: widened on the way) or a widened panel (many rows).
template <int ROWS, typename Weight>
void tile(const float* a, int64_t a_stride, const Weight* b, int64_t b_stride, int64_t depth, float* sums) {
  Floats parts[ROWS][COLS] = {};
  int64_t k = 0;
  for (; k + LANES <= depth; k += LANES) {
    Floats left[ROWS];
    for (int row = 0; row < ROWS; ++row) {
      left[row] = load(a + row * a_stride + k);
      IN_REGISTER(left[row]);
    }
    for (int col = 0; col < COLS; ++col) {
      const Floats right = fetch(b + col * b_stride + k);
      for (int row = 0; row < ROWS; ++row) parts[row][col] += left[row] * right;
    }
  }
  for (int row = 0; row < ROWS; ++row) {
    for (int col = 0; col < COLS; ++col) {
      float sum = total(parts[row][col]);
      for (int64_t rest = k; rest < depth; ++rest) sum += a[row * a_stride + rest] * fetch_one(b[col * b_stride + rest]);
      sums[row * COLS + col] += sum;
    }
  }
}

template <typename Weight>
void rows_by_tiles(const float* a, int64_t a_stride, const Weight* b, int64_t b_stride, int64_t rows, int64_t depth, float* sums) {
  int64_t row = 0;
  for (; rows - row > 4 || rows - row == 3; row += 3) tile<3>(a + row * a_stride, a_stride, b, b_stride, depth, sums + row * COLS);
  for (; rows - row >= 2; row += 2) tile<2>(a + row * a_stride, a_stride, b, b_stride, depth, sums + row * COLS);
  if (rows - row == 1) tile<1>(a + row * a_stride, a_stride, b, b_stride, depth, sums + row * COLS);
}

// Four columns of the result for a chunk of rows.
void column_block(const float* a, int64_t a_stride, const uint16_t* b, int64_t depth, int64_t rows, float* sums) {
  if (rows <= 4) return rows_by_tiles(a, a_stride, b, depth, rows, depth, sums);
  constexpr int64_t STRIDE = DEPTH_CHUNK + PAD;
  alignas(64) static thread_local float panel[COLS * STRIDE];
  for (int64_t start = 0; start < depth; start += DEPTH_CHUNK) {
    const int64_t length = std::min(DEPTH_CHUNK, depth - start);
    for (int col = 0; col < COLS; ++col) {
      for (int64_t k = 0; k < length; ++k) panel[col * STRIDE + k] = widen_one(b[col * depth + start + k]);
    }
    rows_by_tiles(a + start, a_stride, panel, STRIDE, rows, length, sums);
  }
}

}  // namespace

void run(tvm::ffi::TensorView A, tvm::ffi::TensorView B, tvm::ffi::TensorView C) {
  const int64_t rows = A.size(0), depth = A.size(1), width = B.size(0), stride = depth + PAD;
  const uint16_t* a = static_cast<const uint16_t*>(A.data_ptr());
  const uint16_t* b = static_cast<const uint16_t*>(B.data_ptr());
  uint16_t* c = static_cast<uint16_t*>(C.data_ptr());
  thread_local std::vector<float> wide;
  wide.resize(ROW_CHUNK * stride);
  for (int64_t first = 0; first < rows; first += ROW_CHUNK) {
    const int64_t count = std::min(ROW_CHUNK, rows - first);
    for (int64_t row = 0; row < count; ++row) {
      for (int64_t k = 0; k < depth; ++k) wide[row * stride + k] = widen_one(a[(first + row) * depth + k]);
    }
    for (int64_t col = 0; col < width; col += COLS) {  // N is a multiple of four in every definition this is written for
      float sums[ROW_CHUNK * COLS] = {};
      column_block(wide.data(), stride, b + col * depth, depth, count, sums);
      for (int64_t row = 0; row < count; ++row) {
        for (int at = 0; at < COLS; ++at) c[(first + row) * width + col + at] = narrow(sums[row * COLS + at]);
      }
    }
  }
}

TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, run);
