// SPDX-License-Identifier: Apache-2.0
// PNG files made here, of the kinds that the samples of image_test.cc lack, and damaged ones.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "media/image_testing.h"

namespace facet {
namespace {

using testing::DecodeOk;
using testing::ErrorOf;
using testing::ReadSample;

std::string BigEndian(uint32_t value) {
  std::string text;
  for (int shift = 24; shift >= 0; shift -= 8) {
    text += static_cast<char>(value >> shift);
  }
  return text;
}

uint32_t Crc32(std::string_view text) {
  uint32_t crc = 0xFFFFFFFF;
  for (const char c : text) {
    crc ^= static_cast<uint8_t>(c);
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xEDB88320 : 0);
    }
  }
  return ~crc;
}

std::string Chunk(const std::string& name, const std::string& data) {
  return BigEndian(static_cast<uint32_t>(data.size())) + name + data +
         BigEndian(Crc32(name + data));
}

// zlib's format, with the data as it is.
std::string Stored(const std::string& data) {
  uint32_t a = 1;
  uint32_t b = 0;
  for (const char c : data) {
    a = (a + static_cast<uint8_t>(c)) % 65521;
    b = (b + a) % 65521;
  }
  std::string out = "\x78\x01\x01";
  const auto size = static_cast<uint16_t>(data.size());
  Append(out, size);
  Append(out, static_cast<uint16_t>(~size));
  return out + data + BigEndian(b << 16 | a);
}

struct Png {
  uint32_t width = 1;
  uint32_t height = 1;
  char depth = 8;
  char color = 0;
  std::string before_data = {};
  std::string rows = {};  // each begins with its filter, 0
  std::string after_data = {};
};

std::string Make(const Png& png) {
  return "\x89PNG\r\n\x1A\n" +
         Chunk("IHDR", BigEndian(png.width) + BigEndian(png.height) + png.depth + png.color +
                           std::string(3, '\0')) +
         png.before_data + Chunk("IDAT", Stored(png.rows)) + png.after_data + Chunk("IEND", "");
}

std::string Bytes(std::initializer_list<int> values) {
  std::string text;
  for (const int value : values) {
    text += static_cast<char>(value);
  }
  return text;
}

using Values = std::vector<uint8_t>;

TEST(Png, GreyOfFewBits) {
  const Image two = DecodeOk(Make({.width = 4, .depth = 2, .rows = Bytes({0, 0b00011011})}));
  EXPECT_EQ(two.rgb, (Values{0, 0, 0, 85, 85, 85, 170, 170, 170, 255, 255, 255}));
  const Image four = DecodeOk(Make({.width = 2, .depth = 4, .rows = Bytes({0, 0x3C})}));
  EXPECT_EQ(four.rgb, (Values{51, 51, 51, 204, 204, 204}));
}

TEST(Png, PalettesOfFewBits) {
  const std::string palette = Chunk("PLTE", Bytes({1, 2, 3, 40, 50, 60}));
  const Image image = DecodeOk(Make({.width = 3,
                                     .depth = 1,
                                     .color = 3,
                                     .before_data = palette,
                                     .rows = Bytes({0, 0b01000000})}));
  EXPECT_EQ(image.rgb, (Values{1, 2, 3, 40, 50, 60, 1, 2, 3}));
}

TEST(Png, ATransparentColourIsWhiteToTheViewer) {
  const std::string file = Make({.width = 2,
                                 .color = 2,
                                 .before_data = Chunk("tRNS", Bytes({0, 9, 0, 8, 0, 7})),
                                 .rows = Bytes({0, 9, 8, 7, 1, 2, 3})});
  EXPECT_EQ(DecodeOk(file).rgb, (Values{255, 255, 255, 1, 2, 3}));
  EXPECT_EQ(DecodeOk(file, ImageReading::kAsReference).rgb, (Values{9, 8, 7, 1, 2, 3}));
}

