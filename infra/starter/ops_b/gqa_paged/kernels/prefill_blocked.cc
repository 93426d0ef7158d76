// Paged causal prefill, one core: tiles of queries x the query heads of one kv head against blocks of widened keys.
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/function.h>

#include "attention.h"

using tvm::ffi::TensorView;

namespace {
constexpr int GROUP = NUM_QO_HEADS / NUM_KV_HEADS;
constexpr int QUERIES = 64 / GROUP;
using Work = attention::Tile<QUERIES * GROUP + (QUERIES * GROUP) % 2, HEAD_DIM, HEAD_DIM, 32>;
thread_local Work tile;
}  // namespace

void run(TensorView q, TensorView k_cache, TensorView v_cache, TensorView qo_indptr, TensorView kv_indptr,
         TensorView kv_indices, TensorView kv_last_page_len, double sm_scale, TensorView output, TensorView lse) {
  auto* query = static_cast<const uint16_t*>(q.data_ptr());
  auto* keys = static_cast<const uint16_t*>(k_cache.data_ptr());
  auto* vals = static_cast<const uint16_t*>(v_cache.data_ptr());
  auto* starts = static_cast<const int32_t*>(qo_indptr.data_ptr());
  auto* ends = static_cast<const int32_t*>(kv_indptr.data_ptr());
  auto* pages = static_cast<const int32_t*>(kv_indices.data_ptr());
  auto* last = static_cast<const int32_t*>(kv_last_page_len.data_ptr());
  auto* out = static_cast<uint16_t*>(output.data_ptr());
  auto* sums = static_cast<float*>(lse.data_ptr());
  const float scale = static_cast<float>(sm_scale) * attention::LOG2_E;
  for (int64_t b = 0; b + 1 < qo_indptr.size(0); ++b) {
    const int count = ends[b + 1] - ends[b], queries = starts[b + 1] - starts[b];
    const int length = count == 0 ? 0 : (count - 1) * PAGE_SIZE + last[b];
    const int32_t* mine = pages + ends[b];
    for (int h = 0; h < NUM_KV_HEADS; ++h)
      for (int base = 0; base < queries; base += QUERIES) {
        const int here = queries - base < QUERIES ? queries - base : QUERIES;
        tile.rows = here * GROUP;
        for (int r = 0; r < tile.rows; ++r) {
          const int64_t row = (starts[b] + base + r / GROUP) * int64_t{NUM_QO_HEADS} + h * GROUP + r % GROUP;
          attention::widen(query + row * HEAD_DIM, tile.q[r], HEAD_DIM);
          for (int d = 0; d < HEAD_DIM; ++d) tile.q[r][d] *= scale;
          const int seen = length - queries + base + r / GROUP + 1;
          tile.seen[r] = seen < 0 ? 0 : (seen > length ? length : seen);
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
        for (int r = 0; r < tile.rows; ++r) {
          const int64_t row = (starts[b] + base + r / GROUP) * int64_t{NUM_QO_HEADS} + h * GROUP + r % GROUP;
          tile.finish(r, out + row * HEAD_DIM, sums + row);
        }
      }
  }
}
TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, run);
