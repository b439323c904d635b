// SPDX-License-Identifier: Apache-2.0
// GIF files made here: transparency, order of rows, and frames that are not the canvas.
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

struct Gif {
  int screen_width = 1;
  int screen_height = 1;
  int left = 0;
  int top = 0;
  int width = 1;
  int height = 1;
  bool is_interlaced = false;
  int transparent = -1;
  bool has_palette = true;
  std::vector<int> indices = {};  // 0 to 3
};

// Two-bit indices as codes of three bits, with a clear code before each so that codes never grow.
std::string Codes(const std::vector<int>& indices) {
  constexpr int kClear = 4;
  constexpr int kEnd = 5;
  std::vector<int> codes;
  for (const int index : indices) {
    codes.insert(codes.end(), {kClear, index});
  }
  codes.push_back(kEnd);
  std::string bytes((codes.size() * 3 + 7) / 8, '\0');
  for (size_t bit = 0; bit < codes.size() * 3; ++bit) {
    const int value = (codes[bit / 3] >> (bit % 3)) & 1;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] | value << (bit % 8));
  }
  return bytes;
}

std::string Make(const Gif& gif) {
  std::string out = "GIF89a";
  const auto put = [&](std::initializer_list<int> values) {
    for (const int value : values) {
      Append(out, static_cast<uint16_t>(value));
    }
  };
  put({gif.screen_width, gif.screen_height});
  out += gif.has_palette ? '\x81' : '\x01';
  out += std::string(2, '\0');
  for (int i = 0; gif.has_palette && i < 4; ++i) {
    out +=
        {static_cast<char>(10 * i), static_cast<char>(10 * i + 1), static_cast<char>(10 * i + 2)};
  }
  if (gif.transparent >= 0) {
    out += {'\x21', '\xF9', 4, 1, 0, 0, static_cast<char>(gif.transparent), 0};
  }
  out += ',';
  put({gif.left, gif.top, gif.width, gif.height});
  out += gif.is_interlaced ? '\x40' : '\0';
  const std::string codes = Codes(gif.indices);
  return out + '\x02' + static_cast<char>(codes.size()) + codes + std::string(1, '\0') + ';';
}

TEST(Gif, ATransparentIndexIsWhiteToTheViewer) {
  const std::string file =
      Make({.screen_width = 2, .width = 2, .transparent = 1, .indices = {1, 2}});
  EXPECT_EQ(DecodeOk(file).rgb, (Values{255, 255, 255, 20, 21, 22}));
  EXPECT_EQ(DecodeOk(file, ImageReading::kAsReference).rgb, (Values{10, 11, 12, 20, 21, 22}));
}

TEST(Gif, InterlacedRows) {
  const Image image = DecodeOk(
      Make({.screen_height = 5, .height = 5, .is_interlaced = true, .indices = {0, 1, 2, 3, 1}}));
  // Stored in the order 0, 4, 2, 1, 3.
  EXPECT_EQ(image.rgb, (Values{0, 1, 2, 30, 31, 32, 20, 21, 22, 10, 11, 12, 10, 11, 12}));
}

TEST(Gif, AFrameInsideAndBesideTheScreen) {
  const std::string inside = Make({.screen_width = 3, .left = 1, .indices = {2}});
  EXPECT_EQ(DecodeOk(inside).rgb, (Values{255, 255, 255, 20, 21, 22, 255, 255, 255}));
  EXPECT_EQ(DecodeOk(inside, ImageReading::kAsReference).rgb,
            (Values{0, 1, 2, 20, 21, 22, 0, 1, 2}));
  const Image beside = DecodeOk(Make({.top = 1, .indices = {3}}));
  EXPECT_EQ(beside.height, 2);
  EXPECT_EQ(beside.rgb, (Values{255, 255, 255, 30, 31, 32}));
}

TEST(Gif, WithoutAPaletteIndicesAreGrey) {
  EXPECT_EQ(DecodeOk(Make({.has_palette = false, .indices = {3}})).rgb, (Values{3, 3, 3}));
}

TEST(Gif, Damage) {
  const std::string whole = ReadSample("animated.gif");
  EXPECT_EQ(ErrorOf(whole.substr(0, 1000)),
            "picture: damaged GIF data (Failed to read from given file), wanted a whole file");
  EXPECT_EQ(ErrorOf("GIF89a"),
            "picture: damaged GIF data (No screen descriptor detected), wanted a whole file");
  EXPECT_EQ(ErrorOf(std::string("GIF89a\1\0\1\0\0\0\0;", 14)),
            "picture: damaged GIF data (no complete picture in it), wanted a whole file");
  EXPECT_EQ(ErrorOf(Make({.indices = {}})),
            "picture: damaged GIF data (Image EOF detected before image complete), wanted a whole "
            "file");
  EXPECT_EQ(ErrorOf(Make({.width = 0})), "picture: 0 x 1 pixels, wanted at least 1 x 1");
  EXPECT_EQ(ErrorOf(Make({.screen_width = 65535, .screen_height = 65535, .indices = {1}})),
            "picture: 65535 x 65535 pixels, wanted at most 100000000 pixels");
}

}  // namespace
}  // namespace facet