TEST(Png, SixteenBitsOfGrey) {
  const Png png = {.width = 2, .depth = 16, .rows = Bytes({0, 0x12, 0x34, 0, 0x56})};
  EXPECT_EQ(DecodeOk(Make(png)).rgb, (Values{0x12, 0x12, 0x12, 0, 0, 0}));
  EXPECT_EQ(DecodeOk(Make(png), ImageReading::kAsReference).rgb,
            (Values{255, 255, 255, 0x56, 0x56, 0x56}));
  Png keyed = png;
  keyed.before_data = Chunk("tRNS", Bytes({0x12, 0x34}));
  EXPECT_EQ(DecodeOk(Make(keyed)).rgb, (Values{255, 255, 255, 0, 0, 0}));
  EXPECT_EQ(DecodeOk(Make(keyed), ImageReading::kAsReference).rgb,
            (Values{255, 255, 255, 0x56, 0x56, 0x56}));
}

TEST(Png, OrientationBeforeAndBehindTheData) {
  const std::string exif =
      Chunk("eXIf", "MM" + Bytes({0, 42, 0, 0, 0, 8, 0, 1, 1, 0x12, 0, 3, 0, 0, 0, 1, 0, 3, 0, 0}) +
                        Bytes({0, 0, 0, 0}));
  const Png png = {.width = 2, .rows = Bytes({0, 10, 20})};
  EXPECT_EQ(DecodeOk(Make(png)).rgb, (Values{10, 10, 10, 20, 20, 20}));
  Png before = png;
  before.before_data = exif;
  Png behind = png;
  behind.after_data = exif;
  const Values turned = {20, 20, 20, 10, 10, 10};
  EXPECT_EQ(DecodeOk(Make(before)).rgb, turned);
  EXPECT_EQ(DecodeOk(Make(behind)).rgb, turned);
}

// A text of a million letters is skipped, not unpacked.
TEST(Png, LargeChunksBesideThePicture) {
  const std::string text = Chunk("tEXt", "k" + std::string(1, '\0') + std::string(1'000'000, 'x'));
  EXPECT_EQ(DecodeOk(Make({.before_data = text, .rows = Bytes({0, 5})})).rgb, (Values{5, 5, 5}));
}

TEST(Png, Damage) {
  const std::string wanted = ", wanted a whole file";
  const std::string whole = ReadSample("rgb.png");
  EXPECT_EQ(ErrorOf(whole.substr(0, 8000)),
            "picture: damaged PNG data (the file ends too early)" + wanted);
  EXPECT_EQ(ErrorOf(whole.substr(0, whole.size() - 1)),
            "picture: damaged PNG data (the file ends too early)" + wanted);
  std::string flipped = whole;
  flipped[whole.size() - 13] ^= 1;  // the checksum of the pixels
  EXPECT_EQ(ErrorOf(flipped), "picture: damaged PNG data (IDAT: CRC error)" + wanted);
  std::string text = Chunk("tEXt", "k");
  text.back() ^= 1;
  EXPECT_EQ(ErrorOf(Make({.before_data = text, .rows = Bytes({0, 5})})),
            "picture: damaged PNG data (tEXt: CRC error)" + wanted);
  EXPECT_EQ(ErrorOf(Make({.height = 2, .rows = Bytes({0, 5})})),
            "picture: damaged PNG data (Not enough image data)" + wanted);
}

TEST(Png, Sizes) {
  EXPECT_EQ(ErrorOf(Make({.width = 10001, .height = 10000})),
            "picture: 10001 x 10000 pixels, wanted at most 100000000 pixels");
  EXPECT_EQ(ErrorOf(Make({.width = 0x7FFFFFFF, .height = 0x7FFFFFFF})),
            "picture: 2147483647 x 2147483647 pixels, wanted sides of at most 1000000");
  EXPECT_EQ(ErrorOf(Make({.width = 1'000'001})),
            "picture: 1000001 x 1 pixels, wanted sides of at most 1000000");
  EXPECT_EQ(ErrorOf(Make({.width = 0})),
            "picture: damaged PNG data (Invalid IHDR data), wanted a whole file");
}

}  // namespace
}  // namespace facet
