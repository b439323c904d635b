// SPDX-License-Identifier: Apache-2.0
// Against Pillow's bytes. Lossy pictures are resized from the pixels that Pillow's own decoders
// made, so that only the resize is compared.
#include "media/resize.h"

#include <gtest/gtest.h>

#include <string>

#include "format/safetensors.h"
#include "media/image_testing.h"

namespace facet {
namespace {

using testing::DecodeOk;
using testing::HashOfPixels;
using testing::ImageCases;
using testing::LargestDifference;
using testing::ReadExpected;
using testing::ReadSample;
using testing::TestdataPath;

Image DecodedByPillow(const Json& item) {
  return item.contains("decoded")
             ? ReadExpected(item["decoded"].as_string())
             : DecodeOk(ReadSample(item["file"].as_string()), ImageReading::kAsReference);
}

Image ResizedForBudget70(const Json& item) {
  const Json& size = item["budgets"]["70"];
  return ResizeBicubic(DecodedByPillow(item), static_cast<int>(size["width"].as_int()),
                       static_cast<int>(size["height"].as_int()));
}

TEST(Resize, EveryPictureEqualsPillowByteForByte) {
  for (const Json& item : ImageCases().items()) {
    SCOPED_TRACE(item["file"].as_string());
    const Image resized = ResizedForBudget70(item);
    EXPECT_EQ(HashOfPixels(resized), item["resized_70_sha256_rgb"].as_string());
    if (item.contains("resized_70")) {
      EXPECT_EQ(LargestDifference(resized, ReadExpected(item["resized_70"].as_string())), 0);
    }
  }
}

// The order of rows and values in the encoder's patches, as the reference stores them.
TEST(Resize, PatchesEqualTheReference) {
  const auto file = safetensors::File::Open(TestdataPath("media/images/patches.safetensors"));
  ASSERT_TRUE(file.ok());
  int n_compared = 0;
  for (const Json& item : ImageCases().items()) {
    const auto* patches = file->Find(item["file"].as_string() + ".patches70_u8");
    if (patches == nullptr) {
      continue;
    }
    const Image image = ResizedForBudget70(item);
    std::string rearranged;
    for (int top = 0; top < image.height; top += 16) {
      for (int left = 0; left < image.width; left += 16) {
        for (int y = top; y < top + 16; ++y) {
          const uint8_t* const from = image.rgb.data() + 3 * (y * image.width + left);
          rearranged.append(reinterpret_cast<const char*>(from), 48);
        }
      }
    }
    EXPECT_EQ(AsText(patches->data), rearranged) << item["file"].as_string();
    ++n_compared;
  }
  EXPECT_EQ(n_compared, 2);
}

TEST(Resize, TheSameSizeIsTheSamePicture) {
  const Image image = DecodeOk(ReadSample("rgb.png"));
  EXPECT_EQ(ResizeBicubic(image, image.width, image.height).rgb, image.rgb);
}

// Weights that sum to one keep a colour, whatever is done to the sides.
TEST(Resize, OneColourStays) {
  const Image image{.width = 7, .height = 5, .rgb = std::vector<uint8_t>(7 * 5 * 3, 255)};
  for (const auto& [width, height] :
       {std::pair(7, 5), std::pair(1, 1), std::pair(7, 50), std::pair(70, 5), std::pair(3, 400)}) {
    const Image resized = ResizeBicubic(image, width, height);
    EXPECT_EQ(resized.rgb, std::vector<uint8_t>(resized.rgb.size(), 255));
    EXPECT_EQ(resized.rgb.size(), static_cast<size_t>(width * height * 3));
  }
}

}  // namespace
}  // namespace facet
