// SPDX-License-Identifier: Apache-2.0
// Every picture of testdata/media/images in both readings, and what is refused before a decoder of
// a format sees it. The formats have tests of their own, image_FORMAT_test.cc.
#include "media/image.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "media/image_formats.h"
#include "media/image_testing.h"

namespace facet {
namespace {

using testing::Decode;
using testing::DecodeOk;
using testing::ErrorOf;
using testing::HashOfPixels;
using testing::ImageCases;
using testing::LargestDifference;
using testing::ReadExpected;
using testing::ReadSample;

// What decoders of a lossy format may differ by, from version to version.
constexpr int kLossyLevels = 3;

bool IsLossy(const std::string& file) { return file.ends_with(".jpg") || file == "lossy.webp"; }

TEST(Image, TheReferencesPixelsOfEveryFile) {
  for (const Json& item : ImageCases().items()) {
    const std::string& file = item["file"].as_string();
    SCOPED_TRACE(file);
    const Image image = DecodeOk(ReadSample(file), ImageReading::kAsReference);
    EXPECT_EQ(image.height, item["by_path"]["size"].items()[0].as_int());
    EXPECT_EQ(image.width, item["by_path"]["size"].items()[1].as_int());
    if (IsLossy(file)) {
      EXPECT_LE(LargestDifference(image, ReadExpected(item["decoded"].as_string())), kLossyLevels);
    } else {
      EXPECT_EQ(HashOfPixels(image), item["by_path"]["sha256_rgb"].as_string());
    }
    if (item.contains("decoded") && !IsLossy(file)) {
      EXPECT_EQ(LargestDifference(image, ReadExpected(item["decoded"].as_string())), 0);
    }
  }
}

TEST(Image, WantOfMemoryIsNoDamage) {
  const ImageLimits limits;
  const std::string name = "picture";
  const ImageFile file{{}, ImageReading::kAsSeen, limits, name};
  EXPECT_EQ(DamagedImage(file, "PNG", "Out of memory").Message(),
            "picture: PNG data that cannot be decoded (Out of memory), wanted more memory, or a "
            "smaller picture");
}

// Transparency as an opened picture is treated by the reference, orientation as a path is.
TEST(Image, AsSeenOfEveryFile) {
  for (const Json& item : ImageCases().items()) {
    const std::string& file = item["file"].as_string();
    SCOPED_TRACE(file);
    const Image image = DecodeOk(ReadSample(file), ImageReading::kAsSeen);
    if (item.contains("high_byte")) {
      EXPECT_EQ(LargestDifference(image, ReadExpected(item["high_byte"].as_string())), 0);
    } else if (item.contains("over_white")) {
      EXPECT_EQ(LargestDifference(image, ReadExpected(item["over_white"].as_string())), 0);
      EXPECT_EQ(HashOfPixels(image), item["by_pil"]["sha256_rgb"].as_string());
    } else {
      EXPECT_EQ(LargestDifference(image, DecodeOk(ReadSample(file), ImageReading::kAsReference)),
                0);
    }
  }
}

TEST(Image, OtherFilesAreNamed) {
  const std::string wanted = ", wanted a JPEG, PNG, WebP, GIF or BMP file";
  EXPECT_EQ(ErrorOf(""), "picture: an empty file" + wanted);
  EXPECT_EQ(ErrorOf("B"), "picture: a file that begins with the bytes 42" + wanted);
  EXPECT_EQ(ErrorOf("<!DOCTYPE html>"),
            "picture: a file that begins with the bytes 3c 21 44 4f 43 54 59 50" + wanted);
  EXPECT_EQ(ErrorOf(std::string_view("\0\0\0\x18"
                                     "ftypheic\0\0\0\0",
                                     16)),
            "picture: a HEIC file" + wanted);
  EXPECT_EQ(ErrorOf(std::string_view("\0\0\0\x1C"
                                     "ftypavif\0\0\0\0",
                                     16)),
            "picture: an AVIF file" + wanted);
  EXPECT_EQ(ErrorOf(std::string_view("II*\0\x08\0\0\0", 8)), "picture: a TIFF file" + wanted);
  EXPECT_EQ(ErrorOf("RIFF\x10\x20\x30\x40WAVEfmt "),
            "picture: a file that begins with the bytes 52 49 46 46 10 20 30 40" + wanted);
}

TEST(Image, LimitsAreCheckedBeforeDecoding) {
  const std::string png = ReadSample("rgb.png");
  EXPECT_EQ(ErrorOf(png, {.max_bytes = 15660}),
            "picture: 15661 bytes, wanted a picture of at most 15660 bytes");
  EXPECT_EQ(ErrorOf(png, {.max_bytes = 15661}), "decoded");
  for (const std::string_view file :
       {"rgb.png", "baseline_420.jpg", "lossy.webp", "animated.gif", "rgb.bmp"}) {
    SCOPED_TRACE(file);
    const Image image = DecodeOk(ReadSample(file));
    const int64_t n_pixels = int64_t{image.width} * image.height;
    EXPECT_EQ(ErrorOf(ReadSample(file), {.max_pixels = n_pixels}), "decoded");
    EXPECT_EQ(ErrorOf(ReadSample(file), {.max_pixels = n_pixels - 1}),
              "picture: " + std::to_string(image.width) + " x " + std::to_string(image.height) +
                  " pixels, wanted at most " + std::to_string(n_pixels - 1) + " pixels");
  }
}

}  // namespace
}  // namespace facet
