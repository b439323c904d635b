// SPDX-License-Identifier: Apache-2.0
#include "model/drafter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "base/check.h"

namespace facet {
namespace {

constexpr float kWorst = -std::numeric_limits<float>::infinity();

/// The drafter's layers with what they take from the target: which keys and values they read, how
/// far they see. None writes its own.
Result<Config> BodyFor(const Config& target, const DrafterCheckpoint& checkpoint) {
  Config body = checkpoint.config().body;
  body.n_shared_kv_layers = body.n_layers;
  body.sliding_window = target.sliding_window;
  for (LayerDesc& layer : body.layers) {
    const std::optional<int> donor = DonorLayer(target, layer.kind);
    FACET_CHECK(donor.has_value());
    layer.kv_layer = *donor;
    layer.n_kv_heads = target.layers[static_cast<size_t>(*donor)].n_kv_heads;
  }
  if (body.has_sliding_layers() && body.sliding_window < 2) {
    return Refuse(checkpoint.path(),
                  fmt::format("a model whose window is {} position", body.sliding_window),
                  "at least 2: a drafter sees what is before a row and not the row");
  }
  return body;
}

/// A NaN is worse than any number.
float Comparable(float score) {
  if (std::isnan(score)) {
    return kWorst;
  }
  return score;
}

}  // namespace

Drafter::Drafter(const DrafterConfig& config, Config body, DrafterWeights weights,
                 const DraftTarget& target, const ComputeContext& context)
    : config_(config),
      body_(std::move(body)),
      weights_(std::move(weights)),
      target_(target),
      context_(context),
      layers_(&body_, &weights_.body, context, target.kv) {}

Result<std::unique_ptr<Drafter>> Drafter::Make(const DrafterCheckpoint& checkpoint,
                                               const DraftTarget& target,
                                               const ComputeContext& context, bool pack) {
  FACET_ASSIGN(Config body, BodyFor(*target.config, checkpoint));
  FACET_ASSIGN(DrafterWeights weights, LoadDrafterWeights(checkpoint, body, context, pack));
  weights.body.inverse_frequency_sliding = target.weights->inverse_frequency_sliding;
  weights.body.inverse_frequency_full = target.weights->inverse_frequency_full;
  return std::unique_ptr<Drafter>(
      new Drafter(checkpoint.config(), std::move(body), std::move(weights), target, context));
}

void Drafter::Emit(std::string_view name, const AlignedVector<float>& values,
                   int64_t n_columns) const {
  EmitTap(tap_, name, std::span(values).first(static_cast<size_t>(n_rows() * n_columns)), n_rows());
}

/// Tasks are made by our own engine: anything wrong with one is a bug.
void Drafter::CheckTask(const DraftTask& task) const {
  FACET_CHECK(task.n_drafts >= 1 && task.pos >= 1);
  FACET_CHECK(task.token >= 0 && task.token < target_.config->n_vocab);
  FACET_CHECK(static_cast<int>(task.hidden.size()) == config_.n_embd_target);
}

std::vector<int32_t> Drafter::Draft(std::span<const DraftTask> tasks) {
  std::vector<int32_t> drafts;
  Start(tasks, &drafts);
  for (int n_guessed = 0; !guesses_.empty(); ++n_guessed) {
    EmbedInputs();
    input_activations_.Set(input_.data(), n_rows(), 2 * int64_t{config_.n_embd_target});
    MatMul(context_, weights_.pre_projection, input_activations_, layers_.x());
    layers_.Run();
    RmsNorm(context_, layers_.x(), {weights_.body.output_norm.data(), body_.norm_eps}, n_rows(),
            body_.n_embd, Reserve(&normed_, n_rows() * body_.n_embd));
    Emit("normed", normed_, body_.n_embd);
    normed_activations_.Set(normed_.data(), n_rows(), body_.n_embd);
    weights_.clusters.empty() ? ChooseFromAll() : ChooseFromClusters();
    TakeUnfinished(n_guessed + 1);
  }
  return drafts;
}

void Drafter::Start(std::span<const DraftTask> tasks, std::vector<int32_t>* drafts) {
  size_t n_drafts = 0;
  for (const DraftTask& task : tasks) {
    CheckTask(task);
    n_drafts += static_cast<size_t>(task.n_drafts);
  }
  drafts->resize(n_drafts);
  int32_t* out = drafts->data();
  guesses_.clear();
  guesses_.reserve(tasks.size());
  const auto n_tasks = static_cast<int64_t>(tasks.size());
  float* hidden = Reserve(&hidden_, n_tasks * config_.n_embd_target);
  for (const DraftTask& task : tasks) {
    guesses_.push_back({&task, task.token, out});
    out += task.n_drafts;
    hidden = std::copy(task.hidden.begin(), task.hidden.end(), hidden);
  }
  PlaceRows();
}

/// hidden = post_projection(normed), of the tasks that want more than `n_guessed`; the others
/// leave.
void Drafter::TakeUnfinished(int n_guessed) {
  const size_t n_before = guesses_.size();
  size_t kept = 0;
  for (size_t r = 0; r < n_before; ++r) {
    if (guesses_[r].task->n_drafts > n_guessed) {
      guesses_[kept] = guesses_[r];
      std::copy_n(normed_.data() + static_cast<int64_t>(r) * body_.n_embd, body_.n_embd,
                  normed_.data() + static_cast<int64_t>(kept) * body_.n_embd);
      ++kept;
    }
  }
  guesses_.resize(kept);
  if (kept == 0) {
    return;
  }
  if (kept < n_before) {
    PlaceRows();
    normed_activations_.Set(normed_.data(), n_rows(), body_.n_embd);
  }
  MatMul(context_, weights_.post_projection, normed_activations_, hidden_.data());
  Emit("hidden", hidden_, config_.n_embd_target);
}

/// A row sees what is before its position: the keys of the position itself are not there yet.
void Drafter::PlaceRows() {
  std::vector<LayerRow> rows;
  std::vector<SequenceBlocks> sequences;
  rows.reserve(guesses_.size());
  sequences.reserve(guesses_.size());
  for (const Guess& guess : guesses_) {
    LayerRow row;
    row.sequence = static_cast<int32_t>(sequences.size());
    row.pos = guess.task->pos;
    row.sliding = {std::max(0, row.pos - body_.sliding_window + 1), row.pos};
    row.full = {0, row.pos};
    rows.push_back(row);
    sequences.push_back(guess.task->blocks);
  }
  layers_.Begin(std::move(rows), sequences);
}

/// input = (embedding of the token, hidden)
void Drafter::EmbedInputs() {
  const int64_t n = config_.n_embd_target;
  float* input = Reserve(&input_, n_rows() * 2 * n);
  const float* hidden = hidden_.data();
  for (const Guess& guess : guesses_) {
    ScaledEmbedding(target_.weights->token_embd, guess.token, input);
    std::copy_n(hidden, n, input + n);
    hidden += n;
    input += 2 * n;
  }
  Emit("input", input_, 2 * n);
}

void Drafter::ChooseFromAll() {
  const int64_t n = body_.n_vocab;
  const float* scores = Reserve(&scores_, n_rows() * n);
  MatMul(context_, weights_.body.output, normed_activations_, scores_.data());
  Emit("logits", scores_, n);
  for (Guess& guess : guesses_) {
    int32_t best = 0;
    float best_score = kWorst;
    for (int32_t token = 0; token < body_.n_vocab; ++token) {
      if (scores[token] > best_score) {
        best_score = scores[token];
        best = token;
      }
    }
    guess.token = best;
    *guess.out++ = best;
    scores += n;
  }
}

/// Each cluster that a row chose is scored once, for all the rows that chose it.
void Drafter::ChooseFromClusters() {
  const float* scores = Reserve(&scores_, n_rows() * config_.n_centroids);
  MatMul(context_, weights_.centroids, normed_activations_, scores_.data());
  Emit("centroid_scores", scores_, config_.n_centroids);
  picks_.clear();
  for (int32_t row = 0; row < n_rows(); ++row) {
    PickClusters(scores + row * int64_t{config_.n_centroids}, row);
  }
  std::sort(picks_.begin(), picks_.end(), [](const ClusterPick& a, const ClusterPick& b) {
    return a.cluster != b.cluster ? a.cluster < b.cluster : a.row < b.row;
  });
  best_.assign(guesses_.size(), {kWorst, std::numeric_limits<int32_t>::max()});
  for (auto begin = picks_.begin(); begin != picks_.end();) {
    const auto end = std::find_if(begin, picks_.end(), [begin](const ClusterPick& pick) {
      return pick.cluster != begin->cluster;
    });
    ScoreCluster({begin, end});
    begin = end;
  }
  for (size_t row = 0; row < guesses_.size(); ++row) {
    guesses_[row].token = best_[row].token;
    *guesses_[row].out++ = best_[row].token;
  }
}

/// The best clusters of a row, on ties those of lower number.
void Drafter::PickClusters(const float* scores, int32_t row) {
  order_.resize(static_cast<size_t>(config_.n_centroids));
  std::iota(order_.begin(), order_.end(), 0);
  const auto end = order_.begin() + config_.n_top_centroids;
  std::partial_sort(order_.begin(), end, order_.end(), [scores](int32_t a, int32_t b) {
    const float score_a = Comparable(scores[a]);
    const float score_b = Comparable(scores[b]);
    return score_a != score_b ? score_a > score_b : a < b;
  });
  for (auto cluster = order_.begin(); cluster != end; ++cluster) {
    picks_.push_back({*cluster, row});
  }
}

/// All `picks` are of one cluster.
void Drafter::ScoreCluster(std::span<const ClusterPick> picks) {
  const auto cluster = static_cast<size_t>(picks.front().cluster);
  const WeightMatrix& rows = weights_.clusters[cluster];
  const auto n_picks = static_cast<int64_t>(picks.size());
  cluster_rows_.clear();
  cluster_rows_.reserve(picks.size());
  for (const ClusterPick& pick : picks) {
    cluster_rows_.push_back(pick.row);
  }
  cluster_activations_.SetRowsOf(&normed_activations_, cluster_rows_);
  const float* score = Reserve(&cluster_scores_, n_picks * rows.n_out);
  MatMul(context_, rows, cluster_activations_, cluster_scores_.data());
  if (tap_) {
    tap_(fmt::format("cluster{}.scores", cluster),
         std::span(cluster_scores_).first(static_cast<size_t>(n_picks * rows.n_out)), n_picks);
  }
  const int32_t* tokens = weights_.ordering.data() + static_cast<int64_t>(cluster) * rows.n_out;
  for (const ClusterPick& pick : picks) {
    ScoredToken& best = best_[static_cast<size_t>(pick.row)];
    for (int64_t i = 0; i < rows.n_out; ++i, ++score) {
      const float comparable = Comparable(*score);
      if (comparable > best.score || (comparable == best.score && tokens[i] < best.token)) {
        best = {comparable, tokens[i]};
      }
    }
  }
}

}  // namespace facet
