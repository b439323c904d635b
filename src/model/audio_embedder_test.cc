// SPDX-License-Identifier: Apache-2.0
#include "model/audio_embedder.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "model/vision_testing.h"

namespace facet::testing {
namespace {

/// The goldens' waveform, padded with zeros; its first frame is silent.
MediaItem Clip(const MediaGoldens& goldens) {
  MediaItem item;
  item.kind = MediaKind::kAudio;
  item.audio_form = AudioForm::kRaw;
  item.sound = goldens.Numbers("audio/waveform");
  item.n_tokens = 5;
  item.sound.resize(5 * AudioEmbedder::kSamplesPerToken);
  return item;
}

TEST(AudioEmbedder, SoftTokensAreTheReferences) {
  ThreadPool pool(2);
  const MediaGoldens goldens("unified-embedders");
  const MediaItem clip = Clip(goldens);
  const std::vector<float> wanted = goldens.Numbers("audio/soft_tokens");
  for (const char* source : {"mm-unified", "gguf/mmproj-mm-unified-bf16.gguf"}) {
    const MediaCheckpoint checkpoint = OpenMediaOrDie(source);
    for (const Isa isa : SupportedIsas()) {
      const auto embedder = *AudioEmbedder::Make(checkpoint, {&KernelsFor(isa), &pool});
      std::vector<float> soft(wanted.size());
      embedder->Encode(std::vector<const MediaItem*>{&clip}, soft.data());
      EXPECT_LT(DifferenceOverRms(soft, wanted), 1e-5) << source << ", " << NameOf(isa);
      EXPECT_EQ(std::vector<float>(soft.begin(), soft.begin() + 64), std::vector<float>(64));
    }
  }
}

TEST(AudioEmbedder, AClipHasTheSameBitsWhateverIsBesideIt) {
  ThreadPool pool(3);
  const MediaItem clip = Clip(MediaGoldens("unified-embedders"));
  MediaItem longer = clip;  // more than a piece of 256 tokens
  longer.n_tokens = 300;
  longer.sound.resize(300 * AudioEmbedder::kSamplesPerToken);
  std::copy_n(clip.sound.begin(), clip.sound.size(), longer.sound.end() - clip.sound.size());
  const MediaCheckpoint checkpoint = OpenMediaOrDie("mm-unified");
  const auto embedder = *AudioEmbedder::Make(checkpoint, {&KernelsFor(BestIsa()), &pool});
  std::vector<float> alone(5 * 64);
  embedder->Encode(std::vector<const MediaItem*>{&clip}, alone.data());
  std::vector<float> soft(305 * 64);
  embedder->Encode(std::vector<const MediaItem*>{&longer, &clip}, soft.data());
  EXPECT_EQ(std::vector<float>(soft.begin() + 295 * 64, soft.begin() + 300 * 64), alone);
  EXPECT_EQ(std::vector<float>(soft.begin() + 300 * 64, soft.end()), alone);
}

TEST(AudioEmbedder, RefusesWhatItCannotTake) {
  const auto message = [](const MediaItem& item) {
    const Status status = AudioEmbedder::Check(item);
    return status.ok() ? "" : status.error().Message();
  };
  MediaItem item = Clip(MediaGoldens("unified-embedders"));
  EXPECT_EQ(message(item), "");
  item.sound.pop_back();
  EXPECT_EQ(message(item), "audio: 3199 samples, wanted 3200 for 5 tokens");
  item.n_tokens = 0;
  EXPECT_EQ(message(item), "audio: 0 tokens, wanted 1 to 90000 (an hour)");
  item.audio_form = AudioForm::kLogMel;
  EXPECT_EQ(message(item),
            "audio: frames of log-mel, wanted samples of sound: the model's encoder reads those");
}

}  // namespace
}  // namespace facet::testing
