// SPDX-License-Identifier: Apache-2.0
// What image.cc shares with the readers of single formats, image_FORMAT.cc: each turns a whole file
// into a raster, and includes the library of its format, which no other file sees. What is the same
// for all (limits, transparency, orientation, the words of errors) is done once, in image.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "media/image.h"

namespace facet {

/// What is decoded, and how.
struct ImageFile {
  std::span<const std::byte> bytes;
  ImageReading reading = ImageReading::kAsSeen;
  ImageLimits limits;
  std::string name;
};

/// Pixels [height, width, n_channels] as they are stored: red, green, blue, and opacity where the
/// file has it (n_channels 4). Colours are not multiplied by the opacity.
struct Raster {
  int width = 0;
  int height = 0;
  int n_channels = 3;
  std::vector<uint8_t> pixels;
  int orientation = 1;  ///< as EXIF numbers it (exif.h)
};

/// The sides found in a header, before memory is taken for them.
Status CheckImageSize(int64_t width, int64_t height, const ImageFile& file);

/// A raster of that size, zeros. The size has been checked.
Raster MakeRaster(int width, int height, int n_channels);

/// The error for a file that cannot be decoded: `what` are the words of its library. Where they
/// tell of memory, the file is not called damaged.
Error DamagedImage(const ImageFile& file, std::string_view format, std::string_view what);

/// Baseline and progressive; grey, YCbCr, RGB, and CMYK inverted as Adobe stores it, turned into
/// RGB without a colour profile (as Pillow does).
Result<Raster> DecodeJpeg(const ImageFile& file);
/// Of 16 bits the high byte; ImageReading says what becomes of 16-bit grey.
Result<Raster> DecodePng(const ImageFile& file);
/// Of a moving picture the first frame.
Result<Raster> DecodeWebp(const ImageFile& file);
/// The first frame, on a canvas that holds it.
Result<Raster> DecodeGif(const ImageFile& file);
Result<Raster> DecodeBmp(const ImageFile& file);

}  // namespace facet
