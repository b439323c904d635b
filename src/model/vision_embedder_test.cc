// SPDX-License-Identifier: Apache-2.0
// The 12B's embedder of pictures against transformers (testdata/media/README.md).
#include "model/vision_embedder.h"

#include <gtest/gtest.h>

#include "model/vision_testing.h"

namespace facet::testing {
namespace {

TEST(VisionEmbedder, EveryStageIsTheReferences) {
  ThreadPool pool(2);
  const MediaGoldens goldens("unified-embedders");
  for (const Isa isa : SupportedIsas()) {
    for (const char* source : {"mm-unified", "gguf/mmproj-mm-unified-bf16.gguf"}) {
      const MediaCheckpoint checkpoint = OpenMediaOrDie(source);
      const auto embedder = *VisionEmbedder::Make(checkpoint, {&KernelsFor(isa), &pool});
      for (const std::string name : {"wide", "tall"}) {
        Taken taken;
        embedder->SetTap(TapInto(&taken));
        const MediaItem picture = goldens.Picture(name);
        ASSERT_TRUE(embedder->Check(picture).ok());
        const MediaItem* const pictures[] = {&picture};
        std::vector<float> soft(static_cast<size_t>(picture.n_tokens) * 64);
        embedder->Encode(pictures, soft.data());
        EXPECT_EQ(taken["soft_tokens"], soft);
        for (const std::string& tap : goldens.Taps(name)) {
          EXPECT_LT(DifferenceOverRms(taken[tap], goldens.Numbers(name + "/" + tap)),
                    kGoldenTolerance)
              << source << ", " << NameOf(isa) << ", " << name << ", " << tap;
        }
      }
    }
  }
}

TEST(VisionEmbedder, DirectoryAndFileGiveTheSameBits) {
  ThreadPool pool(1);
  const ComputeContext context = {&KernelsFor(BestIsa()), &pool};
  const MediaItem picture = MediaGoldens("unified-embedders").Picture("tall");
  const MediaItem* const pictures[] = {&picture};
  std::vector<std::vector<float>> softs;
  for (const char* source : {"mm-unified", "gguf/mmproj-mm-unified-bf16.gguf"}) {
    const MediaCheckpoint checkpoint = OpenMediaOrDie(source);
    softs.emplace_back(static_cast<size_t>(picture.n_tokens) * 64);
    (*VisionEmbedder::Make(checkpoint, context))->Encode(pictures, softs.back().data());
  }
  EXPECT_EQ(softs[0], softs[1]);
}

}  // namespace
}  // namespace facet::testing
