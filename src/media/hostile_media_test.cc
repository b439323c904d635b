// SPDX-License-Identifier: Apache-2.0
// Damaged pictures: the samples cut, with bytes turned round, with huge numbers in their headers
// and with the beginnings of each other. Each gives a picture within the limits or one error.
// tools/make_hostile_media.py makes files of the same kinds, for whole programs.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "media/image_testing.h"

namespace facet {
namespace {

using testing::Decode;
using testing::ReadSample;

constexpr ImageLimits kLimits = {.max_bytes = size_t{1} << 20, .max_pixels = 1 << 20};

struct Variant {
  std::string name;
  std::string bytes;
};

std::vector<Variant> Mutate(const std::string& file) {
  const std::string whole = ReadSample(file);
  const size_t size = whole.size();
  std::vector<Variant> variants;
  const auto add = [&](const std::string& what, std::string bytes) {
    variants.push_back({file + ", " + what, std::move(bytes)});
  };
  for (const size_t cut : {size_t{1}, size_t{3}, size_t{9}, size_t{13}, size_t{17}, size_t{24},
                           size_t{33}, size_t{54}, size / 4, size / 2, size - 9, size - 1}) {
    add("cut at " + std::to_string(cut), whole.substr(0, cut));
  }
  // Sixteen bytes of a header at a time, and the first of the pixels.
  for (size_t at = 2; at + 16 < size && at < 500; at += 48) {
    for (const char fill : {'\0', '\xFF', '\x7F'}) {
      std::string bytes = whole;
      bytes.replace(at, 16, 16, fill);
      add("filled at " + std::to_string(at), bytes);
    }
  }
  for (uint64_t seed = 0; seed < 8; ++seed) {
    std::string bytes = whole;
    for (uint64_t i = 0; i < 10; ++i) {
      const uint64_t bits = RandomBits(seed, i);
      bytes[(bits >> 8) % size] ^= static_cast<char>(bits & 0xFF);
    }
    add("damaged by seed " + std::to_string(seed), bytes);
  }
  add("twice", whole + whole);
  add("without its end", whole.substr(0, size / 2) + std::string(size / 2, '\0'));
  return variants;
}

void ExpectPictureOrError(const Variant& variant) {
  SCOPED_TRACE(variant.name);
  for (const ImageReading reading : {ImageReading::kAsSeen, ImageReading::kAsReference}) {
    const Result<Image> image = Decode(variant.bytes, reading, kLimits);
    if (image.ok()) {
      const int64_t n_pixels = int64_t{image->width} * image->height;
      EXPECT_GT(n_pixels, 0);
      EXPECT_LE(n_pixels, kLimits.max_pixels);
      EXPECT_EQ(static_cast<int64_t>(image->rgb.size()), 3 * n_pixels);
    } else {
      EXPECT_EQ(image.error().where, "picture");
      EXPECT_FALSE(image.error().found.empty());
      EXPECT_FALSE(image.error().wanted.empty());
      EXPECT_EQ(image.error().Message().find('\n'), std::string::npos);
    }
  }
}

TEST(HostileMedia, EveryDamagedPictureIsAPictureOrOneError) {
  size_t n_variants = 0;
  for (const std::string_view file :
       {"rgb.png", "interlaced.png", "palette_transparent.png", "gray16.png", "baseline_420.jpg",
        "progressive_420.jpg", "cmyk.jpg", "exif_orientation_6.jpg", "lossy.webp",
        "lossless_alpha.webp", "animated.gif", "rgb.bmp"}) {
    const std::vector<Variant> variants = Mutate(std::string(file));
    n_variants += variants.size();
    for (const Variant& variant : variants) {
      ExpectPictureOrError(variant);
    }
  }
  EXPECT_GE(n_variants, 400U);
}

// A file whose first bytes are those of another format belongs to that format's decoder.
TEST(HostileMedia, TheBeginningOfOneFormatOnTheRestOfAnother) {
  const std::vector<std::string> files = {"rgb.png", "baseline_420.jpg", "lossy.webp",
                                          "animated.gif", "rgb.bmp"};
  for (const std::string& head : files) {
    for (const std::string& rest : files) {
      if (head != rest) {
        ExpectPictureOrError({head + " before " + rest,
                              ReadSample(head).substr(0, 16) + ReadSample(rest).substr(16)});
      }
    }
  }
}

}  // namespace
}  // namespace facet
