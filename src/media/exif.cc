// SPDX-License-Identifier: Apache-2.0
#include "media/exif.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"

namespace facet {
namespace {

constexpr uint32_t kOrientationTag = 0x0112;
constexpr uint32_t kShort = 3;
constexpr uint32_t kLong = 4;

// Numbers of either byte order; what lies outside is 0, which no field that is looked for has.
struct TiffReader {
  std::string_view text;
  bool is_big_endian;

  [[nodiscard]] uint32_t Number(size_t at, size_t n_bytes) const {
    if (at > text.size() || text.size() - at < n_bytes) {
      return 0;
    }
    uint32_t value = 0;
    for (size_t i = 0; i < n_bytes; ++i) {
      const size_t from = is_big_endian ? i : n_bytes - 1 - i;
      value = value << 8 | static_cast<uint8_t>(text[at + from]);
    }
    return value;
  }
};

// Where the pixel of the turned picture at (0, 0) comes from, and how far it is from there to the
// pixel right of it and below it. In pixels.
struct Walk {
  int64_t start;
  int64_t right;
  int64_t down;
};

Walk WalkOf(int orientation, int64_t width, int64_t height) {
  const int64_t last_column = width - 1;
  const int64_t last_row = (height - 1) * width;
  switch (orientation) {
    case 2:
      return {last_column, -1, width};
    case 3:
      return {last_row + last_column, -1, -width};
    case 4:
      return {last_row, 1, -width};
    case 5:
      return {0, width, 1};
    case 6:
      return {last_row, -width, 1};
    case 7:
      return {last_row + last_column, -width, -1};
    default:  // 8
      return {last_column, width, -1};
  }
}

}  // namespace

int ExifOrientation(std::span<const std::byte> block) {
  constexpr std::string_view kHead("Exif\0\0", 6);
  std::string_view text = AsText(block);
  if (text.starts_with(kHead)) {
    text.remove_prefix(kHead.size());
  }
  const bool is_big_endian = text.starts_with("MM");
  if (!is_big_endian && !text.starts_with("II")) {
    return 1;
  }
  const TiffReader tiff{text, is_big_endian};
  const size_t directory = tiff.Number(4, 4);
  const uint32_t n_entries = tiff.Number(2, 2) == 42 ? tiff.Number(directory, 2) : 0;
  for (size_t i = 0; i < n_entries; ++i) {
    const size_t entry = directory + 2 + 12 * i;
    if (tiff.Number(entry, 2) != kOrientationTag) {
      continue;
    }
    const uint32_t type = tiff.Number(entry + 2, 2);
    const bool is_one = tiff.Number(entry + 4, 4) == 1 && (type == kShort || type == kLong);
    const uint32_t value = is_one ? tiff.Number(entry + 8, type == kShort ? 2 : 4) : 1;
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

Image Turn(Image image, int orientation) {
  FACET_CHECK(orientation >= 1 && orientation <= 8);
  if (orientation == 1) {
    return image;
  }
  Image turned{.width = image.width, .height = image.height, .rgb = {}};
  if (orientation >= 5) {
    std::swap(turned.width, turned.height);
  }
  turned.rgb.resize(image.rgb.size());
  const Walk walk = WalkOf(orientation, image.width, image.height);
  // In bands, because a walk down the columns would fetch a line of the cache for every pixel.
  constexpr int kBand = 32;
  for (int band = 0; band < turned.width; band += kBand) {
    const int band_end = std::min(band + kBand, turned.width);
    for (int y = 0; y < turned.height; ++y) {
      uint8_t* to = turned.rgb.data() + 3 * (int64_t{y} * turned.width + band);
      int64_t from = 3 * (walk.start + y * walk.down + band * walk.right);
      for (int x = band; x < band_end; ++x) {
        std::copy_n(image.rgb.data() + from, 3, to);
        to += 3;
        from += 3 * walk.right;
      }
    }
  }
  return turned;
}

}  // namespace facet
