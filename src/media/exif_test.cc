// SPDX-License-Identifier: Apache-2.0
#include "media/exif.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "media/image_testing.h"

namespace facet {
namespace {

std::string Number(uint32_t value, int n_bytes, bool is_big_endian) {
  std::string text;
  for (int i = 0; i < n_bytes; ++i) {
    const int from = is_big_endian ? n_bytes - 1 - i : i;
    text += static_cast<char>(value >> (8 * from));
  }
  return text;
}

struct Field {
  uint32_t tag = 0x0112;
  uint32_t type = 3;
  uint32_t count = 1;
  uint32_t value = 6;
};

// A TIFF block whose directory begins at byte 8 and links to itself.
std::string Tiff(const Field& field, bool is_big_endian) {
  const auto number = [&](uint32_t value, int n) { return Number(value, n, is_big_endian); };
  const int value_bytes = field.type == 4 ? 4 : 2;
  return (is_big_endian ? "MM" : "II") + number(42, 2) + number(8, 4) + number(2, 2) +
         number(0x010F, 2) + number(2, 2) + number(4, 4) + "cam" + std::string(1, '\0') +
         number(field.tag, 2) + number(field.type, 2) + number(field.count, 4) +
         number(field.value, value_bytes) + std::string(static_cast<size_t>(4 - value_bytes), 'x') +
         number(8, 4);
}

int OrientationIn(const std::string& block) { return ExifOrientation(AsBytes(block)); }

TEST(Exif, EveryOrientationInBothByteOrders) {
  for (const bool is_big_endian : {false, true}) {
    for (uint32_t value = 1; value <= 8; ++value) {
      EXPECT_EQ(OrientationIn(Tiff({.value = value}, is_big_endian)), static_cast<int>(value));
      EXPECT_EQ(OrientationIn(Tiff({.type = 4, .value = value}, is_big_endian)),
                static_cast<int>(value));
    }
  }
  EXPECT_EQ(OrientationIn(std::string("Exif\0\0", 6) + Tiff({}, true)), 6);
}

TEST(Exif, WhatIsBrokenIsNotTurned) {
  for (const Field& field : std::vector<Field>{{.value = 0},
                                               {.value = 9},
                                               {.value = 65535},
                                               {.type = 2},
                                               {.count = 2},
                                               {.tag = 0x0113},
                                               {.type = 4, .value = 0xFFFFFFFF}}) {
    EXPECT_EQ(OrientationIn(Tiff(field, false)), 1);
    EXPECT_EQ(OrientationIn(Tiff(field, true)), 1);
  }
  const std::string whole = Tiff({}, false);
  for (size_t size = 0; size < whole.size() - 6; ++size) {
    EXPECT_EQ(OrientationIn(whole.substr(0, size)), 1) << size;
  }
  std::string far = whole;
  far.replace(4, 4, "\xFF\xFF\xFF\xFF");
  EXPECT_EQ(OrientationIn(far), 1);
  std::string no_magic = whole;
  no_magic[2] = 43;
  EXPECT_EQ(OrientationIn(no_magic), 1);
}

TEST(Turn, EveryOrientation) {
  // Larger than the bands that the picture is turned in.
  constexpr int kWidth = 71;
  constexpr int kHeight = 45;
  Image image{.width = kWidth, .height = kHeight, .rgb = {}};
  for (int y = 0; y < kHeight; ++y) {
    for (int x = 0; x < kWidth; ++x) {
      image.rgb.insert(image.rgb.end(), {static_cast<uint8_t>(x), static_cast<uint8_t>(y), 7});
    }
  }
  // Where the stored pixel (x, y) is seen, as the words of the EXIF standard say: what the stored
  // first row and first column are in the picture.
  const int w = kWidth - 1;
  const int h = kHeight - 1;
  using Place = std::pair<int, int>;
  const std::vector<std::function<Place(int, int)>> places = {
      [](int x, int y) { return Place(x, y); },           // top, left
      [=](int x, int y) { return Place(w - x, y); },      // top, right
      [=](int x, int y) { return Place(w - x, h - y); },  // bottom, right
      [=](int x, int y) { return Place(x, h - y); },      // bottom, left
      [](int x, int y) { return Place(y, x); },           // left, top
      [=](int x, int y) { return Place(h - y, x); },      // right, top
      [=](int x, int y) { return Place(h - y, w - x); },  // right, bottom
      [=](int x, int y) { return Place(y, w - x); }};     // left, bottom
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const Image turned = Turn(image, orientation);
    ASSERT_EQ(turned.width, orientation >= 5 ? kHeight : kWidth);
    ASSERT_EQ(turned.height, orientation >= 5 ? kWidth : kHeight);
    bool is_equal = true;
    for (int y = 0; y < kHeight; ++y) {
      for (int x = 0; x < kWidth; ++x) {
        const auto [seen_x, seen_y] = places[static_cast<size_t>(orientation - 1)](x, y);
        const uint8_t* pixel = turned.rgb.data() + 3 * (seen_y * turned.width + seen_x);
        is_equal = is_equal && pixel[0] == x && pixel[1] == y && pixel[2] == 7;
      }
    }
    EXPECT_TRUE(is_equal) << orientation;
  }
}

}  // namespace
}  // namespace facet
