// SPDX-License-Identifier: Apache-2.0
#include "media/image.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/bytes.h"
#include "media/exif.h"
#include "media/image_formats.h"

namespace facet {
namespace {

// A side above this is no picture; the tables of a resize grow with it.
constexpr int64_t kMaxSide = 1'000'000;

// '?' stands for any byte.
struct Format {
  std::string_view begins;
  Result<Raster> (*decode)(const ImageFile&);
};
constexpr std::array<Format, 5> kFormats = {{{"\xFF\xD8\xFF", DecodeJpeg},
                                             {"\x89PNG\r\n\x1A\n", DecodePng},
                                             {"RIFF????WEBP", DecodeWebp},
                                             {"GIF8?a", DecodeGif},
                                             {"BM", DecodeBmp}}};

// What people take for a picture that works everywhere.
struct OtherFormat {
  std::string_view begins;
  std::string_view name;
};
constexpr std::array<OtherFormat, 8> kOtherFormats = {{{"????ftyphei", "a HEIC file"},
                                                       {"????ftypmif1", "a HEIF file"},
                                                       {"????ftypavif", "an AVIF file"},
                                                       {{"II*\0", 4}, "a TIFF file"},
                                                       {{"MM\0*", 4}, "a TIFF file"},
                                                       {"\xFF\x0A", "a JPEG XL file"},
                                                       {"%PDF", "a PDF file"},
                                                       {"<svg", "an SVG file"}}};

bool BeginsWith(std::string_view text, std::string_view pattern) {
  return text.size() >= pattern.size() &&
         std::equal(pattern.begin(), pattern.end(), text.begin(),
                    [](char wanted, char found) { return wanted == '?' || wanted == found; });
}

std::string DescribeBeginning(std::string_view text) {
  for (const OtherFormat& format : kOtherFormats) {
    if (BeginsWith(text, format.begins)) {
      return std::string(format.name);
    }
  }
  std::string digits;
  for (const char c : text.substr(0, 8)) {
    digits += fmt::format(" {:02x}", static_cast<uint8_t>(c));
  }
  return digits.empty() ? "an empty file" : "a file that begins with the bytes" + digits;
}

// Equal to Pillow's alpha_composite over opaque white.
uint8_t OverWhite(int value, int opacity) {
  return static_cast<uint8_t>((value * opacity + 255 * (255 - opacity) + 127) / 255);
}

// In place: a second picture of this size need not fit into memory.
Image Flatten(Raster raster, ImageReading reading) {
  std::vector<uint8_t>& pixels = raster.pixels;
  if (raster.n_channels == 4) {
    const size_t n_pixels = pixels.size() / 4;
    for (size_t i = 0; i < n_pixels; ++i) {
      const int opacity = reading == ImageReading::kAsSeen ? pixels[4 * i + 3] : 255;
      for (size_t channel = 0; channel < 3; ++channel) {
        pixels[3 * i + channel] = OverWhite(pixels[4 * i + channel], opacity);
      }
    }
    pixels.resize(n_pixels * 3);
  }
  return {.width = raster.width, .height = raster.height, .rgb = std::move(pixels)};
}

}  // namespace

Status CheckImageSize(int64_t width, int64_t height, const ImageFile& file) {
  std::string found = fmt::format("{} x {} pixels", width, height);
  if (width < 1 || height < 1) {
    return Refuse(file.name, std::move(found), "at least 1 x 1");
  }
  if (width > kMaxSide || height > kMaxSide) {
    return Refuse(file.name, std::move(found), fmt::format("sides of at most {}", kMaxSide));
  }
  if (width * height > file.limits.max_pixels) {
    return Refuse(file.name, std::move(found),
                  fmt::format("at most {} pixels", file.limits.max_pixels));
  }
  return {};
}

Raster MakeRaster(int width, int height, int n_channels) {
  const size_t n_values =
      static_cast<size_t>(width) * static_cast<size_t>(height) * static_cast<size_t>(n_channels);
  return {.width = width,
          .height = height,
          .n_channels = n_channels,
          .pixels = std::vector<uint8_t>(n_values)};
}

Error DamagedImage(const ImageFile& file, std::string_view format, std::string_view what) {
  if (what.find("emory") != std::string_view::npos) {  // libjpeg, libpng and zlib
    return Refuse(file.name, fmt::format("{} data that cannot be decoded ({})", format, what),
                  "more memory, or a smaller picture");
  }
  return Refuse(file.name, fmt::format("damaged {} data ({})", format, what), "a whole file");
}

Result<Image> DecodeImage(std::span<const std::byte> file, ImageReading reading,
                          const ImageLimits& limits, const std::string& name) {
  if (file.size() > limits.max_bytes) {
    return Refuse(name, fmt::format("{} bytes", file.size()),
                  fmt::format("a picture of at most {} bytes", limits.max_bytes));
  }
  const std::string_view text = AsText(file);
  const auto* const format = std::find_if(kFormats.begin(), kFormats.end(), [&](const Format& f) {
    return BeginsWith(text, f.begins);
  });
  if (format == kFormats.end()) {
    return Refuse(name, DescribeBeginning(text), "a JPEG, PNG, WebP, GIF or BMP file");
  }
  FACET_ASSIGN(Raster raster, format->decode({file, reading, limits, name}));
  const int orientation = raster.orientation;
  return Turn(Flatten(std::move(raster), reading), orientation);
}

}  // namespace facet
