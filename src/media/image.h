// SPDX-License-Identifier: Apache-2.0
// Image files to pixels: JPEG, PNG, WebP, GIF (first frame) and BMP, known by their first bytes and
// never by a name. Files are hostile: sizes are read and refused before anything is decoded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

namespace facet {

/// Pixels [height, width, 3], red first.
struct Image {
  int width = 0;
  int height = 0;
  std::vector<uint8_t> rgb;
};

/// Where the reference's loading shows something else than a viewer would (reference.md 14, 3.1).
/// Both turn the picture as EXIF says.
enum class ImageReading {
  kAsSeen,      ///< transparency over white; of 16-bit grey the high byte
  kAsReference  ///< transparency is dropped, with the colour below it; 16-bit grey is clipped to
                ///< 255
};

struct ImageLimits {
  size_t max_bytes = size_t{64} << 20;  ///< of the file
  int64_t max_pixels = 100'000'000;     ///< width times height
};

/// `name` is what errors call the file.
Result<Image> DecodeImage(std::span<const std::byte> file, ImageReading reading,
                          const ImageLimits& limits, const std::string& name);

}  // namespace facet
