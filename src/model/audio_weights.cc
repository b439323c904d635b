// SPDX-License-Identifier: Apache-2.0
#include "model/audio_weights.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>
#include <string>
#include <string_view>
#include <utility>

#include "media/log_mel.h"
#include "model/audio_mixing.h"
#include "model/media_config.h"
#include "model/tensor_binder.h"

namespace facet {
namespace {

/// [kAudioWindow, n]: sines and cosines of the distance at frequencies from 1 down to 1 / 10000
/// (reference.md 4.3), the angles in float as the reference computes them.
AlignedVector<float> Sinusoids(int64_t n) {
  const int64_t n_scales = n / 2;
  const auto step =
      static_cast<float>(-std::log(10000.0) / static_cast<double>(n_scales > 1 ? n_scales - 1 : 1));
  AlignedVector<float> rows(static_cast<size_t>(kAudioWindow * n));
  for (int64_t i = 0; i < n_scales; ++i) {
    const auto exponent = static_cast<double>(static_cast<float>(i) * step);
    const auto frequency = static_cast<float>(std::exp(exponent));
    for (int64_t back = 0; back < kAudioWindow; ++back) {
      const auto angle = static_cast<double>(static_cast<float>(back) * frequency);
      float* row = rows.data() + back * n;
      row[i] = static_cast<float>(std::sin(angle));
      row[n_scales + i] = static_cast<float>(std::cos(angle));
    }
  }
  return rows;
}

/// The parts of a layer, by GGUF's names.
class LayerBinder {
 public:
  LayerBinder(const AudioConfig& config, int layer, TensorBinder* binder)
      : n_embd_(config.n_embd),
        n_ff_(config.n_ff),
        d_head_(config.n_embd / config.n_heads),
        prefix_(fmt::format("a.blk.{}.", layer)),
        binder_(*binder) {}

  void FeedForward(std::string_view suffix, AudioFeedForwardWeights* w) {
    const auto name = [suffix](std::string_view stem) { return fmt::format("{}{}", stem, suffix); };
    Norm(name("ffn_norm"), &w->pre_norm);
    Linear(name("ffn_up"), n_ff_, n_embd_, &w->up);
    Linear(name("ffn_down"), n_embd_, n_ff_, &w->down);
    Norm(name("ffn_post_norm"), &w->post_norm);
  }

  void Attention(const ComputeContext& context, AudioLayerWeights* w) {
    Norm("attn_pre_norm", &w->norm_pre_attn);
    Linear("attn_q", n_embd_, n_embd_, &w->q);
    Linear("attn_k", n_embd_, n_embd_, &w->k);
    Linear("attn_v", n_embd_, n_embd_, &w->v);
    Linear("attn_out", n_embd_, n_embd_, &w->post);
    Norm("attn_post_norm", &w->norm_post_attn);
    binder_.Vector(prefix_ + "per_dim_scale.weight", d_head_, &w->q_scale);
    const auto factor =
        static_cast<float>(1.0 / std::sqrt(static_cast<double>(d_head_)) / std::numbers::ln2);
    for (float& scale : w->q_scale) {
      scale *= factor;
    }
    WeightMatrix matrix;
    binder_.Matrix(prefix_ + "attn_k_rel.weight", n_embd_, n_embd_, &matrix);
    if (binder_.status().ok()) {
      const AlignedVector<float> sinusoids = Sinusoids(n_embd_);
      Activations rows;
      rows.Set(sinusoids.data(), kAudioWindow, n_embd_);
      w->relative.resize(sinusoids.size());
      MatMul(context, matrix, rows, w->relative.data());
    }
  }

