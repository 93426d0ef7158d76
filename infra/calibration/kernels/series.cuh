// out = weight * (1 + t + t^2 + ... + t^(TERMS - 1)) with t = x / (1 + |x|), in fp32: multiply-adds that wait for each other.
// The time of a row is a count of dependent instructions, not of bytes: one warp a block, at most one block for each of 132
// multiprocessors whatever the number of rows, every block through its own rows one after the other, the next value fetched ahead.
// Every row's first `again` dozens of terms are added up once before and forgotten by a product with zero, which no compiler may
// leave out. How many is an argument of the kernel, and never none (with an empty loop the plain form was slower on an H200 than the
// one that does 2 % twice): the slowed and the plain form take the same path.
#pragma once
#include <cstdint>

constexpr int LANES = 32, ROWS_AT_ONCE = 5, CHUNKS = COLUMNS / LANES, BLOCKS = ROWS_AT_ONCE * CHUNKS, DOZEN = 12;
static_assert(COLUMNS % LANES == 0 && BLOCKS <= 132 && TERMS % (100 * DOZEN) == 0);

__device__ __forceinline__ float add_terms(float sum, float t, float w, int dozens) {
#pragma unroll 1
  for (int dozen = 0; dozen < dozens; ++dozen) {
#pragma unroll
    for (int term = 0; term < DOZEN; ++term) sum = fmaf(sum, t, w);
  }
  return sum;
}

__global__ void __launch_bounds__(LANES)
series_rows(const float* __restrict__ x, const float* __restrict__ weight, float* __restrict__ out, int64_t rows, int dozens, int again) {
  const int64_t first = blockIdx.x / CHUNKS, column = blockIdx.x % CHUNKS * LANES + threadIdx.x;
  const float w = weight[column];
  float ahead = first < rows ? x[first * COLUMNS + column] : 0.0f;
  for (int64_t row = first; row < rows; row += ROWS_AT_ONCE) {
    const float t = ahead / (1.0f + fabsf(ahead));
    if (row + ROWS_AT_ONCE < rows) ahead = x[(row + ROWS_AT_ONCE) * COLUMNS + column];
    const float forgotten = add_terms(0.0f, t, w, again) * 0.0f;
    out[row * COLUMNS + column] = add_terms(forgotten, t, w, dozens);
  }
}
