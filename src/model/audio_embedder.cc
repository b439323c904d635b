// SPDX-License-Identifier: Apache-2.0
#include "model/audio_embedder.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "compute/ops.h"
#include "model/media_config.h"
#include "model/tensor_binder.h"

namespace facet {

Result<std::unique_ptr<AudioEmbedder>> AudioEmbedder::Make(const MediaCheckpoint& checkpoint,
                                                           const ComputeContext& context) {
  TensorBinder binder(checkpoint.path(),
                      [&checkpoint](std::string_view name) { return checkpoint.Find(name); });
  WeightMatrix projection;
  binder.Matrix("mm.a.input_projection.weight", checkpoint.config().n_embd_text, kSamplesPerToken,
                &projection);
  FACET_RETURN_IF_ERROR(binder.status());
  return std::unique_ptr<AudioEmbedder>(new AudioEmbedder(projection, context));
}

Status AudioEmbedder::Check(const MediaItem& item) {
  if (item.kind != MediaKind::kAudio || item.audio_form != AudioForm::kRaw) {
    return Refuse("audio", "frames of log-mel",
                  "samples of sound: the model's encoder reads those");
  }
  if (item.n_tokens < 1 || item.n_tokens > kMostTokens) {
    return Refuse("audio", fmt::format("{} tokens", item.n_tokens),
                  fmt::format("1 to {} (an hour)", kMostTokens));
  }
  const auto n_samples = static_cast<size_t>(item.n_tokens) * kSamplesPerToken;
  if (item.sound.size() != n_samples) {
    return Refuse("audio", fmt::format("{} samples", item.sound.size()),
                  fmt::format("{} for {} tokens", n_samples, item.n_tokens));
  }
  return {};
}

void AudioEmbedder::Encode(std::span<const MediaItem* const> clips, float* soft) {
  constexpr int64_t kRowsAtATime = 256;
  for (const MediaItem* clip : clips) {
    for (int64_t row = 0; row < clip->n_tokens; row += kRowsAtATime) {
      const int64_t n_rows = std::min(kRowsAtATime, clip->n_tokens - row);
      float* normed = Reserve(&normed_, n_rows * kSamplesPerToken);
      RmsNorm(context_, clip->sound.data() + row * kSamplesPerToken, {nullptr, kEncoderNormEps},
              n_rows, kSamplesPerToken, normed);
      activations_.Set(normed, n_rows, kSamplesPerToken);
      MatMul(context_, projection_, activations_, soft);
      soft += n_rows * projection_.n_out;
    }
  }
}

}  // namespace facet
