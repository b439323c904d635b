// SPDX-License-Identifier: Apache-2.0
// Every stage of the conformer against transformers (testdata/media/README.md), from a directory
// and from the file that llama.cpp's converter made of it.
#include "model/audio_tower.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "media/log_mel.h"
#include "media/prepare_audio.h"
#include "model/media_model.h"
#include "model/vision_testing.h"

namespace facet::testing {
namespace {

constexpr const char* kCheckpoints[] = {"mm-etype", "gguf/mmproj-mm-etype-f16.gguf"};
constexpr size_t kWidth = 64;  // of a soft token

struct Case {
  const char* name;
  int n_frames;
};
constexpr Case kCases[] = {{"tokens1", 3},   {"tokens11", 42},  {"tokens12", 45},
                           {"tokens13", 52}, {"tokens30", 117}, {"tokens100", 397}};

/// The first frames of the goldens' input, over again from the beginning at its end.
MediaItem Clip(const MediaGoldens& goldens, int n_frames, int first = 0) {
  const std::vector<float> all = goldens.Numbers("features");
  MediaItem item;
  item.kind = MediaKind::kAudio;
  item.n_frames = n_frames;
  item.n_tokens = (n_frames + 3) / 4;
  item.sound.resize(static_cast<size_t>(n_frames) * kMelBands);
  for (size_t i = 0; i < item.sound.size(); ++i) {
    item.sound[i] = all[(i + static_cast<size_t>(first) * kMelBands) % all.size()];
  }
  return item;
}

std::vector<float> Encode(AudioTower* tower, const std::vector<const MediaItem*>& clips) {
  size_t n_tokens = 0;
  for (const MediaItem* clip : clips) {
    EXPECT_TRUE(AudioTower::Check(*clip).ok());
    n_tokens += static_cast<size_t>(clip->n_tokens);
  }
  std::vector<float> soft(n_tokens * kWidth);
  tower->Encode(clips, soft.data());
  return soft;
}

TEST(AudioTower, EveryStageIsTheReferences) {
  ThreadPool pool(2);
  const MediaGoldens goldens("audio-tower");
  double largest = 0;
  for (const Isa isa : {SupportedIsas().front(), BestIsa()}) {
    for (const char* source : kCheckpoints) {
      const MediaCheckpoint checkpoint = OpenMediaOrDie(source);
      const auto tower = *AudioTower::Make(checkpoint, {&KernelsFor(isa), &pool});
      for (const Case& one : kCases) {
        Taken taken;
        tower->SetTap(TapInto(&taken));
        const MediaItem clip = Clip(goldens, one.n_frames);
        taken["soft_tokens"] = Encode(tower.get(), {&clip});
        const std::vector<std::string> taps = goldens.Taps(one.name);
        EXPECT_EQ(taps.size(), 8U);
        for (const std::string& tap : taps) {
          ASSERT_TRUE(taken.contains(tap)) << tap;
          const std::vector<float> wanted = goldens.Numbers(std::string(one.name) + "/" + tap);
          ASSERT_EQ(taken[tap].size(), wanted.size()) << tap;
          const double difference = DifferenceOverRms(taken[tap], wanted);
          largest = std::max(largest, difference);
          EXPECT_LT(difference, kGoldenTolerance)
              << source << ", " << NameOf(isa) << ", " << one.name << ", " << tap;
        }
      }
    }
  }
  RecordProperty("largest_difference_over_rms", std::to_string(largest));
  EXPECT_GT(largest, 0.0);
}

/// The golden has invalid frames from the 20th on, which clips of ours never have. What lies before
/// them is that of the clip that ends there.
TEST(AudioTower, FramesBeyondTheEndAreZerosInFrontOfBothConvolutions) {
  ThreadPool pool(1);
  const MediaGoldens goldens("audio-tower");
  const MediaCheckpoint checkpoint = OpenMediaOrDie("mm-etype");
  const auto tower = *AudioTower::Make(checkpoint, {&KernelsFor(BestIsa()), &pool});
  const MediaItem clip = Clip(goldens, 20);
  const std::vector<float> soft = Encode(tower.get(), {&clip});
  std::vector<float> wanted = goldens.Numbers("hole/soft_tokens");
  wanted.resize(5 * kWidth);
  ASSERT_EQ(soft.size(), wanted.size());
  EXPECT_LT(DifferenceOverRms(soft, wanted), kGoldenTolerance);
}

TEST(AudioTower, AClipHasTheSameBitsWhateverIsBesideIt) {
  const MediaGoldens goldens("audio-tower");
  const MediaCheckpoint checkpoint = OpenMediaOrDie("mm-etype");
  // 397 and 200 tokens cross pieces of 256 rows at other places; together they are more than one
  // group.
  const std::vector<MediaItem> clips = {Clip(goldens, 52),      Clip(goldens, 1588),
                                        Clip(goldens, 3, 20),   Clip(goldens, 798, 7),
                                        Clip(goldens, 1588, 3), Clip(goldens, 45)};
  std::vector<const MediaItem*> all;
  std::vector<float> wanted;
  {
    ThreadPool pool(1);
    const auto tower = *AudioTower::Make(checkpoint, {&KernelsFor(BestIsa()), &pool});
    for (const MediaItem& clip : clips) {
      all.push_back(&clip);
      const std::vector<float> soft = Encode(tower.get(), {&clip});
      wanted.insert(wanted.end(), soft.begin(), soft.end());
    }
  }
  for (const Isa isa : SupportedIsas()) {
    for (const int n_threads : {1, 3}) {
      if (isa == Isa::kScalar && n_threads == 1) {
        continue;  // slow, and told apart by nothing from what follows
      }
      ThreadPool pool(n_threads);
      const auto tower = *AudioTower::Make(checkpoint, {&KernelsFor(isa), &pool});
      EXPECT_EQ(Encode(tower.get(), all), wanted) << NameOf(isa) << ", " << n_threads;
    }
  }
}

TEST(AudioTower, TokensDoNotHearWhatComesLater) {
  ThreadPool pool(2);
  const MediaGoldens goldens("audio-tower");
  const MediaCheckpoint checkpoint = OpenMediaOrDie("mm-etype");
  const auto tower = *AudioTower::Make(checkpoint, {&KernelsFor(BestIsa()), &pool});
  const MediaItem whole = Clip(goldens, 1588);
  const MediaItem beginning = Clip(goldens, 397);
  std::vector<float> soft = Encode(tower.get(), {&whole});
  std::vector<float> wanted = Encode(tower.get(), {&beginning});
  wanted.resize(99 * kWidth);  // the convolutions of the last look past the end
  soft.resize(99 * kWidth);
  EXPECT_EQ(soft, wanted);
}

/// The features of transformers are off by up to 5e-4 (testdata/media/README.md), which the tower
/// passes on.
TEST(AudioTower, FromAWaveform) {
  constexpr size_t kFirst = 8;
  constexpr size_t kTokens = 31;
  const auto features = *safetensors::File::Open(TestdataPath("media/audio/features.safetensors"));
  const auto* view = features.Find("speech.waveform");
  ASSERT_NE(view, nullptr);
  Waveform waveform;
  waveform.samples.resize(20000);
  std::memcpy(waveform.samples.data(), view->data.data(), 20000 * sizeof(float));
  const PreparedAudio prepared =
      *PrepareAudio(waveform, AudioForm::kLogMel, LongAudio::kRefuse, "speech");
  ASSERT_EQ(prepared.items.size(), 1U);
  ASSERT_EQ(prepared.items[0]->n_tokens, static_cast<int>(kTokens));
  ThreadPool pool(2);
  const MediaCheckpoint checkpoint = OpenMediaOrDie("mm-etype");
  const auto model = *MediaModel::Make(checkpoint, {&KernelsFor(BestIsa()), &pool});
  const MediaItem* const items[] = {prepared.items[0].get()};
  const std::vector<float> soft = *model->Encode(items);
  const std::vector<float> rows = MediaGoldens("mm-etype").Numbers("audio/embeddings");
  const std::vector<float> wanted(rows.begin() + kFirst * kWidth,
                                  rows.begin() + (kFirst + kTokens) * kWidth);
  ASSERT_EQ(soft.size(), wanted.size());
  EXPECT_LT(DifferenceOverRms(soft, wanted), 2e-3);
}

TEST(AudioTower, RefusesWhatItCannotTake) {
  const auto message = [](const MediaItem& item) {
    const Status status = AudioTower::Check(item);
    return status.ok() ? "" : status.error().Message();
  };
  MediaItem item = Clip(MediaGoldens("audio-tower"), 13);
  EXPECT_EQ(message(item), "");
  item.n_tokens = 3;
  EXPECT_EQ(message(item), "audio: 3 tokens and 1664 values, wanted 4 and 1664 for 13 frames");
  item.n_frames = 0;
  EXPECT_EQ(message(item), "audio: 0 frames, wanted 1 to 60000 (10 minutes)");
  item.n_frames = AudioTower::kMostFrames + 1;
  EXPECT_EQ(message(item), "audio: 60001 frames, wanted 1 to 60000 (10 minutes)");
  item.audio_form = AudioForm::kRaw;
  EXPECT_EQ(message(item),
            "audio: samples of sound, wanted frames of log-mel: the model's encoder reads those");
}

}  // namespace
}  // namespace facet::testing
