// SPDX-License-Identifier: Apache-2.0
// libpng reports errors by a jump. Only Try() sets the target, and what it runs owns nothing.
#include <png.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstring>
#include <span>
#include <string_view>

#include "media/exif.h"
#include "media/image_formats.h"

namespace facet {
namespace {

// Of what a chunk is unpacked to; only EXIF and palettes are read.
constexpr png_alloc_size_t kMaxChunkBytes = size_t{8} << 20;
constexpr png_uint_32 kMaxSide = 0x7fffffff;  // CheckImageSize refuses, in its words

struct PngReader {
  explicit PngReader(const ImageFile& file)
      : bytes(file.bytes),
        clips_grey(file.reading == ImageReading::kAsReference),
        png(png_create_read_struct(PNG_LIBPNG_VER_STRING, this, OnError, OnWarning)),
        info(png == nullptr ? nullptr : png_create_info_struct(png)) {}
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;
  ~PngReader() { png_destroy_read_struct(&png, &info, nullptr); }

  [[noreturn]] static void OnError(png_structp png, png_const_charp message) {
    auto* const reader = static_cast<PngReader*>(png_get_error_ptr(png));
    const size_t size = std::min(std::strlen(message), reader->text.size() - 1);
    std::copy_n(message, size, reader->text.data());
    std::longjmp(reader->jump, 1);
  }

  static void OnWarning(png_structp, png_const_charp) {}

  static void Read(png_structp png, png_bytep to, size_t size) {
    auto* const reader = static_cast<PngReader*>(png_get_io_ptr(png));
    if (reader->bytes.size() < size) {
      png_error(png, "the file ends too early");
    }
    std::memcpy(to, reader->bytes.data(), size);
    reader->bytes = reader->bytes.subspan(size);
  }

  std::span<const std::byte> bytes;  // not read yet
  bool clips_grey;
  std::jmp_buf jump{};
  std::array<char, 128> text{};
  png_structp png;
  png_infop info;
  int n_channels = 3;
  uint8_t* pixels = nullptr;
};

// False after an error, whose words are in reader->text then.
bool Try(PngReader* reader, void (*step)(PngReader*)) {
  if (setjmp(reader->jump) != 0) {
    return false;
  }
  step(reader);
  return true;
}

// Everything that does not change pixels or their order is skipped.
void ReadHeader(PngReader* reader) {
  png_structp png = reader->png;
  png_set_read_fn(png, reader, PngReader::Read);
  png_set_user_limits(png, kMaxSide, kMaxSide);
  png_set_chunk_malloc_max(png, kMaxChunkBytes);
  png_set_crc_action(png, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
  png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
  constexpr std::array<png_byte, 5> kExif = {'e', 'X', 'I', 'f', 0};
  png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_AS_DEFAULT, kExif.data(), 1);
  png_read_info(png, reader->info);
}

bool Is16BitGrey(const PngReader& reader) {
  return png_get_bit_depth(reader.png, reader.info) == 16 &&
         png_get_color_type(reader.png, reader.info) == PNG_COLOR_TYPE_GRAY;
}

// 16 bits to 8, in place.
void ClipRow(png_structp, png_row_infop row, png_bytep values) {
  for (size_t i = 0; i < row->rowbytes / 2; ++i) {
    values[i] = values[2 * i] != 0 ? 255 : values[2 * i + 1];
  }
}

void ReadPixels(PngReader* reader) {
  png_structp png = reader->png;
  if (reader->clips_grey && Is16BitGrey(*reader)) {
    png_set_read_user_transform_fn(png, ClipRow);
    png_set_user_transform_info(png, nullptr, 8, 3);
  } else {
    png_set_expand(png);
    png_set_strip_16(png);
  }
  png_set_gray_to_rgb(png);
  const int n_passes = png_set_interlace_handling(png);
  png_read_update_info(png, reader->info);
  const auto height = png_get_image_height(png, reader->info);
  const size_t row_bytes = png_get_rowbytes(png, reader->info);
  const size_t wanted_bytes =
      size_t{png_get_image_width(png, reader->info)} * static_cast<size_t>(reader->n_channels);
  if (row_bytes != wanted_bytes) {
    png_error(png, "unknown kind of pixels");
  }
  for (int pass = 0; pass < n_passes; ++pass) {
    for (size_t y = 0; y < height; ++y) {
      png_read_row(png, reader->pixels + y * row_bytes, nullptr);
    }
  }
  png_read_end(png, reader->info);
}

int CountChannels(const PngReader& reader) {
  const bool has_opacity =
      (png_get_color_type(reader.png, reader.info) & PNG_COLOR_MASK_ALPHA) != 0;
  const bool has_key = png_get_valid(reader.png, reader.info, PNG_INFO_tRNS) != 0 &&
                       !(reader.clips_grey && Is16BitGrey(reader));
  return has_opacity || has_key ? 4 : 3;
}

int OrientationOf(const PngReader& reader) {
  png_uint_32 size = 0;
  png_bytep data = nullptr;
  if (png_get_eXIf_1(reader.png, reader.info, &size, &data) == 0) {
    return 1;
  }
  return ExifOrientation(std::as_bytes(std::span(data, size)));
}

}  // namespace

Result<Raster> DecodePng(const ImageFile& file) {
  PngReader reader(file);
  if (reader.info == nullptr) {
    return DamagedImage(file, "PNG", "no memory to decode it");
  }
  if (!Try(&reader, ReadHeader)) {
    return DamagedImage(file, "PNG", reader.text.data());
  }
  const auto width = png_get_image_width(reader.png, reader.info);
  const auto height = png_get_image_height(reader.png, reader.info);
  FACET_RETURN_IF_ERROR(CheckImageSize(width, height, file));
  reader.n_channels = CountChannels(reader);
  Raster raster = MakeRaster(static_cast<int>(width), static_cast<int>(height), reader.n_channels);
  reader.pixels = raster.pixels.data();
  if (!Try(&reader, ReadPixels)) {
    return DamagedImage(file, "PNG", reader.text.data());
  }
  raster.orientation = OrientationOf(reader);
  return raster;
}

}  // namespace facet