  /// GGUF's names of the two norms stand the wrong way round (hf_media_names.cc).
  void Convolution(AudioLayerWeights* w) {
    Norm("conv_norm", &w->lconv_pre_norm);
    ClippedLinear start;
    Linear("conv_pw1", 2 * n_embd_, n_embd_, &start);
    w->lconv_value = w->lconv_gate = start;
    w->lconv_value.weight.n_out = w->lconv_gate.weight.n_out = n_embd_;
    if (binder_.status().ok()) {
      w->lconv_gate.weight.data = start.weight.row(n_embd_);
    }
    std::vector<float> taps;
    binder_.Floats(prefix_ + "conv_dw.weight", {n_embd_, kAudioTaps}, &taps);
    w->lconv_taps.resize(taps.size());
    for (size_t i = 0; i < taps.size(); ++i) {
      w->lconv_taps[i % kAudioTaps * static_cast<size_t>(n_embd_) + i / kAudioTaps] = taps[i];
    }
    Norm("norm_conv", &w->lconv_norm);
    Linear("conv_pw2", n_embd_, n_embd_, &w->lconv_end);
  }

  void Norm(std::string_view stem, std::vector<float>* weight) {
    binder_.Vector(fmt::format("{}{}.weight", prefix_, stem), n_embd_, weight);
  }

 private:
  void Linear(std::string_view stem, int64_t n_out, int64_t n_in, ClippedLinear* linear) {
    BindClippedLinear(fmt::format("{}{}", prefix_, stem), n_out, n_in, &binder_, linear);
  }

  int64_t n_embd_;
  int64_t n_ff_;
  int64_t d_head_;
  std::string prefix_;
  TensorBinder& binder_;
};

void BindConvolution(int index, int64_t n_in, int64_t n_out, TensorBinder* binder,
                     SubsamplingConvolution* convolution) {
  const std::string stem = fmt::format("a.conv1d.{}", index);
  std::vector<float> weight;
  std::vector<float> norm;
  binder->Floats(stem + ".weight", {n_out, n_in, 3, 3}, &weight);
  binder->Vector(stem + ".norm.weight", n_out, &norm);
  if (binder->status().ok()) {
    *convolution = MakeConvolution(weight, std::move(norm), n_in);
  }
}

}  // namespace

Result<AudioTowerWeights> BindAudioTower(const MediaCheckpoint& checkpoint,
                                         const ComputeContext& context) {
  const MediaConfig& media = checkpoint.config();
  const AudioConfig& c = *media.audio;
  const int d_head = c.n_embd / c.n_heads;
  if (c.n_embd % c.n_heads != 0 || d_head % kAudioLanes != 0) {
    return Refuse(checkpoint.path() + ", audio encoder",
                  fmt::format("{} heads of a width of {}", c.n_heads, c.n_embd),
                  fmt::format("heads of a multiple of {}", kAudioLanes));
  }
  TensorBinder binder(checkpoint.path(),
                      [&checkpoint](std::string_view name) { return checkpoint.Find(name); });
  AudioTowerWeights w;
  // The first convolution has as many channels as there are bands.
  BindConvolution(0, 1, kMelBands, &binder, &w.subsampling.first);
  BindConvolution(1, kMelBands, c.n_conv_channels, &binder, &w.subsampling.second);
  binder.Matrix("a.input_projection.weight", c.n_embd, int64_t{kMelBands} / 4 * c.n_conv_channels,
                &w.subsampling.projection);
  w.subsampling.norm_eps = kEncoderNormEps;
  w.layers.resize(static_cast<size_t>(c.n_layers));
  for (int l = 0; l < c.n_layers; ++l) {
    AudioLayerWeights* layer = &w.layers[static_cast<size_t>(l)];
    LayerBinder parts(c, l, &binder);
    parts.FeedForward("", &layer->feed_forward1);
    parts.Attention(context, layer);
    parts.Convolution(layer);
    parts.FeedForward("_1", &layer->feed_forward2);
    parts.Norm("ln2", &layer->norm_out);
  }
  binder.Matrix("a.pre_encode.out.weight", c.n_out, c.n_embd, &w.output);
  binder.Vector("a.pre_encode.out.bias", c.n_out, &w.output_bias);
  binder.Matrix("mm.a.input_projection.weight", media.n_embd_text, c.n_out, &w.projection);
  FACET_RETURN_IF_ERROR(binder.status());
  return w;
}

}  // namespace facet
