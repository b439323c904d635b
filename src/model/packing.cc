// SPDX-License-Identifier: Apache-2.0
#include "model/packing.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <type_traits>
#include <utility>

#include "compute/packed_weights.h"
#include "compute/thread_pool.h"

namespace facet {
namespace {

// Of the file: what a thread packs at a time, has in memory twice, and tells as progress.
constexpr int64_t kPieceBytes = int64_t{4} << 20;

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

/// Groups of 16 rows of one matrix.
struct Piece {
  const WeightMatrix* w;
  int64_t first_group;
  int64_t n_groups;
  std::byte* out;  ///< of the first group
};

/// The pieces of `w`, which is packed to `out`.
void AddPieces(const WeightMatrix& w, std::byte* out, std::vector<Piece>* pieces) {
  const int64_t group_bytes = PackedGroupBytes(w.type, w.n_in);
  const int64_t n_groups = PackedBytes(w) / group_bytes;
  const int64_t n_in_piece =
      std::max<int64_t>(1, kPieceBytes / std::max<int64_t>(1, kPackedRows * w.row_bytes()));
  for (int64_t first = 0; first < n_groups; first += n_in_piece) {
    pieces->push_back(
        {&w, first, std::min(n_in_piece, n_groups - first), out + first * group_bytes});
  }
}

/// Returns the bytes of the file that it took, whose pages are given back.
int64_t PackPiece(const Checkpoint& checkpoint, const Piece& piece) {
  const WeightMatrix& w = *piece.w;
  const int64_t group_bytes = PackedGroupBytes(w.type, w.n_in);
  for (int64_t i = 0; i < piece.n_groups; ++i) {
    PackGroup(w, piece.first_group + i, piece.out + i * group_bytes);
  }
  const int64_t row = piece.first_group * kPackedRows;
  const int64_t n_rows = std::min(piece.n_groups * kPackedRows, w.n_out - row);
  const int64_t n_bytes = n_rows * w.row_bytes();
  checkpoint.Release({w.row(row), static_cast<size_t>(n_bytes)});
  return n_bytes;
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
  std::vector<Piece> pieces;
  std::byte* out = weights->packed.data();
  for (WeightMatrix* w : PackedMatrices(*context.kernels, weights)) {
    AddPieces(*w, out, &pieces);
    w->packed = out;
    out += PackedBytes(*w);
  }
  const auto tell = [&](int64_t done) {
    if (on_packed) {
      on_packed(done, plan.file_bytes);
    }
  };
  // A thread that is done with a piece takes the next: no thread waits for another until the end.
  std::atomic<size_t> next = 0;
  std::atomic<int64_t> n_done = 0;
  tell(0);
  context.pool->Run(context.pool->n_threads(), [&](int part) {
    for (size_t i = next++; i < pieces.size(); i = next++) {
      const int64_t done = n_done += PackPiece(checkpoint, pieces[i]);
      if (part == 0 && done < plan.file_bytes) {  // the loading thread's
        tell(done);
      }
    }
  });
  tell(plan.file_bytes);
  return {};
}

}  // namespace facet
