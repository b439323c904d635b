// SPDX-License-Identifier: Apache-2.0
#include <webp/decode.h>
#include <webp/demux.h>

#include <memory>

#include "media/exif.h"
#include "media/image_formats.h"

namespace facet {
namespace {

using Demuxer = std::unique_ptr<WebPDemuxer, decltype(&WebPDemuxDelete)>;

int OrientationOf(const WebPDemuxer* demuxer) {
  WebPChunkIterator chunk{};
  int orientation = 1;
  if (WebPDemuxGetChunk(demuxer, "EXIF", 1, &chunk) != 0) {
    orientation = ExifOrientation(std::as_bytes(std::span(chunk.chunk.bytes, chunk.chunk.size)));
  }
  WebPDemuxReleaseChunkIterator(&chunk);
  return orientation;
}

// A frame of a moving picture may cover a part of the canvas: the rest is transparent.
bool Covers(const WebPIterator& frame, const Raster& canvas) {
  return frame.width == canvas.width && frame.height == canvas.height;
}

bool DecodeFrame(const WebPIterator& frame, Raster* canvas) {
  const size_t stride =
      static_cast<size_t>(canvas->width) * static_cast<size_t>(canvas->n_channels);
  const size_t begin =
      static_cast<size_t>(frame.y_offset) * stride +
      static_cast<size_t>(frame.x_offset) * static_cast<size_t>(canvas->n_channels);
  auto* const decode = canvas->n_channels == 4 ? WebPDecodeRGBAInto : WebPDecodeRGBInto;
  return decode(frame.fragment.bytes, frame.fragment.size, canvas->pixels.data() + begin,
                canvas->pixels.size() - begin, static_cast<int>(stride)) != nullptr;
}

}  // namespace

Result<Raster> DecodeWebp(const ImageFile& file) {
  const WebPData data{reinterpret_cast<const uint8_t*>(file.bytes.data()), file.bytes.size()};
  const Demuxer demuxer(WebPDemux(&data), &WebPDemuxDelete);
  WebPIterator frame{};
  if (demuxer == nullptr || WebPDemuxGetFrame(demuxer.get(), 1, &frame) == 0) {
    return DamagedImage(file, "WebP", "no complete picture in it");
  }
  const std::unique_ptr<WebPIterator, decltype(&WebPDemuxReleaseIterator)> release(
      &frame, &WebPDemuxReleaseIterator);
  const auto width = WebPDemuxGetI(demuxer.get(), WEBP_FF_CANVAS_WIDTH);
  const auto height = WebPDemuxGetI(demuxer.get(), WEBP_FF_CANVAS_HEIGHT);
  FACET_RETURN_IF_ERROR(CheckImageSize(width, height, file));
  Raster canvas{.width = static_cast<int>(width), .height = static_cast<int>(height), .pixels = {}};
  canvas = MakeRaster(canvas.width, canvas.height,
                      frame.has_alpha != 0 || !Covers(frame, canvas) ? 4 : 3);
  if (!DecodeFrame(frame, &canvas)) {
    return DamagedImage(file, "WebP", "its pixels cannot be decoded");
  }
  canvas.orientation = OrientationOf(demuxer.get());
  return canvas;
}

}  // namespace facet
