// Paged MLA decode, one core: each cached row is widened once per block and serves all heads, as key and as value.
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/function.h>

#include "attention.h"

using tvm::ffi::TensorView;

namespace {
constexpr int WIDTH = HEAD_DIM_CKV + HEAD_DIM_KPE;
using Work = attention::Tile<NUM_QO_HEADS, WIDTH, HEAD_DIM_CKV, 16>;
thread_local Work tile;

void decode(TensorView q_nope, TensorView q_pe, TensorView ckv_cache, TensorView kpe_cache, TensorView kv_indptr,
            TensorView kv_indices, const int32_t* last, double sm_scale, TensorView output, TensorView lse) {
  auto* nope = static_cast<const uint16_t*>(q_nope.data_ptr());
  auto* rope = static_cast<const uint16_t*>(q_pe.data_ptr());
  auto* ckv = static_cast<const uint16_t*>(ckv_cache.data_ptr());
  auto* kpe = static_cast<const uint16_t*>(kpe_cache.data_ptr());
  auto* ends = static_cast<const int32_t*>(kv_indptr.data_ptr());
  auto* pages = static_cast<const int32_t*>(kv_indices.data_ptr());
  auto* out = static_cast<uint16_t*>(output.data_ptr());
  auto* sums = static_cast<float*>(lse.data_ptr());
  const float scale = static_cast<float>(sm_scale) * attention::LOG2_E;
  for (int64_t b = 0; b < q_nope.size(0); ++b) {
    const int count = ends[b + 1] - ends[b];
    const int length = count == 0 ? 0 : (last ? (count - 1) * PAGE_SIZE + last[b] : count * PAGE_SIZE);
    const int32_t* mine = pages + ends[b];
    tile.rows = NUM_QO_HEADS;
    for (int h = 0; h < NUM_QO_HEADS; ++h) {
      const int64_t row = b * NUM_QO_HEADS + h;
      attention::widen(nope + row * HEAD_DIM_CKV, tile.q[h], HEAD_DIM_CKV);
      attention::widen(rope + row * HEAD_DIM_KPE, tile.q[h] + HEAD_DIM_CKV, HEAD_DIM_KPE);
      for (int d = 0; d < WIDTH; ++d) tile.q[h][d] *= scale;
      tile.seen[h] = length;
    }
    tile.begin();
    tile.attend([&](int first, int n) {
      for (int t = 0; t < n; ++t) {
        const int token = first + t;
        const int64_t slot = static_cast<int64_t>(mine[token / PAGE_SIZE]) * PAGE_SIZE + token % PAGE_SIZE;
        attention::widen(ckv + slot * HEAD_DIM_CKV, tile.k[t], HEAD_DIM_CKV);
        attention::widen(kpe + slot * HEAD_DIM_KPE, tile.k[t] + HEAD_DIM_CKV, HEAD_DIM_KPE);
        std::memcpy(tile.v[t], tile.k[t], sizeof(tile.v[t]));
      }
    });
    for (int h = 0; h < NUM_QO_HEADS; ++h) {
      const int64_t row = b * NUM_QO_HEADS + h;
      tile.finish(h, out + row * HEAD_DIM_CKV, sums + row);
    }
  }
}
}  // namespace

#if PAGE_SIZE == 1
void run(TensorView q_nope, TensorView q_pe, TensorView ckv_cache, TensorView kpe_cache, TensorView kv_indptr,
         TensorView kv_indices, double sm_scale, TensorView output, TensorView lse) {
  decode(q_nope, q_pe, ckv_cache, kpe_cache, kv_indptr, kv_indices, nullptr, sm_scale, output, lse);
}
#else
void run(TensorView q_nope, TensorView q_pe, TensorView ckv_cache, TensorView kpe_cache, TensorView kv_indptr,
         TensorView kv_indices, TensorView kv_last_page_len, double sm_scale, TensorView output, TensorView lse) {
  auto* last = static_cast<const int32_t*>(kv_last_page_len.data_ptr());
  decode(q_nope, q_pe, ckv_cache, kpe_cache, kv_indptr, kv_indices, last, sm_scale, output, lse);
}
#endif
TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, run);
