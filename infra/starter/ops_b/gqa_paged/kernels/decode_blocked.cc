// Paged decode, one core: each kv head's keys and values are widened once per block and shared by its query heads.
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/function.h>

#include "attention.h"

using tvm::ffi::TensorView;

namespace {
constexpr int GROUP = NUM_QO_HEADS / NUM_KV_HEADS;
using Work = attention::Tile<GROUP + GROUP % 2, HEAD_DIM, HEAD_DIM, 32>;
thread_local Work tile;

void decode(TensorView q, TensorView k_cache, TensorView v_cache, TensorView kv_indptr, TensorView kv_indices,
            const int32_t* last, double sm_scale, TensorView output, TensorView lse) {
  auto* query = static_cast<const uint16_t*>(q.data_ptr());
  auto* keys = static_cast<const uint16_t*>(k_cache.data_ptr());
  auto* vals = static_cast<const uint16_t*>(v_cache.data_ptr());
  auto* ends = static_cast<const int32_t*>(kv_indptr.data_ptr());
  auto* pages = static_cast<const int32_t*>(kv_indices.data_ptr());
  auto* out = static_cast<uint16_t*>(output.data_ptr());
  auto* sums = static_cast<float*>(lse.data_ptr());
  const float scale = static_cast<float>(sm_scale) * attention::LOG2_E;
  for (int64_t b = 0; b < q.size(0); ++b) {
    const int count = ends[b + 1] - ends[b];
    const int length = count == 0 ? 0 : (last ? (count - 1) * PAGE_SIZE + last[b] : count * PAGE_SIZE);
    const int32_t* mine = pages + ends[b];
    for (int h = 0; h < NUM_KV_HEADS; ++h) {
      const int64_t row = b * NUM_QO_HEADS + h * GROUP;
      tile.rows = GROUP;
      for (int g = 0; g < GROUP; ++g) {
        attention::widen(query + (row + g) * HEAD_DIM, tile.q[g], HEAD_DIM);
        for (int d = 0; d < HEAD_DIM; ++d) tile.q[g][d] *= scale;
        tile.seen[g] = length;
      }
      tile.begin();
      tile.attend([&](int first, int n) {
        for (int t = 0; t < n; ++t) {
          const int token = first + t;
          const int64_t slot = static_cast<int64_t>(mine[token / PAGE_SIZE]) * PAGE_SIZE + token % PAGE_SIZE;
          attention::widen(keys + (slot * NUM_KV_HEADS + h) * HEAD_DIM, tile.k[t], HEAD_DIM);
          attention::widen(vals + (slot * NUM_KV_HEADS + h) * HEAD_DIM, tile.v[t], HEAD_DIM);
        }
      });
      for (int g = 0; g < GROUP; ++g) tile.finish(g, out + (row + g) * HEAD_DIM, sums + row + g);
    }
  }
}
}  // namespace

#if PAGE_SIZE == 1
void run(TensorView q, TensorView k_cache, TensorView v_cache, TensorView kv_indptr, TensorView kv_indices,
         double sm_scale, TensorView output, TensorView lse) {
  decode(q, k_cache, v_cache, kv_indptr, kv_indices, nullptr, sm_scale, output, lse);
}
#else
void run(TensorView q, TensorView k_cache, TensorView v_cache, TensorView kv_indptr, TensorView kv_indices,
         TensorView kv_last_page_len, double sm_scale, TensorView output, TensorView lse) {
  auto* last = static_cast<const int32_t*>(kv_last_page_len.data_ptr());
  decode(q, k_cache, v_cache, kv_indptr, kv_indices, last, sm_scale, output, lse);
}
#endif
TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, run);
