// SPDX-License-Identifier: Apache-2.0
#include "model/audio_tower.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "compute/ops.h"
#include "media/log_mel.h"
#include "model/audio_mixing.h"
#include "model/media_config.h"

namespace facet {
namespace {

/// Of the residual stream wherever it is normalised, and of branches before they are.
constexpr Bounds kSane = {-1e10F, 1e10F};

/// Rows of one pass through a linear: their inner values stay in a cache near by.
constexpr int64_t kRowsAtATime = 256;

/// Tokens of clips that are computed together, where one clip alone has not more: enough for the
/// products to be at full speed, few enough for the memory to be small.
constexpr int64_t kTokensTogether = 1024;

/// Calls step(first row, number of rows) for pieces of n_rows.
template <typename Step>
void ForEachPiece(int64_t n_rows, const Step& step) {
  for (int64_t row = 0; row < n_rows; row += kRowsAtATime) {
    step(row, std::min(kRowsAtATime, n_rows - row));
  }
}

NormParams Norm(const std::vector<float>& weight) { return {weight.data(), kEncoderNormEps}; }

}  // namespace

Result<std::unique_ptr<AudioTower>> AudioTower::Make(const MediaCheckpoint& checkpoint,
                                                     const ComputeContext& context) {
  FACET_ASSIGN(AudioTowerWeights weights, BindAudioTower(checkpoint, context));
  return std::unique_ptr<AudioTower>(new AudioTower(std::move(weights), context));
}

AudioTower::AudioTower(AudioTowerWeights weights, ComputeContext context)
    : weights_(std::move(weights)),
      context_(context),
      subsampling_(&weights_.subsampling, kMelBands) {}

Status AudioTower::Check(const MediaItem& item) {
  if (item.kind != MediaKind::kAudio || item.audio_form != AudioForm::kLogMel) {
    return Refuse("audio", "samples of sound",
                  "frames of log-mel: the model's encoder reads those");
  }
  if (item.n_frames < 1 || item.n_frames > kMostFrames) {
    return Refuse("audio", fmt::format("{} frames", item.n_frames),
                  fmt::format("1 to {} (10 minutes)", kMostFrames));
  }
  const int64_t n_values = int64_t{item.n_frames} * kMelBands;
  if (item.n_tokens != TokensOfFrames(item.n_frames) ||
      static_cast<int64_t>(item.sound.size()) != n_values) {
    return Refuse("audio", fmt::format("{} tokens and {} values", item.n_tokens, item.sound.size()),
                  fmt::format("{} and {} for {} frames", TokensOfFrames(item.n_frames), n_values,
                              item.n_frames));
  }
  return {};
}

void AudioTower::EmitTap(std::string_view name, const float* values, int64_t n_columns) const {
  if (tap_) {
    tap_(name, {values, static_cast<size_t>(n_rows() * n_columns)}, n_rows());
  }
}

void AudioTower::Encode(std::span<const MediaItem* const> clips, float* soft) {
  while (!clips.empty()) {
    size_t n_clips = 0;
    int64_t n_tokens = 0;
    while (n_clips < clips.size() &&
           (n_clips == 0 || n_tokens + clips[n_clips]->n_tokens <= kTokensTogether)) {
      n_tokens += clips[n_clips++]->n_tokens;
    }
    EncodeTogether(clips.first(n_clips), soft);
    soft += n_tokens * weights_.projection.n_out;
    clips = clips.subspan(n_clips);
  }
}

void AudioTower::EncodeTogether(std::span<const MediaItem* const> clips, float* soft) {
  const int64_t n = n_embd();
  positions_.clear();
  for (const MediaItem* clip : clips) {
    positions_.resize(positions_.size() + static_cast<size_t>(clip->n_tokens));
    std::iota(positions_.end() - clip->n_tokens, positions_.end(), 0);
  }
  for (AlignedVector<float>* rows : {&x_, &q_, &k_, &v_}) {
    Reserve(rows, n_rows() * n);
  }
  const int64_t n_at_a_time = std::min(kRowsAtATime, n_rows());
  Reserve(&h_, n_at_a_time * n);
  Reserve(&branch_, n_at_a_time * n);
  float* x = x_.data();
  for (const MediaItem* clip : clips) {
    subsampling_.Run(context_, clip->sound.data(), clip->n_frames, x);
    x += clip->n_tokens * n;
  }
  EmitTap("subsampled", x_.data(), n);
  for (size_t l = 0; l < weights_.layers.size(); ++l) {
    Layer(static_cast<int>(l));
  }
  Project(soft);
}

void AudioTower::Layer(int l) {
  const AudioLayerWeights& w = weights_.layers[static_cast<size_t>(l)];
  const int64_t n = n_embd();
  FeedForward(w.feed_forward1);
  EmitTap(fmt::format("feed_forward{}", l), x_.data(), n);
  Attend(w, l);
  Convolve(w);
  EmitTap(fmt::format("lconv{}", l), x_.data(), n);
  FeedForward(w.feed_forward2);
  ClampAndNorm(x_.data(), w.norm_out, n_rows(), x_.data());
  EmitTap(fmt::format("layer{}", l), x_.data(), n);
}

void AudioTower::ClampAndNorm(const float* x, const std::vector<float>& norm, int64_t n_rows,
                              float* h) const {
  Clamp(context_, x, kSane, n_rows * n_embd(), h);
  RmsNorm(context_, h, Norm(norm), n_rows, n_embd(), h);
}

/// x += 0.5 · rms(clamp(down(silu(up(rms(clamp(x)))))))
void AudioTower::FeedForward(const AudioFeedForwardWeights& w) {
  constexpr float kResidualWeight = 0.5F;
  const int64_t n = n_embd();
  const int64_t n_ff = w.up.weight.n_out;
  ForEachPiece(n_rows(), [&](int64_t row, int64_t n_piece) {
    float* x = x_.data() + row * n;
    float* hidden = Reserve(&hidden_, n_piece * n_ff);
    ClampAndNorm(x, w.pre_norm, n_piece, h_.data());
    input_.Set(h_.data(), n_piece, n);
    input_.Apply(context_, w.up, hidden);
    SigmoidMul(context_, hidden, hidden, n_piece * n_ff, hidden);
    input_.Set(hidden, n_piece, n_ff);
    input_.Apply(context_, w.down, branch_.data());
    ClampAndNorm(branch_.data(), w.post_norm, n_piece, branch_.data());
    Scale(context_, kResidualWeight, n_piece * n, branch_.data());
    Add(context_, branch_.data(), n_piece * n, x);
  });
}

/// x += rms(clamp(post(attention(q h, k h, v h)))) with h = rms(clamp(x))
void AudioTower::Attend(const AudioLayerWeights& w, int l) {
  const int64_t n = n_embd();
  const auto d_head = static_cast<int64_t>(w.q_scale.size());
  ForEachPiece(n_rows(), [&](int64_t row, int64_t n_piece) {
    ClampAndNorm(x_.data() + row * n, w.norm_pre_attn, n_piece, h_.data());
    input_.Set(h_.data(), n_piece, n);
    input_.Apply(context_, w.q, q_.data() + row * n);
    input_.Apply(context_, w.k, k_.data() + row * n);
    input_.Apply(context_, w.v, v_.data() + row * n);
  });
  const AudioAttentionTask task = {.n_heads = n / d_head,
                                   .d_head = d_head,
                                   .q = q_.data(),
                                   .k = k_.data(),
                                   .v = v_.data(),
                                   .q_scale = w.q_scale.data(),
                                   .relative = w.relative.data(),
                                   .positions = positions_};
  AudioAttention(context_, task, q_.data());
  float* branch = k_.data();
  ForEachPiece(n_rows(), [&](int64_t row, int64_t n_piece) {
    input_.Set(q_.data() + row * n, n_piece, n);
    input_.Apply(context_, w.post, branch + row * n);
  });
  EmitTap(fmt::format("attention{}", l), branch, n);
  ClampAndNorm(branch, w.norm_post_attn, n_rows(), branch);
  Add(context_, branch, n_rows() * n, x_.data());
}

/// x += end(silu(rms(clamp(convolution(value h · sigmoid(gate h)))))) with h = rms(x)
void AudioTower::Convolve(const AudioLayerWeights& w) {
  const int64_t n = n_embd();
  float* gated = q_.data();
  float* mixed = k_.data();
  ForEachPiece(n_rows(), [&](int64_t row, int64_t n_piece) {
    float* value = gated + row * n;
    RmsNorm(context_, x_.data() + row * n, Norm(w.lconv_pre_norm), n_piece, n, h_.data());
    input_.Set(h_.data(), n_piece, n);
    input_.Apply(context_, w.lconv_value, value);
    input_.Apply(context_, w.lconv_gate, branch_.data());
    SigmoidMul(context_, branch_.data(), value, n_piece * n, value);
  });
  CausalConvolution(context_, gated, w.lconv_taps.data(), positions_, n, mixed);
  ClampAndNorm(mixed, w.lconv_norm, n_rows(), mixed);
  SigmoidMul(context_, mixed, mixed, n_rows() * n, mixed);
  ForEachPiece(n_rows(), [&](int64_t row, int64_t n_piece) {
    input_.Set(mixed + row * n, n_piece, n);
    input_.Apply(context_, w.lconv_end, branch_.data());
    Add(context_, branch_.data(), n_piece * n, x_.data() + row * n);
  });
}

/// soft = projection(rms(output x + bias)) (reference.md 4.5)
void AudioTower::Project(float* soft) {
  const int64_t n_out = weights_.output.n_out;
  float* out = Reserve(&output_, n_rows() * n_out);
  ForEachPiece(n_rows(), [&](int64_t row, int64_t n_piece) {
    activations_.Set(x_.data() + row * n_embd(), n_piece, n_embd());
    MatMul(context_, weights_.output, activations_, out + row * n_out);
  });
  for (int64_t row = 0; row < n_rows(); ++row) {
    Add(context_, weights_.output_bias.data(), n_out, out + row * n_out);
  }
  EmitTap("output_proj", out, n_out);
  RmsNorm(context_, out, {nullptr, kEncoderNormEps}, n_rows(), n_out, out);
  ForEachPiece(n_rows(), [&](int64_t row, int64_t n_piece) {
    activations_.Set(out + row * n_out, n_piece, n_out);
    MatMul(context_, weights_.projection, activations_, soft + row * weights_.projection.n_out);
  });
}

}  // namespace facet
