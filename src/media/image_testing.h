// SPDX-License-Identifier: Apache-2.0
// What the tests of pictures share: the samples, decoding that must succeed, and comparison.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/json.h"
#include "base/sha256.h"
#include "media/image.h"
#include "support/testing.h"

namespace facet::testing {

inline std::string ReadSample(std::string_view file) {
  return ReadOrDie(TestdataPath("media/images/source/" + std::string(file)));
}

inline Result<Image> Decode(std::string_view bytes, ImageReading reading = ImageReading::kAsSeen,
                            const ImageLimits& limits = {}) {
  return DecodeImage(AsBytes(bytes), reading, limits, "picture");
}

/// The picture, or a failed test and an empty one.
inline Image DecodeOk(std::string_view bytes, ImageReading reading = ImageReading::kAsSeen) {
  Result<Image> image = Decode(bytes, reading);
  if (!image.ok()) {
    ADD_FAILURE() << image.error().Message();
    return {};
  }
  return *std::move(image);
}

/// What the decoder says, or "decoded".
inline std::string ErrorOf(std::string_view bytes, const ImageLimits& limits = {}) {
  const Result<Image> image = Decode(bytes, ImageReading::kAsSeen, limits);
  return image.ok() ? "decoded" : image.error().Message();
}

/// Pixels that the reference made.
inline Image ReadExpected(std::string_view file) {
  return DecodeOk(ReadOrDie(TestdataPath("media/images/expected/" + std::string(file))),
                  ImageReading::kAsReference);
}

inline std::string HashOfPixels(const Image& image) {
  return Sha256Hex(AsText(std::as_bytes(std::span(image.rgb))));
}

/// The largest difference of two values, or 256 for pictures of different size.
inline int LargestDifference(const Image& a, const Image& b) {
  if (a.width != b.width || a.height != b.height || a.rgb.size() != b.rgb.size()) {
    return 256;
  }
  int largest = 0;
  for (size_t i = 0; i < a.rgb.size(); ++i) {
    largest = std::max(largest, std::abs(a.rgb[i] - b.rgb[i]));
  }
  return largest;
}

inline const Json& ImageCases() {
  static const Json cases = JsonOrDie(TestdataPath("media/images/cases.json"));
  return cases["cases"];
}

}  // namespace facet::testing
