// SPDX-License-Identifier: Apache-2.0
// libjpeg reports errors by a jump. Only Try() sets the target, and what it runs owns nothing: all
// memory belongs to JpegReader, which outlives it.
// clang-format off
#include <cstdio>  // before jpeglib.h, which uses its names
#include <jpeglib.h>
#include <jerror.h>
// clang-format on

#include <algorithm>
#include <array>
#include <csetjmp>
#include <span>
#include <string_view>
#include <vector>

#include "media/exif.h"
#include "media/image_formats.h"

namespace facet {
namespace {

// A progressive file has about ten scans, each of which goes through the whole picture. A small
// picture may have more.
constexpr int64_t kMostScans = 100;
constexpr int64_t kFewestScans = 20;
constexpr int64_t kMostScannedPixels = 2'000'000'000;
// Coefficients of four channels, two bytes each, and what the library rounds up.
constexpr int64_t kMostBytesPerPixel = 10;

// Warnings after which every pixel is still there.
constexpr std::array<int, 6> kHarmless = {JWRN_EXTRANEOUS_DATA,   JWRN_ADOBE_XFORM,
                                          JWRN_BOGUS_PROGRESSION, JWRN_JFIF_MAJOR,
                                          JWRN_NOT_SEQUENTIAL,    JWRN_TOO_MUCH_DATA};

struct JpegReader {
  explicit JpegReader(std::span<const std::byte> bytes_to_read) : bytes(bytes_to_read) {
    info.err = jpeg_std_error(&errors);
    errors.error_exit = OnError;
    errors.emit_message = OnWarning;
    info.client_data = this;
    progress.progress_monitor = OnProgress;
  }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;
  ~JpegReader() { jpeg_destroy_decompress(&info); }

  static JpegReader* Of(j_common_ptr common) {
    return static_cast<JpegReader*>(common->client_data);
  }

  [[noreturn]] static void OnError(j_common_ptr common) {
    JpegReader* const reader = Of(common);
    reader->errors.format_message(common, reader->text.data());
    std::longjmp(reader->jump, 1);
  }

  static void OnWarning(j_common_ptr common, int level) {
    const int code = common->err->msg_code;
    if (level < 0 && std::find(kHarmless.begin(), kHarmless.end(), code) == kHarmless.end()) {
      OnError(common);
    }
  }

  static void OnProgress(j_common_ptr common) {
    JpegReader* const reader = Of(common);
    if (reader->info.input_scan_number > reader->max_scans) {
      constexpr std::string_view kText = "too many scans";
      std::copy_n(kText.data(), kText.size() + 1, reader->text.data());
      std::longjmp(reader->jump, 1);
    }
  }

  jpeg_decompress_struct info{};
  jpeg_error_mgr errors{};
  jpeg_progress_mgr progress{};
  std::jmp_buf jump{};
  std::array<char, JMSG_LENGTH_MAX> text{};
  std::span<const std::byte> bytes;
  int64_t max_scans = kMostScans;
  std::vector<uint8_t> row;  // of a picture in CMYK
  uint8_t* pixels = nullptr;
};

// False after an error, whose words are in reader->text then.
bool Try(JpegReader* reader, void (*step)(JpegReader*)) {
  if (setjmp(reader->jump) != 0) {
    return false;
  }
  step(reader);
  return true;
}

void ReadHeader(JpegReader* reader) {
  jpeg_decompress_struct* const info = &reader->info;
  jpeg_create_decompress(info);
  info->client_data = reader;
  info->progress = &reader->progress;
  jpeg_save_markers(info, JPEG_APP0 + 1, 0xFFFF);
  jpeg_mem_src(info, reinterpret_cast<const unsigned char*>(reader->bytes.data()),
               reader->bytes.size());
  jpeg_read_header(info, TRUE);
}

// `from` is what Adobe stores: 255 is no ink.
void RgbFromCmyk(const uint8_t* from, int width, uint8_t* to) {
  for (int x = 0; x < width; ++x, from += 4, to += 3) {
    const int black = from[3];
    for (int channel = 0; channel < 3; ++channel) {
      to[channel] = static_cast<uint8_t>(black - ((255 - from[channel]) * black + 127) / 255);
    }
  }
}

void ReadPixels(JpegReader* reader) {
  jpeg_decompress_struct* const info = &reader->info;
  jpeg_start_decompress(info);
  while (info->output_scanline < info->output_height) {
    uint8_t* const to =
        reader->pixels + size_t{3} * info->output_width * size_t{info->output_scanline};
    uint8_t* row = reader->row.empty() ? to : reader->row.data();
    jpeg_read_scanlines(info, &row, 1);
    if (!reader->row.empty()) {
      RgbFromCmyk(row, static_cast<int>(info->output_width), to);
    }
  }
  jpeg_finish_decompress(info);
}

int OrientationOf(const jpeg_decompress_struct& info) {
  constexpr std::string_view kHead("Exif\0\0", 6);
  for (const auto* marker = info.marker_list; marker != nullptr; marker = marker->next) {
    const auto block = std::as_bytes(std::span(marker->data, marker->data_length));
    if (block.size() > kHead.size() && std::equal(kHead.begin(), kHead.end(), marker->data)) {
      return ExifOrientation(block);
    }
  }
  return 1;
}

}  // namespace

Result<Raster> DecodeJpeg(const ImageFile& file) {
  JpegReader reader(file.bytes);
  if (!Try(&reader, ReadHeader)) {
    return DamagedImage(file, "JPEG", reader.text.data());
  }
  jpeg_decompress_struct& info = reader.info;
  const int64_t n_pixels = int64_t{info.image_width} * info.image_height;
  FACET_RETURN_IF_ERROR(CheckImageSize(info.image_width, info.image_height, file));
  if (info.num_components == 2 || info.num_components > 4) {
    return DamagedImage(file, "JPEG", "neither grey nor three nor four colours");
  }
  const bool is_cmyk = info.num_components == 4;
  info.out_color_space = is_cmyk ? JCS_CMYK : JCS_RGB;
  info.mem->max_memory_to_use = static_cast<long>(file.limits.max_pixels * kMostBytesPerPixel);
  reader.max_scans = std::clamp(kMostScannedPixels / n_pixels, kFewestScans, kMostScans);
  Raster raster =
      MakeRaster(static_cast<int>(info.image_width), static_cast<int>(info.image_height), 3);
  raster.orientation = OrientationOf(info);
  reader.pixels = raster.pixels.data();
  reader.row.resize(is_cmyk ? size_t{4} * info.image_width : 0);
  if (!Try(&reader, ReadPixels)) {
    return DamagedImage(file, "JPEG", reader.text.data());
  }
  return raster;
}

}  // namespace facet
