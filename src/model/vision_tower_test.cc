// SPDX-License-Identifier: Apache-2.0
// Every stage of the vision tower against transformers (testdata/media/README.md), from directories
// and from the files that llama.cpp's converter made of them.
#include "model/vision_tower.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "model/vision_testing.h"

namespace facet::testing {
namespace {

struct Source {
  const char* goldens;
  const char* checkpoint;
};
constexpr Source kSources[] = {{"vision-small", "mm-etype"},
                               {"vision-small", "gguf/mmproj-mm-etype-f16.gguf"},
                               {"vision-large", "mm-large"},
                               {"vision-large", "gguf/mmproj-mm-large-f16.gguf"}};

std::vector<float> Encode(VisionTower* tower, const std::vector<const MediaItem*>& pictures) {
  size_t n_tokens = 0;
  for (const MediaItem* picture : pictures) {
    EXPECT_TRUE(tower->Check(*picture).ok());
    n_tokens += static_cast<size_t>(picture->n_tokens);
  }
  std::vector<float> soft(n_tokens * 64);
  tower->Encode(pictures, soft.data());
  return soft;
}

TEST(VisionTower, EveryStageIsTheReferences) {
  ThreadPool pool(2);
  double largest = 0;
  for (const Isa isa : SupportedIsas()) {
    const ComputeContext context = {&KernelsFor(isa), &pool};
    for (const Source& source : kSources) {
      const MediaGoldens goldens(source.goldens);
      const MediaCheckpoint checkpoint = OpenMediaOrDie(source.checkpoint);
      const auto tower = *VisionTower::Make(checkpoint, context);
      for (const std::string name : {"wide", "tall"}) {
        Taken taken;
        tower->SetTap(TapInto(&taken));
        const MediaItem picture = goldens.Picture(name);
        Encode(tower.get(), {&picture});
        const std::vector<std::string> taps = goldens.Taps(name);
        EXPECT_GE(taps.size(), 9U);
        for (const std::string& tap : taps) {
          ASSERT_TRUE(taken.contains(tap)) << tap;
          const std::vector<float> wanted = goldens.Numbers(name + "/" + tap);
          ASSERT_EQ(taken[tap].size(), wanted.size()) << tap;
          const double difference = DifferenceOverRms(taken[tap], wanted);
          largest = std::max(largest, difference);
          EXPECT_LT(difference, kGoldenTolerance)
              << source.checkpoint << ", " << NameOf(isa) << ", " << name << ", " << tap;
        }
      }
    }
  }
  RecordProperty("largest_over_rms", std::to_string(largest));
}

TEST(VisionTower, NeitherNeighboursNorThreadsChangeABit) {
  ThreadPool one(1);
  ThreadPool three(3);
  for (const Source& source : kSources) {
    const MediaGoldens goldens(source.goldens);
    const MediaCheckpoint checkpoint = OpenMediaOrDie(source.checkpoint);
    const MediaItem wide = goldens.Picture("wide");
    const MediaItem tall = goldens.Picture("tall");
    const auto alone = *VisionTower::Make(checkpoint, {&KernelsFor(BestIsa()), &one});
    const auto together = *VisionTower::Make(checkpoint, {&KernelsFor(BestIsa()), &three});
    std::vector<float> wanted = Encode(alone.get(), {&wide});
    const std::vector<float> second = Encode(alone.get(), {&tall});
    wanted.insert(wanted.end(), second.begin(), second.end());
    EXPECT_EQ(Encode(together.get(), {&wide, &tall}), wanted);
    // More than one group of rows.
    std::vector<const MediaItem*> many(100, &wide);
    many.push_back(&tall);
    const std::vector<float> all = Encode(together.get(), many);
    EXPECT_TRUE(std::equal(second.begin(), second.end(), all.end() - std::ssize(second)));
    EXPECT_TRUE(std::equal(wanted.begin(), wanted.end() - std::ssize(second), all.begin()));
  }
}

TEST(VisionTower, RefusesWhatIsNoPictureForIt) {
  ThreadPool pool(1);
  const MediaCheckpoint checkpoint = OpenMediaOrDie("mm-etype");
  const auto tower = *VisionTower::Make(checkpoint, {&KernelsFor(Isa::kScalar), &pool});
  const MediaItem good = MediaGoldens("vision-small").Picture("wide");
  const auto message = [&tower](const MediaItem& item) {
    const Status status = tower->Check(item);
    return status.ok() ? "" : status.error().Message();
  };
  EXPECT_EQ(message(good), "");
  MediaItem item = good;
  item.kind = MediaKind::kAudio;
  EXPECT_EQ(message(item), "media: sound, wanted a picture");
  item = good;
  item.width = 190;
  EXPECT_EQ(message(item), "picture of 190x96 pixels: its sides, wanted multiples of 48");
  item = good;
  item.height = 4128;
  EXPECT_EQ(message(item),
            "picture of 192x4128 pixels: larger than the encoder's table of positions, wanted at "
            "most 4096 pixels a side");
  item = good;
  item.n_tokens = 9;
  EXPECT_EQ(message(item), "picture of 192x96 pixels: 9 tokens, wanted 8, and at most 1120");
  item = good;
  item.pixels.pop_back();
  EXPECT_EQ(message(item), "picture of 192x96 pixels: 55295 bytes, wanted 55296");
}

}  // namespace
}  // namespace facet::testing
