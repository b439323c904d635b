// SPDX-License-Identifier: Apache-2.0
// The drafter's computation (reference.md 8): a few layers that read the keys and values of the
// target and guess what it will say. Each guess comes from the embedding of the token before and a
// hidden row, the target's for the first guess and the drafter's own for the others; all of them
// stand at one position and see what the target has seen before it. As in the target, a row's
// numbers do not depend on what is computed beside it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/aligned_vector.h"
#include "base/status.h"
#include "compute/context.h"
#include "compute/matmul.h"
#include "model/decoder_layers.h"
#include "model/drafter_checkpoint.h"
#include "model/drafter_weights.h"
#include "model/kv_store.h"
#include "model/runner.h"
#include "model/tap.h"

namespace facet {

/// What a drafter reads of its target.
struct DraftTarget {
  const Config* config;
  const Weights* weights;  ///< embeddings and rotation
  const KvStore* kv;
};

class Drafter {
 public:
  /// A drafter that fits the target (CheckFits). The checkpoint and what `target` points to must
  /// outlive it. `pack` as in RunnerOptions.
  static Result<std::unique_ptr<Drafter>> Make(const DrafterCheckpoint& checkpoint,
                                               const DraftTarget& target,
                                               const ComputeContext& context, bool pack);
  Drafter(const Drafter&) = delete;
  Drafter& operator=(const Drafter&) = delete;

  /// As Runner::Draft. The guess is the token of the highest score, of several the one of the
  /// lowest id. A drafter with centroids scores the tokens of the best clusters alone.
  std::vector<int32_t> Draft(std::span<const DraftTask> tasks);

  /// Receives, for each guess: "hidden" (from the second on), "input", "normed",
  /// "centroid_scores" and "clusterN.scores" (the tokens of cluster N in their order, of the rows
  /// that chose it), or "logits".
  void SetTap(Tap tap) { tap_ = std::move(tap); }

 private:
  /// A task that still wants guesses.
  struct Guess {
    const DraftTask* task;
    int32_t token;  ///< the last one that is known or guessed
    int32_t* out;   ///< where the next one goes
  };
  /// A cluster whose tokens are scored for a row.
  struct ClusterPick {
    int32_t cluster;
    int32_t row;
  };
  struct ScoredToken {
    float score;
    int32_t token;
  };

  Drafter(const DrafterConfig& config, Config body, DrafterWeights weights,
          const DraftTarget& target, const ComputeContext& context);

  void CheckTask(const DraftTask& task) const;
  void Start(std::span<const DraftTask> tasks, std::vector<int32_t>* drafts);
  void TakeUnfinished(int n_guessed);
  void PlaceRows();
  void EmbedInputs();
  void ChooseFromAll();
  void ChooseFromClusters();
  void PickClusters(const float* scores, int32_t row);
  void ScoreCluster(std::span<const ClusterPick> picks);

  [[nodiscard]] int64_t n_rows() const { return static_cast<int64_t>(guesses_.size()); }
  void Emit(std::string_view name, const AlignedVector<float>& values, int64_t n_columns) const;

  DrafterConfig config_;
  Config body_;  ///< its own layers, completed by what is the target's
  DrafterWeights weights_;
  DraftTarget target_;
  ComputeContext context_;
  DecoderLayers layers_;
  Tap tap_;

  // Of the running call; buffers are kept between calls.
  std::vector<Guess> guesses_;
  AlignedVector<float> hidden_;  // [n_rows, n_embd_target]
  AlignedVector<float> input_;   // [n_rows, 2 * n_embd_target]
  AlignedVector<float> normed_;  // [n_rows, n_embd]
  AlignedVector<float> scores_;  // [n_rows, n_vocab], or [n_rows, n_centroids]
  std::vector<int32_t> order_;   // of centroids
  std::vector<ClusterPick> picks_;
  std::vector<int64_t> cluster_rows_;
  AlignedVector<float> cluster_scores_;  // [rows of one cluster, its tokens]
  std::vector<ScoredToken> best_;        // [n_rows]
  Activations input_activations_;
  Activations normed_activations_;
  Activations cluster_activations_;
};

}  // namespace facet
