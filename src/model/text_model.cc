// SPDX-License-Identifier: Apache-2.0
#include "model/text_model.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace facet {

TextModel::TextModel(const Config* config, Weights weights, const ComputeContext& context,
                     KvStore kv, const RunnerInfo& info, SpanSight spans)
    : config_(*config),
      weights_(std::move(weights)),
      context_(context),
      kv_(std::move(kv)),
      info_(info),
      spans_(spans),
      layers_(config, &weights_, context, &kv_) {}

void TextModel::SetTap(const Tap& tap) {
  tap_ = tap;
  layers_.SetTap(tap);
}

Result<std::span<const float>> TextModel::Run(const Batch& batch) {
  CheckBatch(batch);
  Begin(batch);
  Embed(batch);
  layers_.Run();
  Logits();
  return std::span<const float>(logits_).first(
      static_cast<size_t>(layers_.n_rows() * config_.n_vocab));
}

Result<std::vector<float>> TextModel::Encode(std::span<const MediaItem* const> /*items*/) {
  return Refuse("media", "a model without encoders", "text alone");
}

std::span<const float> TextModel::hidden() const {
  return std::span<const float>(hidden_).first(
      static_cast<size_t>(layers_.n_rows() * config_.n_embd));
}

Result<std::vector<int32_t>> TextModel::Draft(std::span<const DraftTask> /*tasks*/) {
  return Refuse("drafts", "a model without a drafter", "one");
}

std::span<std::byte> TextModel::block(KvGroup group, BlockId id) {
  const LayerKind kind = group == KvGroup::kFull ? LayerKind::kFull : LayerKind::kSliding;
  return {kv_.block(kind, id), kv_.block_bytes(kind)};
}

/// A batch is made by our own scheduler: anything wrong with it is a bug.
void TextModel::CheckBatch(const Batch& batch) const {
  for (size_t i = 0; i < batch.rows.size(); ++i) {
    const Row& row = batch.rows[i];
    FACET_CHECK(row.sequence >= 0 && static_cast<size_t>(row.sequence) < batch.sequences.size());
    FACET_CHECK(row.token >= 0 && row.token < config_.n_vocab);
    FACET_CHECK(row.pos >= 0 && row.pos < info_.n_context);
    const bool continues = i > 0 && batch.rows[i - 1].sequence == row.sequence;
    FACET_CHECK(!continues || batch.rows[i - 1].pos + 1 == row.pos);
    FACET_CHECK((row.span_begin < 0) == (row.span_end < 0) && row.span_begin <= row.pos);
    if (row.span_end > row.pos + 1) {  // the rest of the span follows in this batch
      const size_t last = i + static_cast<size_t>(row.span_end - 1 - row.pos);
      FACET_CHECK(last < batch.rows.size() && batch.rows[last].sequence == row.sequence);
      FACET_CHECK(batch.rows[last].pos == row.span_end - 1);
    }
  }
}

/// Soft rows take row 0 of the per-layer embeddings (reference.md 1.2).
void TextModel::Begin(const Batch& batch) {
  std::vector<LayerRow> rows;
  rows.reserve(batch.rows.size());
  for (const Row& row : batch.rows) {
    LayerRow r;
    r.sequence = row.sequence;
    r.pos = row.pos;
    r.sliding = VisibleTo(row, false);
    r.full = VisibleTo(row, true);
    r.per_layer_token = row.soft_row >= 0 ? 0 : row.token;
    r.is_wanted = row.wants_logits;
    rows.push_back(r);
  }
  layers_.Begin(std::move(rows), batch.sequences);
}

/// Soft rows replace the embedding unscaled.
void TextModel::Embed(const Batch& batch) {
  const int64_t n = config_.n_embd;
  float* out = layers_.x();
  for (const Row& row : batch.rows) {
    if (row.soft_row >= 0) {
      FACET_CHECK(batch.soft.size() >= static_cast<size_t>((row.soft_row + 1) * n));
      std::copy_n(batch.soft.begin() + row.soft_row * n, n, out);
    } else {
      ScaledEmbedding(weights_.token_embd, row.token, out);
    }
    out += n;
  }
  EmitTap(tap_, "embeddings", {layers_.x(), out}, layers_.n_rows());
}

/// What is before the row, on sliding layers within the window, and where the model has it the
/// row's picture (reference.md 1.10): on sliding layers what follows of it, or all of it on every
/// layer.
PositionRange TextModel::VisibleTo(const Row& row, bool is_full) const {
  const int window_begin = std::max(0, row.pos - config_.sliding_window + 1);
  PositionRange visible = {is_full ? 0 : window_begin, row.pos + 1};
  if (row.span_end >= 0 && spans_ == SpanSight::kEveryLayer) {
    visible = {std::min(visible.begin, row.span_begin), row.span_end};
  } else if (row.span_end >= 0 && spans_ == SpanSight::kSlidingLayers && !is_full) {
    visible.end = row.span_end;
  }
  return visible;
}

/// hidden = rms(x), logits = cap · tanh(output · hidden / cap)
void TextModel::Logits() {
  const int64_t n_rows = layers_.n_rows();
  const int64_t n = config_.n_embd;
  if (n_rows == 0) {
    return;
  }
  float* hidden = Reserve(&hidden_, n_rows * n);
  RmsNorm(context_, layers_.x(), {weights_.output_norm.data(), config_.norm_eps}, n_rows, n,
          hidden);
  EmitTap(tap_, "final_norm", {hidden, static_cast<size_t>(n_rows * n)}, n_rows);
  float* logits = Reserve(&logits_, n_rows * config_.n_vocab);
  hidden_activations_.Set(hidden, n_rows, n);
  MatMul(context_, weights_.output, hidden_activations_, logits);
  if (config_.logit_softcap > 0) {
    Softcap(context_, config_.logit_softcap, n_rows * config_.n_vocab, logits);
  }
}

}  // namespace facet
