// Top-p sampling: the nucleus threshold by bisection, then one draw a row from a Mersenne twister.
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/function.h>

#include <algorithm>
#include <cstdint>
#include <random>

static double mass_above(const float* chance, int64_t width, float threshold) {
  double mass = 0;
  for (int64_t i = 0; i < width; ++i) mass += chance[i] > threshold ? chance[i] : 0.0f;
  return mass;
}

void run(tvm::ffi::TensorView probs, tvm::ffi::TensorView top_p, tvm::ffi::TensorView samples) {
  const int64_t rows = probs.size(0), width = probs.size(1);
  std::mt19937_64 generator(20240229);
  std::uniform_real_distribution<double> uniform(0.0, 1.0);
  for (int64_t row = 0; row < rows; ++row) {
    const float* chance = static_cast<const float*>(probs.data_ptr()) + row * width;
    const double p = static_cast<const float*>(top_p.data_ptr())[row];
    const int64_t top = std::max_element(chance, chance + width) - chance;
    float low = 0.0f, high = chance[top];
    if (p >= 1) high = 0.0f;
    for (int step = 0; step < 30 && p < 1; ++step) {
      const float middle = 0.5f * (low + high);
      (mass_above(chance, width, middle) > p ? low : high) = middle;
    }
    double left = uniform(generator) * mass_above(chance, width, high);
    int64_t token = top;
    for (int64_t i = 0; i < width && left >= 0; ++i) {
      if (chance[i] > high) left -= chance[token = i];
    }
    static_cast<int64_t*>(samples.data_ptr())[row] = token;
  }
}

TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, run);
