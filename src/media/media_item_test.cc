// SPDX-License-Identifier: Apache-2.0
#include "media/media_item.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <vector>

namespace facet {
namespace {

TEST(MediaItem, EveryFieldThatAnEncoderReadsChangesTheHash) {
  const MediaItem picture{.kind = MediaKind::kImage,
                          .n_tokens = 1,
                          .width = 48,
                          .height = 48,
                          .pixels = std::vector<uint8_t>(48 * 48 * 3, 7),
                          .sound = {},
                          .hash = {}};
  const std::vector<std::function<void(MediaItem&)>> changes = {
      [](MediaItem&) {},
      [](MediaItem& m) { m.kind = MediaKind::kVideoFrame; },
      [](MediaItem& m) { m.n_tokens = 2; },
      [](MediaItem& m) { m.width = 96; },
      [](MediaItem& m) { m.height = 96; },
      [](MediaItem& m) { m.pixels.back() = 8; },
      [](MediaItem& m) { m.audio_form = AudioForm::kRaw; },
      [](MediaItem& m) { m.n_frames = 1; },
      [](MediaItem& m) { m.sound = {0.5F}; }};
  std::set<std::string> hashes;
  for (const auto& change : changes) {
    MediaItem changed = picture;
    change(changed);
    hashes.insert(HashOf(changed));
  }
  EXPECT_EQ(hashes.size(), changes.size());
  EXPECT_EQ(HashOf(picture), HashOf(MediaItem(picture)));
}

}  // namespace
}  // namespace facet
