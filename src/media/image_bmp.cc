// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "media/image_formats.h"

namespace facet {
namespace {

using Bytes = std::span<const std::byte>;

constexpr size_t kFileHeader = 14;
constexpr size_t kCoreHeader = 12;  // of OS/2, with short sides and palettes of three bytes
constexpr size_t kInfoHeader = 40;
constexpr size_t kMasksAt = 54;  // in the longer headers, or behind that of 40 bytes
constexpr uint32_t kPlain = 0;
constexpr uint32_t kRuns8 = 1;
constexpr uint32_t kRuns4 = 2;
constexpr uint32_t kMasks = 3;
constexpr uint32_t kMasksWithOpacity = 6;

struct BmpHeader {
  int64_t width = 0;
  int64_t height = 0;
  bool is_top_down = false;
  int bits = 0;  // of a pixel
  uint32_t compression = kPlain;
  size_t palette_at = 0;
  size_t palette_entry = 4;
  size_t n_colors = 0;
  size_t pixels_at = 0;
  std::array<uint32_t, 4> masks = {};  // red, green, blue, opacity
};

// The caller has checked that it lies inside.
template <typename T>
T Read(Bytes bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

Status ReadMasks(const ImageFile& file, size_t header_size, BmpHeader* header) {
  header->masks = {0xFF0000, 0xFF00, 0xFF, 0};
  if (header->bits == 16) {
    header->masks = {0x7C00, 0x3E0, 0x1F, 0};
  }
  if (header->compression != kMasks && header->compression != kMasksWithOpacity) {
    return {};
  }
  const bool has_opacity = header->compression == kMasksWithOpacity || header_size >= 56;
  const size_t n_masks = has_opacity ? 4 : 3;
  if (file.bytes.size() < kMasksAt + 4 * n_masks) {
    return DamagedImage(file, "BMP", "the header ends too early");
  }
  for (size_t i = 0; i < n_masks; ++i) {
    const auto mask = Read<uint32_t>(file.bytes, kMasksAt + 4 * i);
    const uint32_t low = mask == 0 ? 0 : mask >> std::countr_zero(mask);
    if ((low & (low + 1)) != 0) {
      return DamagedImage(file, "BMP", fmt::format("colour mask {:08x}", mask));
    }
    header->masks[i] = mask;
  }
  return {};
}

bool IsKnown(const BmpHeader& header) {
  switch (header.compression) {
    case kPlain:
      return header.bits == 1 || header.bits == 4 || header.bits == 8 || header.bits == 16 ||
             header.bits == 24 || header.bits == 32;
    case kRuns8:
      return header.bits == 8;
    case kRuns4:
      return header.bits == 4;
    case kMasks:
    case kMasksWithOpacity:
      return header.bits == 16 || header.bits == 32;
    default:
      return false;
  }
}

Result<BmpHeader> ReadHeader(const ImageFile& file) {
  const Bytes bytes = file.bytes;
  const size_t size = bytes.size() < kFileHeader + 4 ? 0 : Read<uint32_t>(bytes, kFileHeader);
  const bool is_core = size == kCoreHeader;
  if (size > 0 && size < kInfoHeader && !is_core) {
    return Refuse(file.name, fmt::format("a BMP file with a header of {} bytes", size),
                  "12, or 40 and more");
  }
  if (size == 0 || bytes.size() - kFileHeader < size) {
    return DamagedImage(file, "BMP", "the header ends too early");
  }
  BmpHeader header;
  header.pixels_at = Read<uint32_t>(bytes, 10);
  header.palette_at = kFileHeader + size;
  if (is_core) {
    header.width = Read<uint16_t>(bytes, 18);
    header.height = Read<uint16_t>(bytes, 20);
    header.bits = Read<uint16_t>(bytes, 24);
    header.palette_entry = 3;
  } else {
    header.width = Read<int32_t>(bytes, 18);
    header.height = Read<int32_t>(bytes, 22);
    header.bits = Read<uint16_t>(bytes, 28);
    header.compression = Read<uint32_t>(bytes, 30);
    header.n_colors = Read<uint32_t>(bytes, 46);
  }
  header.is_top_down = header.height < 0;
  header.height = std::abs(header.height);
  FACET_RETURN_IF_ERROR(CheckImageSize(header.width, header.height, file));
  if (!IsKnown(header)) {
    return Refuse(file.name,
                  fmt::format("a BMP file of {} bits a pixel and compression {}", header.bits,
                              header.compression),
                  "plain pixels, runs (RLE4, RLE8) or colour masks");
  }
  FACET_RETURN_IF_ERROR(ReadMasks(file, size, &header));
  return header;
}

// Run-length coded indices to one byte a pixel, in rows from below.
Result<std::vector<uint8_t>> UnpackRuns(const ImageFile& file, const BmpHeader& header,
                                        Bytes data) {
  std::vector<uint8_t> indices(static_cast<size_t>(header.width * header.height));
  int64_t x = 0;
  int64_t y = 0;
  const auto put = [&](int index) {
    if (x < header.width && y < header.height) {
      indices[static_cast<size_t>(y * header.width + x)] = static_cast<uint8_t>(index);
    }
    ++x;
  };
  const bool is_nibbles = header.bits == 4;
  const auto index_in = [&](int byte, int i) {
    return !is_nibbles ? byte : (i % 2 == 0 ? byte >> 4 : byte & 15);
  };
  while (data.size() >= 2) {
    const auto count = std::to_integer<int>(data[0]);
    const auto value = std::to_integer<int>(data[1]);
    data = data.subspan(2);
    if (count > 0) {
      for (int i = 0; i < count; ++i) {
        put(index_in(value, i));
      }
    } else if (value == 0) {
      x = 0;
      ++y;
    } else if (value == 1) {
      return indices;
    } else {
      const int n_bytes = value == 2 ? 2 : (is_nibbles ? (value + 1) / 2 : value);
      const auto n_padded = static_cast<size_t>(n_bytes) + static_cast<size_t>(n_bytes % 2);
      if (data.size() < n_padded) {
        break;
      }
      if (value == 2) {
        x += std::to_integer<int>(data[0]);
        y += std::to_integer<int>(data[1]);
      }
      for (int i = 0; value > 2 && i < value; ++i) {
        put(index_in(std::to_integer<int>(data[static_cast<size_t>(is_nibbles ? i / 2 : i)]), i));
      }
      data = data.subspan(n_padded);
    }
  }
  return DamagedImage(file, "BMP", "the pixels end too early");
}

using Palette = std::array<std::array<uint8_t, 3>, 256>;
Palette ReadPalette(Bytes bytes, const BmpHeader& header) {
  Palette palette = {};
  const size_t n_possible = size_t{1} << header.bits;
  const size_t n_colors = header.n_colors == 0 ? n_possible : std::min(header.n_colors, n_possible);
  for (size_t i = 0; i < n_colors; ++i) {
    const size_t at = header.palette_at + i * header.palette_entry;
    if (at + 3 > std::min(bytes.size(), header.pixels_at)) {
      break;
    }
    palette[i] = {Read<uint8_t>(bytes, at + 2), Read<uint8_t>(bytes, at + 1),
                  Read<uint8_t>(bytes, at)};
  }
  return palette;
}

void ConvertIndices(Bytes row, const Palette& palette, int bits, std::span<uint8_t> out) {
  const auto n_per_byte = static_cast<size_t>(8 / bits);
  for (size_t x = 0; x < out.size() / 3; ++x) {
    const int shift = 8 - bits * static_cast<int>(x % n_per_byte + 1);
    const auto byte = std::to_integer<unsigned>(row[x / n_per_byte]);
    const unsigned index = (byte >> shift) & ((1U << bits) - 1);
    std::copy_n(palette[index].data(), 3, out.data() + 3 * x);
  }
}

void ConvertMasked(Bytes row, const BmpHeader& header, size_t n_channels, std::span<uint8_t> out) {
  const auto n_bytes = static_cast<size_t>(header.bits / 8);
  for (size_t channel = 0; channel < n_channels; ++channel) {
    const uint32_t mask = header.masks[channel];
    const int shift = mask == 0 ? 0 : std::countr_zero(mask);
    const uint64_t most = std::max(mask >> shift, 1U);
    for (size_t x = 0; x < out.size() / n_channels; ++x) {
      uint32_t pixel = 0;
      std::memcpy(&pixel, row.data() + x * n_bytes, n_bytes);
      const uint64_t value = (pixel & mask) >> shift;
      out[x * n_channels + channel] =
          static_cast<uint8_t>(most == 255 ? value : value * 255 / most);
    }
  }
}

}  // namespace

Result<Raster> DecodeBmp(const ImageFile& file) {
  FACET_ASSIGN(BmpHeader header, ReadHeader(file));
  Bytes pixels = file.bytes.subspan(std::min(header.pixels_at, file.bytes.size()));
  std::vector<uint8_t> indices;
  int64_t stride = (header.width * header.bits + 31) / 32 * 4;
  const Palette palette = header.bits <= 8 ? ReadPalette(file.bytes, header) : Palette{};
  if (header.compression == kRuns8 || header.compression == kRuns4) {
    FACET_ASSIGN(indices, UnpackRuns(file, header, pixels));
    pixels = std::as_bytes(std::span(indices));
    stride = header.width;
    header.bits = 8;
  }
  if (static_cast<uint64_t>(stride * header.height) > pixels.size()) {
    return DamagedImage(file, "BMP", "the pixels end too early");
  }
  const size_t n_channels = header.masks[3] != 0 ? 4 : 3;
  Raster raster = MakeRaster(static_cast<int>(header.width), static_cast<int>(header.height),
                             static_cast<int>(n_channels));
  const size_t out_stride = static_cast<size_t>(header.width) * n_channels;
  for (int64_t y = 0; y < header.height; ++y) {
    const int64_t stored = header.is_top_down ? y : header.height - 1 - y;
    const Bytes row = pixels.subspan(static_cast<size_t>(stored * stride));
    const std::span<uint8_t> out =
        std::span(raster.pixels).subspan(static_cast<size_t>(y) * out_stride, out_stride);
    if (header.bits <= 8) {
      ConvertIndices(row, palette, header.bits, out);
    } else {
      ConvertMasked(row, header, n_channels, out);
    }
  }
  return raster;
}

}  // namespace facet
