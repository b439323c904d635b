// SPDX-License-Identifier: Apache-2.0
// Both senses together: soft tokens stand in the order of the items, with the bits they have alone.
#include "model/media_model.h"

#include <gtest/gtest.h>

#include "model/vision_testing.h"

namespace facet::testing {
namespace {

MediaItem Sound() {
  MediaItem item;
  item.kind = MediaKind::kAudio;
  item.audio_form = AudioForm::kRaw;
  item.n_tokens = 3;
  item.sound.resize(3 * 640);
  for (size_t i = 0; i < item.sound.size(); ++i) {
    item.sound[i] = static_cast<float>(i % 37) / 37.0F - 0.5F;
  }
  return item;
}

TEST(MediaModel, MixedItemsKeepTheirOrderAndBits) {
  ThreadPool pool(2);
  const MediaCheckpoint checkpoint = OpenMediaOrDie("mm-unified");
  const auto model = *MediaModel::Make(checkpoint, {&KernelsFor(BestIsa()), &pool});
  const MediaGoldens goldens("unified-embedders");
  const MediaItem wide = goldens.Picture("wide");
  const MediaItem tall = goldens.Picture("tall");
  const MediaItem sound = Sound();
  std::vector<float> wanted;
  for (const MediaItem* item : {&wide, &sound, &tall}) {
    const MediaItem* const items[] = {item};
    const std::vector<float> soft = *model->Encode(items);
    EXPECT_EQ(soft.size(), static_cast<size_t>(item->n_tokens) * 64);
    wanted.insert(wanted.end(), soft.begin(), soft.end());
  }
  const MediaItem* const items[] = {&wide, &sound, &tall};
  EXPECT_EQ(*model->Encode(items), wanted);
  EXPECT_TRUE(model->Encode({})->empty());
}

TEST(MediaModel, RefusesASenseItDoesNotHave) {
  ThreadPool pool(1);
  const MediaCheckpoint checkpoint = OpenMediaOrDie("mm-large");
  const auto model = *MediaModel::Make(checkpoint, {&KernelsFor(Isa::kScalar), &pool});
  const MediaItem sound = Sound();
  const MediaItem* const items[] = {&sound};
  const Result<std::vector<float>> soft = model->Encode(items);
  ASSERT_FALSE(soft.ok());
  EXPECT_EQ(soft.error().Message(), "media: sound, which the model has no encoder for");
}

}  // namespace
}  // namespace facet::testing
