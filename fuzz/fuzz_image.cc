// SPDX-License-Identifier: Apache-2.0
// Any bytes give an error, or a picture within the limits, of equal size in both readings.
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/check.h"
#include "media/image.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr facet::ImageLimits kLimits = {.max_bytes = 1 << 20, .max_pixels = 1 << 18};
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto decode = [&](facet::ImageReading reading) {
    auto image = facet::DecodeImage(bytes, reading, kLimits, "fuzz");
    if (!image.ok()) {
      FACET_CHECK(!image.error().found.empty() && !image.error().wanted.empty());
      return facet::Image{};
    }
    const int64_t n_pixels = int64_t{image->width} * image->height;
    FACET_CHECK(n_pixels > 0 && n_pixels <= kLimits.max_pixels);
    FACET_CHECK(image->rgb.size() == 3 * static_cast<size_t>(n_pixels));
    return *std::move(image);
  };
  const facet::Image seen = decode(facet::ImageReading::kAsSeen);
  const facet::Image reference = decode(facet::ImageReading::kAsReference);
  FACET_CHECK(seen.width == reference.width && seen.height == reference.height);
  return 0;
}
