// SPDX-License-Identifier: Apache-2.0
// BMP files made here: every depth, runs, colour masks, both directions, and damaged headers.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "media/image_testing.h"

namespace facet {
namespace {

using testing::DecodeOk;
using testing::ErrorOf;
using testing::ReadSample;

using Values = std::vector<uint8_t>;

struct Bmp {
  int width = 1;
  int height = 1;
  int bits = 24;
  int compression = 0;
  int n_colors = 0;
  std::string between = {};  // colour masks and palette
  std::string pixels = {};
};

std::string Make(const Bmp& bmp) {
  std::string out = "BM";
  const auto put = [&](std::initializer_list<int> values) {
    for (const int value : values) {
      Append(out, static_cast<int32_t>(value));
    }
  };
  put({0, 0, 54 + static_cast<int>(bmp.between.size()), 40, bmp.width, bmp.height,
       1 | bmp.bits << 16, bmp.compression, 0, 0, 0, bmp.n_colors, 0});
  return out + bmp.between + bmp.pixels;
}

std::string Bytes(std::initializer_list<int> values) {
  std::string text;
  for (const int value : values) {
    text += static_cast<char>(value);
  }
  return text;
}

std::string Palette() { return Bytes({3, 2, 1, 0, 60, 50, 40, 0}); }
std::string Mask(uint32_t mask) {
  std::string text;
  Append(text, mask);
  return text;
}

TEST(Bmp, Indices) {
  const Values wanted = {1, 2, 3, 40, 50, 60};
  EXPECT_EQ(DecodeOk(Make({.width = 2,
                           .bits = 1,
                           .n_colors = 2,
                           .between = Palette(),
                           .pixels = Bytes({0x40, 0, 0, 0})}))
                .rgb,
            wanted);
  EXPECT_EQ(DecodeOk(Make({.width = 2,
                           .bits = 4,
                           .n_colors = 2,
                           .between = Palette(),
                           .pixels = Bytes({0x01, 0, 0, 0})}))
                .rgb,
            wanted);
  EXPECT_EQ(DecodeOk(Make({.width = 2,
                           .bits = 8,
                           .n_colors = 2,
                           .between = Palette(),
                           .pixels = Bytes({0, 1, 0, 0})}))
                .rgb,
            wanted);
}

TEST(Bmp, RowsFromBelowAndFromAbove) {
  const std::string pixels = Bytes({3, 2, 1, 0, 6, 5, 4, 0});
  EXPECT_EQ(DecodeOk(Make({.height = 2, .pixels = pixels})).rgb, (Values{4, 5, 6, 1, 2, 3}));
  EXPECT_EQ(DecodeOk(Make({.height = -2, .pixels = pixels})).rgb, (Values{1, 2, 3, 4, 5, 6}));
}

TEST(Bmp, ColourMasks) {
  EXPECT_EQ(DecodeOk(Make({.bits = 16, .pixels = Bytes({0x1F, 0x40, 0, 0})})).rgb,
            (Values{131, 0, 255}));
  EXPECT_EQ(DecodeOk(Make({.bits = 16,
                           .compression = 3,
                           .between = Mask(0xF800) + Mask(0x7E0) + Mask(0x1F),
                           .pixels = Bytes({0xE0, 0x07, 0, 0})}))
                .rgb,
            (Values{0, 255, 0}));
  EXPECT_EQ(DecodeOk(Make({.bits = 32, .pixels = Bytes({3, 2, 1, 0})})).rgb, (Values{1, 2, 3}));
  const std::string with_opacity =
      Make({.bits = 32,
            .compression = 6,
            .between = Mask(0xFF) + Mask(0xFF00) + Mask(0xFF0000) + Mask(0xFF000000),
            .pixels = Bytes({1, 2, 3, 0})});
  EXPECT_EQ(DecodeOk(with_opacity).rgb, (Values{255, 255, 255}));
  EXPECT_EQ(DecodeOk(with_opacity, ImageReading::kAsReference).rgb, (Values{1, 2, 3}));
}

TEST(Bmp, Runs) {
  const Bmp bmp = {.width = 4, .height = 2, .bits = 8, .compression = 1, .n_colors = 2};
  Bmp eight = bmp;
  eight.between = Palette();
  // Three of the second colour; next row; a step of one to the right; three as they are; the end.
  eight.pixels = Bytes({3, 1, 0, 0, 0, 2, 1, 0, 0, 3, 1, 0, 1, 0, 0, 1});
  const Values a = {1, 2, 3};
  const Values b = {40, 50, 60};
  Values wanted;
  for (const Values& color : {a, b, a, b, b, b, b, a}) {
    wanted.insert(wanted.end(), color.begin(), color.end());
  }
  EXPECT_EQ(DecodeOk(Make(eight)).rgb, wanted);
  Bmp four = eight;
  four.bits = 4;
  four.compression = 2;
  four.pixels = Bytes({3, 0x11, 0, 0, 0, 2, 1, 0, 0, 3, 0x10, 0x10, 0, 1});
  EXPECT_EQ(DecodeOk(Make(four)).rgb, wanted);
}

TEST(Bmp, TheHeaderOfOs2) {
  std::string file = "BM";
  Append(file, int64_t{0});
  Append(file, int32_t{32});
  Append(file, int32_t{12});
  for (const int value : {2, 1, 1, 1}) {
    Append(file, static_cast<uint16_t>(value));
  }
  file += Bytes({3, 2, 1, 60, 50, 40, 0x40, 0, 0, 0});
  EXPECT_EQ(DecodeOk(file).rgb, (Values{1, 2, 3, 40, 50, 60}));
}

TEST(Bmp, Damage) {
  const std::string wanted = ", wanted a whole file";
  const std::string too_early = "picture: damaged BMP data (the pixels end too early)" + wanted;
  const std::string whole = ReadSample("rgb.bmp");
  EXPECT_EQ(ErrorOf(whole.substr(0, whole.size() - 1)), too_early);
  EXPECT_EQ(ErrorOf(whole.substr(0, 53)),
            "picture: damaged BMP data (the header ends too early)" + wanted);
  std::string other = whole;
  other[14] = 16;
  EXPECT_EQ(ErrorOf(other),
            "picture: a BMP file with a header of 16 bytes, wanted 12, or 40 and more");
  EXPECT_EQ(ErrorOf("BM"), "picture: damaged BMP data (the header ends too early)" + wanted);
  EXPECT_EQ(ErrorOf(Make({.width = 10000, .height = 10000})), too_early);
  EXPECT_EQ(ErrorOf(Make({.bits = 8, .compression = 1})), too_early);
  EXPECT_EQ(ErrorOf(Make({.width = -1})), "picture: -1 x 1 pixels, wanted at least 1 x 1");
  EXPECT_EQ(ErrorOf(Make({.height = 0})), "picture: 1 x 0 pixels, wanted at least 1 x 1");
  EXPECT_EQ(ErrorOf(Make({.height = -2147483647 - 1})),
            "picture: 1 x 2147483648 pixels, wanted sides of at most 1000000");
  EXPECT_EQ(ErrorOf(Make({.bits = 24, .compression = 4})),
            "picture: a BMP file of 24 bits a pixel and compression 4, wanted plain pixels, runs "
            "(RLE4, RLE8) or colour masks");
  EXPECT_EQ(ErrorOf(Make({.bits = 16,
                          .compression = 3,
                          .between = Mask(0xF0F0) + Mask(0x7E0) + Mask(0x1F),
                          .pixels = Bytes({0, 0, 0, 0})})),
            "picture: damaged BMP data (colour mask 0000f0f0)" + wanted);
}

}  // namespace
}  // namespace facet
