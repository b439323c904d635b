// SPDX-License-Identifier: Apache-2.0
#include "model/packing.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "compute/packed_weights.h"
#include "compute/thread_pool.h"

namespace facet {
namespace {

// What is in memory twice at most, and what progress is told in.
constexpr int64_t kPieceBytes = int64_t{32} << 20;

/// The matrices that products use and `kernels` read packed, in the order of a forward pass. `W` is
/// Weights, const or not.
template <typename W>
auto PackedMatrices(const Kernels& kernels, W* weights) {
  using Matrix = std::conditional_t<std::is_const_v<W>, const WeightMatrix, WeightMatrix>;
  std::vector<Matrix*> matrices;
  const auto add = [&](std::initializer_list<Matrix*> some) {
    std::copy_if(some.begin(), some.end(), std::back_inserter(matrices), [&](const Matrix* w) {
      return w->data != nullptr && HasPackedKernel(kernels, w->type);
    });
  };
  for (auto& layer : weights->layers) {
    add({&layer.q, &layer.k, &layer.v, &layer.o, &layer.gate, &layer.up, &layer.down});
    add({&layer.mixture.router});
    for (auto& expert : layer.mixture.experts) {
      add({&expert.gate, &expert.up, &expert.down});
    }
    add({&layer.ple_model_proj, &layer.ple_gate, &layer.ple_proj});
  }
  add({&weights->output});
  return matrices;
}

int64_t FileBytes(const WeightMatrix& w) { return w.n_out * w.row_bytes(); }

/// Packs one matrix to `out` piece by piece; `on_piece` is told the bytes of the file in each.
void PackMatrix(const Checkpoint& checkpoint, ThreadPool* pool, const WeightMatrix& w,
                std::byte* out, const std::function<void(int64_t n_bytes)>& on_piece) {
  const int64_t group_bytes = PackedGroupBytes(w.type, w.n_in);
  const int64_t n_groups = PackedBytes(w) / group_bytes;
  const int64_t n_in_piece =
      std::max<int64_t>(1, kPieceBytes / std::max<int64_t>(1, kPackedRows * w.row_bytes()));
  for (int64_t first = 0; first < n_groups; first += n_in_piece) {
    const int64_t n = std::min(n_in_piece, n_groups - first);
    pool->RunRanges(n, 1, [&](int64_t begin, int64_t end) {
      for (int64_t group = first + begin; group < first + end; ++group) {
        PackGroup(w, group, out + group * group_bytes);
      }
    });
    const int64_t row = first * kPackedRows;
    const int64_t n_rows = std::min(n * kPackedRows, w.n_out - row);
    const auto n_bytes = n_rows * w.row_bytes();
    checkpoint.Release({w.row(row), static_cast<size_t>(n_bytes)});
    on_piece(n_bytes);
  }
}

}  // namespace

PackingPlan PlanPacking(const Weights& weights, const Kernels& kernels) {
  PackingPlan plan;
  for (const WeightMatrix* w : PackedMatrices(kernels, &weights)) {
    ++plan.n_matrices;
    plan.file_bytes += FileBytes(*w);
    plan.packed_bytes += PackedBytes(*w);
    plan.types.push_back(w->type);
  }
  std::sort(plan.types.begin(), plan.types.end());
  plan.types.erase(std::unique(plan.types.begin(), plan.types.end()), plan.types.end());
  return plan;
}

Status PackWeights(const Checkpoint& checkpoint, const ComputeContext& context,
                   const OnPacked& on_packed, Weights* weights) {
  const PackingPlan plan = PlanPacking(*weights, *context.kernels);
  if (plan.n_matrices == 0) {
    return {};
  }
  FACET_ASSIGN(weights->packed, PageMemory::Allocate(static_cast<size_t>(plan.packed_bytes),
                                                     "packed weights (--no-pack does without)"));
  int64_t done = 0;
  const auto tell = [&](int64_t n_bytes) {
    done += n_bytes;
    if (on_packed) {
      on_packed(done, plan.file_bytes);
    }
  };
  tell(0);
  std::byte* out = weights->packed.data();
  for (WeightMatrix* w : PackedMatrices(*context.kernels, weights)) {
    PackMatrix(checkpoint, context.pool, *w, out, tell);
    w->packed = out;
    out += PackedBytes(*w);
  }
  return {};
}

}  // namespace facet
