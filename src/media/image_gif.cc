// SPDX-License-Identifier: Apache-2.0
// Record by record: giflib's own reading of whole files takes memory for every frame.
#include <gif_lib.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "media/image_formats.h"

namespace facet {
namespace {

constexpr int kOpaque = -1;  // no index is transparent

struct GifReader {
  std::span<const std::byte> bytes;  // not read yet
  GifFileType* gif = nullptr;
  int transparent = kOpaque;

  explicit GifReader(std::span<const std::byte> file) : bytes(file) {}
  GifReader(const GifReader&) = delete;
  GifReader& operator=(const GifReader&) = delete;
  ~GifReader() {
    if (gif != nullptr) {
      DGifCloseFile(gif, nullptr);
    }
  }

  static int Read(GifFileType* file, GifByteType* to, int wanted) {
    auto* const reader = static_cast<GifReader*>(file->UserData);
    const size_t size = std::min(static_cast<size_t>(wanted), reader->bytes.size());
    std::memcpy(to, reader->bytes.data(), size);
    reader->bytes = reader->bytes.subspan(size);
    return static_cast<int>(size);
  }
};

bool ReadExtension(GifReader* reader) {
  int code = 0;
  GifByteType* block = nullptr;
  if (DGifGetExtension(reader->gif, &code, &block) == GIF_ERROR) {
    return false;
  }
  if (code == GRAPHICS_EXT_FUNC_CODE && block != nullptr) {
    GraphicsControlBlock control{};
    if (DGifExtensionToGCB(block[0], block + 1, &control) == GIF_ERROR) {
      return false;
    }
    reader->transparent = control.TransparentColor;
  }
  while (block != nullptr) {
    if (DGifGetExtensionNext(reader->gif, &block) == GIF_ERROR) {
      return false;
    }
  }
  return true;
}

// Up to the pixels of the first frame.
bool ReadToFrame(GifReader* reader) {
  GifRecordType record = UNDEFINED_RECORD_TYPE;
  while (DGifGetRecordType(reader->gif, &record) != GIF_ERROR && record == EXTENSION_RECORD_TYPE) {
    if (!ReadExtension(reader)) {
      return false;
    }
  }
  return record == IMAGE_DESC_RECORD_TYPE && DGifGetImageDesc(reader->gif) != GIF_ERROR;
}

// Colours that no table gives are shades of grey, as in Pillow.
using Palette = std::array<std::array<uint8_t, 4>, 256>;
Palette PaletteOf(const GifReader& reader) {
  Palette palette;
  for (size_t i = 0; i < palette.size(); ++i) {
    const auto grey = static_cast<uint8_t>(i);
    palette[i] = {grey, grey, grey, 255};
  }
  const ColorMapObject* const own = reader.gif->Image.ColorMap;
  const ColorMapObject* const map = own != nullptr ? own : reader.gif->SColorMap;
  const int n_colors = map == nullptr ? 0 : std::min(map->ColorCount, 256);
  for (int i = 0; i < n_colors; ++i) {
    const GifColorType& color = map->Colors[i];
    palette[static_cast<size_t>(i)] = {color.Red, color.Green, color.Blue, 255};
  }
  if (reader.transparent != kOpaque) {
    palette[static_cast<size_t>(reader.transparent) % palette.size()][3] = 0;
  }
  return palette;
}

bool DecodeRow(GifReader* reader, const Palette& palette, int y, Raster* canvas) {
  const GifImageDesc& frame = reader->gif->Image;
  std::vector<GifPixelType> row(static_cast<size_t>(frame.Width));
  if (DGifGetLine(reader->gif, row.data(), frame.Width) == GIF_ERROR) {
    return false;
  }
  uint8_t* to =
      canvas->pixels.data() + 4 * (int64_t{frame.Top + y} * canvas->width + int64_t{frame.Left});
  for (const GifPixelType index : row) {
    to = std::copy_n(palette[index].data(), 4, to);
  }
  return true;
}

bool DecodeFrame(GifReader* reader, const Palette& palette, Raster* canvas) {
  struct Pass {
    int first;
    int step;
  };
  constexpr std::array<Pass, 4> kInterlaced = {{{0, 8}, {4, 8}, {2, 4}, {1, 2}}};
  constexpr std::array<Pass, 1> kInOrder = {{{0, 1}}};
  const std::span<const Pass> passes = reader->gif->Image.Interlace
                                           ? std::span<const Pass>(kInterlaced)
                                           : std::span<const Pass>(kInOrder);
  for (const Pass& pass : passes) {
    for (int y = pass.first; y < reader->gif->Image.Height; y += pass.step) {
      if (!DecodeRow(reader, palette, y, canvas)) {
        return false;
      }
    }
  }
  return true;
}

const char* ErrorText(int code) {
  const char* const text = GifErrorString(code);
  return text == nullptr ? "no complete picture in it" : text;
}

}  // namespace

Result<Raster> DecodeGif(const ImageFile& file) {
  GifReader reader(file.bytes);
  int error = 0;
  reader.gif = DGifOpen(&reader, GifReader::Read, &error);
  if (reader.gif == nullptr) {
    return DamagedImage(file, "GIF", ErrorText(error));
  }
  if (!ReadToFrame(&reader)) {
    return DamagedImage(file, "GIF", ErrorText(reader.gif->Error));
  }
  const GifImageDesc& frame = reader.gif->Image;
  FACET_RETURN_IF_ERROR(CheckImageSize(frame.Width, frame.Height, file));
  const int width = std::max(reader.gif->SWidth, frame.Left + frame.Width);
  const int height = std::max(reader.gif->SHeight, frame.Top + frame.Height);
  FACET_RETURN_IF_ERROR(CheckImageSize(width, height, file));
  Raster canvas = MakeRaster(width, height, 4);
  const Palette palette = PaletteOf(reader);
  // Around the frame nothing is seen; below that lies what Pillow fills a canvas with.
  std::array<uint8_t, 4> around = palette[static_cast<size_t>(std::max(reader.transparent, 0))];
  around[3] = 0;
  for (size_t at = 0; at < canvas.pixels.size(); at += 4) {
    std::copy_n(around.data(), 4, canvas.pixels.data() + at);
  }
  if (!DecodeFrame(&reader, palette, &canvas)) {
    return DamagedImage(file, "GIF", ErrorText(reader.gif->Error));
  }
  return canvas;
}

}  // namespace facet
