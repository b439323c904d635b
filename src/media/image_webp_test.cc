// SPDX-License-Identifier: Apache-2.0
// Damaged WebP files, and a moving picture built around the sample that stands still.
#include <gtest/gtest.h>

#include <string>

#include "media/image_testing.h"

namespace facet {
namespace {

using testing::DecodeOk;
using testing::ErrorOf;
using testing::LargestDifference;
using testing::ReadSample;

std::string Number(uint32_t value, size_t n_bytes) {
  std::string text;
  Append(text, value);
  return text.substr(0, n_bytes);
}

std::string Chunk(const std::string& name, const std::string& data) {
  return name + Number(static_cast<uint32_t>(data.size()), 4) + data +
         std::string(data.size() % 2, '\0');
}

std::string Riff(const std::string& chunks) {
  return "RIFF" + Number(static_cast<uint32_t>(chunks.size() + 4), 4) + "WEBP" + chunks;
}

constexpr uint32_t kAnimated = 2;
constexpr uint32_t kHasExif = 8;

std::string Header(uint32_t flags, uint32_t width, uint32_t height) {
  return Chunk("VP8X", Number(flags, 4) + Number(width - 1, 3) + Number(height - 1, 3));
}

// The chunk of pixels of lossy.webp, 160 x 160.
std::string SamplePixels() { return ReadSample("lossy.webp").substr(12); }

TEST(Webp, TheFirstFrameOnItsCanvas) {
  const auto frame = [](uint32_t left) {
    return Chunk("ANMF", Number(left / 2, 3) + Number(0, 3) + Number(159, 3) + Number(159, 3) +
                             Number(100, 3) + Number(0, 1) + SamplePixels());
  };
  const std::string moving =
      Riff(Header(kAnimated, 170, 160) + Chunk("ANIM", std::string(6, '\0')) + frame(4) + frame(0));
  const Image image = DecodeOk(moving);
  const Image still = DecodeOk(ReadSample("lossy.webp"));
  ASSERT_EQ(image.width, 170);
  ASSERT_EQ(image.height, 160);
  Image part{.width = 160, .height = 160, .rgb = {}};
  for (int y = 0; y < 160; ++y) {
    const auto row = image.rgb.begin() + 3 * 170 * y;
    part.rgb.insert(part.rgb.end(), row + 3 * 4, row + 3 * 164);
    EXPECT_TRUE(std::all_of(row, row + 3 * 4, [](uint8_t value) { return value == 255; }));
  }
  EXPECT_EQ(LargestDifference(part, still), 0);
}

TEST(Webp, OrientationFromItsChunk) {
  const std::string exif("II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x03\0\0\0\0\0\0\0", 26);
  Image upside_down =
      DecodeOk(Riff(Header(kHasExif, 160, 160) + SamplePixels() + Chunk("EXIF", exif)));
  const Image still = DecodeOk(ReadSample("lossy.webp"));
  ASSERT_EQ(upside_down.rgb.size(), still.rgb.size());
  for (size_t i = 0; i + 2 < still.rgb.size(); i += 3) {
    std::swap(upside_down.rgb[i], upside_down.rgb[i + 2]);
  }
  std::reverse(upside_down.rgb.begin(), upside_down.rgb.end());
  EXPECT_EQ(LargestDifference(upside_down, still), 0);
}

TEST(Webp, Damage) {
  const std::string incomplete =
      "picture: damaged WebP data (no complete picture in it), wanted a whole file";
  for (const std::string_view file : {"lossy.webp", "lossless_alpha.webp"}) {
    const std::string whole = ReadSample(file);
    EXPECT_EQ(ErrorOf(whole.substr(0, whole.size() / 2)), incomplete);
    EXPECT_EQ(ErrorOf(whole.substr(0, whole.size() - 2)), incomplete);
    EXPECT_EQ(ErrorOf(whole.substr(0, 12)), incomplete);
  }
  std::string broken = ReadSample("lossless_alpha.webp");
  std::fill(broken.begin() + 60, broken.end(), '\xA5');
  EXPECT_EQ(ErrorOf(broken),
            "picture: damaged WebP data (its pixels cannot be decoded), wanted a whole file");
}

}  // namespace
}  // namespace facet
