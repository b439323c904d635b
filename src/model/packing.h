// SPDX-License-Identifier: Apache-2.0
// Packing while loading: the matrices that products use are arranged for the processor
// (compute/packed_weights.h), and the memory of what was read for it is given back, so that a model
// lies in memory about once. Rows that are only looked up stay in the file.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/page_memory.h"
#include "base/status.h"
#include "base/tensor_type.h"
#include "compute/context.h"
#include "model/checkpoint.h"
#include "model/weights.h"

namespace facet {

/// What packing would do.
struct PackingPlan {
  int64_t n_matrices = 0;
  int64_t file_bytes = 0;         ///< of those matrices as they lie in the file
  int64_t packed_bytes = 0;       ///< the memory that they take packed
  std::vector<TensorType> types;  ///< that are packed; ascending
};
PackingPlan PlanPacking(const Weights& weights, const Kernels& kernels);

/// Told how many of the bytes in the file are packed: 0 first, all last, ascending between. On the
/// thread that loads. May be empty.
using OnPacked = std::function<void(int64_t done, int64_t total)>;

/// Given memory of the file that is not read again soon (Checkpoint::Release). Called by all
/// threads.
using OnRead = std::function<void(std::span<const std::byte> data)>;

/// The matrices that products use, in the order of a forward pass; some may be absent.
std::vector<WeightMatrix*> MatricesOf(Weights* weights);

/// Packs each of `matrices` for which the context's kernels have packed products, into `memory`; on
/// all threads of the pool. Fails where memory does.
Status PackMatrices(const std::vector<WeightMatrix*>& matrices, const ComputeContext& context,
                    const OnRead& on_read, const OnPacked& on_packed, PageMemory* memory);

/// Packs each matrix of `weights`, bound from `checkpoint`, for which the context's kernels have
/// packed products; on all threads of its pool. Fails where memory does.
Status PackWeights(const Checkpoint& checkpoint, const ComputeContext& context,
                   const OnPacked& on_packed, Weights* weights);

}  // namespace facet
