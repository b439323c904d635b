// SPDX-License-Identifier: Apache-2.0
// The tensors of a drafter, bound and arranged once. Of a drafter with centroids the rows of the
// output matrix stand cluster by cluster, so that a cluster is a matrix of its own and the usual
// products score its tokens.
#pragma once

#include <cstdint>
#include <vector>

#include "base/page_memory.h"
#include "base/status.h"
#include "compute/context.h"
#include "model/config.h"
#include "model/drafter_checkpoint.h"
#include "model/weights.h"

namespace facet {

struct DrafterWeights {
  /// The layers, output_norm, and `output` [n_vocab, n_embd] where the head is dense. No
  /// embeddings, whose rows are the target's, and no rotation.
  Weights body;
  WeightMatrix pre_projection;   // [n_embd, 2 * n_embd_target]
  WeightMatrix post_projection;  // [n_embd_target, n_embd]
  WeightMatrix centroids;        // [n_centroids, n_embd]
  /// [n_vocab / n_centroids, n_embd] per centroid; empty where the head is dense.
  std::vector<WeightMatrix> clusters;
  std::vector<int32_t> ordering;  // the token of each row of the clusters, one after the other
  PageMemory cluster_memory;      ///< what `clusters` points into
};

/// Finds every tensor; the first that is missing, misshapen or of a type that cannot be computed is
/// refused. Where `pack` is set the matrices are packed as those of a text model are (packing.h).
/// `body` describes the layers. The checkpoint must outlive the result. Fails also where memory
/// does.
Result<DrafterWeights> LoadDrafterWeights(const DrafterCheckpoint& checkpoint, const Config& body,
                                          const ComputeContext& context, bool pack);

}  // namespace facet
