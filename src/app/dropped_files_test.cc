// SPDX-License-Identifier: Apache-2.0
#include "app/dropped_files.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "support/testing.h"

namespace facet {
namespace {

using Paths = std::vector<std::string>;

TEST(SplitPaths, KnowsQuotesBackslashesAndTheHome) {
  EXPECT_EQ(*SplitPaths("  a.png  b.wav\n", "/h"), (Paths{"a.png", "b.wav"}));
  EXPECT_EQ(*SplitPaths("'my cat.png' \"my \\\"dog\\\".png\" my\\ bird.png", "/h"),
            (Paths{"my cat.png", "my \"dog\".png", "my bird.png"}));
  EXPECT_EQ(*SplitPaths("'it'\\''s.png' 'a\\b.png'", "/h"), (Paths{"it's.png", "a\\b.png"}));
  EXPECT_EQ(*SplitPaths("~/a.png '~/b.png' ~c.png ~", "/h"),
            (Paths{"/h/a.png", "~/b.png", "~c.png", "/h"}));
  EXPECT_EQ(*SplitPaths("~/a.png", ""), Paths{"~/a.png"});
  EXPECT_EQ(*SplitPaths(" ", "/h"), Paths{});
  const auto open = SplitPaths("'a.png", "/h");
  ASSERT_FALSE(open.ok());
  EXPECT_EQ(open.error().Message(), "path: no closing ', wanted a path, in quotes or not");
}

TEST(KindOfName, GoesByTheEnding) {
  EXPECT_EQ(KindOfName("/a/B.JPG"), MediaPartKind::kImage);
  EXPECT_EQ(KindOfName("a.wav"), MediaPartKind::kAudio);
  EXPECT_EQ(KindOfName("a.mp4"), MediaPartKind::kVideo);
  EXPECT_EQ(KindOfName("a.txt"), std::nullopt);
  EXPECT_EQ(KindOfName("png"), std::nullopt);
}

TEST(DroppedFiles, AreTheOnlyWordsOfTheLine) {
  const std::string folder = testing::MakeTempDir();
  const std::string picture = folder + "/my cat.png";
  const std::string sound = folder + "/a.wav";
  ASSERT_TRUE(WriteFile(picture, "x").ok());
  ASSERT_TRUE(WriteFile(sound, "x").ok());
  const std::vector<MediaFile> both = {{MediaPartKind::kImage, picture},
                                       {MediaPartKind::kAudio, sound}};
  EXPECT_EQ(DroppedFiles("'" + picture + "' " + sound + " ", ""), both);
  EXPECT_EQ(DroppedFiles("'" + picture + "' what is it", ""), std::vector<MediaFile>{});
  EXPECT_EQ(DroppedFiles(folder + "/b.wav", ""), std::vector<MediaFile>{});
  EXPECT_EQ(DroppedFiles(folder, ""), std::vector<MediaFile>{});
  EXPECT_EQ(DroppedFiles("it's", ""), std::vector<MediaFile>{});
  EXPECT_EQ(DroppedFiles("", ""), std::vector<MediaFile>{});
}

}  // namespace
}  // namespace facet
