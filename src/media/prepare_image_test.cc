// SPDX-License-Identifier: Apache-2.0
#include "media/prepare_image.h"

#include <gtest/gtest.h>

#include <string>

#include "media/image_testing.h"

namespace facet {
namespace {

using testing::DecodeOk;
using testing::ImageCases;
using testing::JsonOrDie;
using testing::ReadExpected;
using testing::ReadSample;
using testing::TestdataPath;

TEST(FitImage, EveryRowOfTheReference) {
  const Json rows = JsonOrDie(TestdataPath("media/images/sizing.json"));
  ASSERT_EQ(rows.items().size(), 248U);
  for (const Json& row : rows.items()) {
    SCOPED_TRACE(row.Dump());
    const auto size =
        FitImage(static_cast<int>(row["w"].as_int()), static_cast<int>(row["h"].as_int()),
                 static_cast<int>(row["budget"].as_int()));
    ASSERT_EQ(size.ok(), !row.contains("error"));
    if (size.ok()) {
      EXPECT_EQ(size->width, row["width"].as_int());
      EXPECT_EQ(size->height, row["height"].as_int());
      EXPECT_EQ(size->n_tokens(), row["tokens"].as_int());
    } else {
      const bool is_budget = row["error"].as_string() == "budget";
      EXPECT_EQ(size.error().where, is_budget ? "image budget" : "image");
    }
  }
}

TEST(FitImage, EveryPictureInEveryBudget) {
  for (const Json& item : ImageCases().items()) {
    for (const int budget : kImageBudgets) {
      const Json& wanted = item["budgets"][std::to_string(budget)];
      const auto& sides = item["by_path"]["size"].items();
      const auto size = FitImage(static_cast<int>(sides[1].as_int()),
                                 static_cast<int>(sides[0].as_int()), budget);
      ASSERT_TRUE(size.ok());
      EXPECT_EQ(size->width, wanted["width"].as_int());
      EXPECT_EQ(size->height, wanted["height"].as_int());
    }
  }
}

TEST(FitImage, SaysWhatIsWrong) {
  EXPECT_EQ(FitImage(640, 480, 256).error().Message(),
            "image budget: 256 soft tokens, wanted one of 70, 140, 280, 560, 1120");
  EXPECT_EQ(FitImage(0, 10, 70).error().Message(), "image: 0 x 10 pixels, wanted at least 1 x 1");
}

TEST(PrepareImage, ResizedForTheBudgetWithItsHash) {
  const Image image = DecodeOk(ReadSample("rgb.png"));
  const auto item = PrepareImage(image, MediaKind::kImage, 70, "rgb.png");
  ASSERT_TRUE(item.ok());
  EXPECT_EQ((*item)->pixels, ReadExpected("rgb.png.resized70.png").rgb);
  EXPECT_EQ((*item)->n_tokens, (*item)->width / 48 * ((*item)->height / 48));
  EXPECT_EQ((*item)->hash, HashOf(**item));
  const auto frame = PrepareImage(image, MediaKind::kVideoFrame, 70, "rgb.png");
  ASSERT_TRUE(frame.ok());
  EXPECT_EQ((*frame)->kind, MediaKind::kVideoFrame);
  EXPECT_NE((*frame)->hash, (*item)->hash);
}

TEST(PrepareImage, NamesThePicture) {
  EXPECT_EQ(PrepareImage({}, MediaKind::kImage, 70, "a.png").error().Message(),
            "a.png: 0 x 0 pixels, wanted at least 1 x 1");
  EXPECT_EQ(PrepareImage({}, MediaKind::kImage, 71, "a.png").error().Message(),
            "a.png: 71 soft tokens, wanted one of 70, 140, 280, 560, 1120");
}

}  // namespace
}  // namespace facet
