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

/// The matrices that products use, in the order of a forward pass. `W` is Weights, const or not.
template <typename W>
auto AllMatrices(W* weights) {
  using Matrix = std::conditional_t<std::is_const_v<W>, const WeightMatrix, WeightMatrix>;
  std::vector<Matrix*> matrices;
  const auto add = [&](std::initializer_list<Matrix*> some) {
    matrices.insert(matrices.end(), some);
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

/// Those of `matrices` that are there and that `kernels` read packed.
template <typename Matrix>
std::vector<Matrix*> PackedOnes(const Kernels& kernels, const std::vector<Matrix*>& matrices) {
  std::vector<Matrix*> packed;
  std::copy_if(matrices.begin(), matrices.end(), std::back_inserter(packed), [&](const Matrix* w) {
    return w->data != nullptr && HasPackedKernel(kernels, w->type);
  });
  return packed;
}

template <typename Matrix>
PackingPlan PlanOf(const std::vector<Matrix*>& matrices) {
  PackingPlan plan;
  for (const WeightMatrix* w : matrices) {
    ++plan.n_matrices;
    plan.file_bytes += w->n_out * w->row_bytes();
    plan.packed_bytes += PackedBytes(*w);
    plan.types.push_back(w->type);
  }
  std::sort(plan.types.begin(), plan.types.end());
  plan.types.erase(std::unique(plan.types.begin(), plan.types.end()), plan.types.end());
  return plan;
}

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
int64_t PackPiece(const OnRead& on_read, const Piece& piece) {
  const WeightMatrix& w = *piece.w;
  const int64_t group_bytes = PackedGroupBytes(w.type, w.n_in);
  for (int64_t i = 0; i < piece.n_groups; ++i) {
    PackGroup(w, piece.first_group + i, piece.out + i * group_bytes);
  }
  const int64_t row = piece.first_group * kPackedRows;
  const int64_t n_rows = std::min(piece.n_groups * kPackedRows, w.n_out - row);
  const int64_t n_bytes = n_rows * w.row_bytes();
  on_read({w.row(row), static_cast<size_t>(n_bytes)});
  return n_bytes;
}

}  // namespace

PackingPlan PlanPacking(const Weights& weights, const Kernels& kernels) {
  return PlanOf(PackedOnes(kernels, AllMatrices(&weights)));
}

std::vector<WeightMatrix*> MatricesOf(Weights* weights) { return AllMatrices(weights); }

Status PackMatrices(const std::vector<WeightMatrix*>& matrices, const ComputeContext& context,
                    const OnRead& on_read, const OnPacked& on_packed, PageMemory* memory) {
  const std::vector<WeightMatrix*> packed = PackedOnes(*context.kernels, matrices);
  const PackingPlan plan = PlanOf(packed);
  if (plan.n_matrices == 0) {
    return {};
  }
  FACET_ASSIGN(*memory, PageMemory::Allocate(static_cast<size_t>(plan.packed_bytes),
                                             "packed weights (--no-pack does without)"));
  std::vector<Piece> pieces;
  std::byte* out = memory->data();
  for (WeightMatrix* w : packed) {
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
      const int64_t done = n_done += PackPiece(on_read, pieces[i]);
      if (part == 0 && done < plan.file_bytes) {  // the loading thread's
        tell(done);
      }
    }
  });
  tell(plan.file_bytes);
  return {};
}

Status PackWeights(const Checkpoint& checkpoint, const ComputeContext& context,
                   const OnPacked& on_packed, Weights* weights) {
  const OnRead release = [&checkpoint](std::span<const std::byte> data) {
    checkpoint.Release(data);
  };
  return PackMatrices(MatricesOf(weights), context, release, on_packed, &weights->packed);
}

}  // namespace facet
