// SPDX-License-Identifier: Apache-2.0
#include "helper/rgb_converter.h"

#include <cstddef>
#include <cstdlib>
#include <cstring>

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/display.h>
#include <libavutil/frame.h>
#include <libswscale/swscale.h>
}

namespace facet::helper {
namespace {

constexpr int kDisplayMatrixNumbers = 9;
constexpr size_t kChannels = 3;

/// The display matrix of a track, or null. libavformat 61 moved it.
const int32_t* DisplayMatrix(const AVStream& stream) {
  constexpr size_t kBytes = kDisplayMatrixNumbers * sizeof(int32_t);
#if LIBAVFORMAT_VERSION_MAJOR >= 61
  const AVPacketSideData* data =
      av_packet_side_data_get(stream.codecpar->coded_side_data, stream.codecpar->nb_coded_side_data,
                              AV_PKT_DATA_DISPLAYMATRIX);
  return data != nullptr && data->size >= kBytes ? reinterpret_cast<const int32_t*>(data->data)
                                                 : nullptr;
#else
  size_t size = 0;
  const uint8_t* data = av_stream_get_side_data(&stream, AV_PKT_DATA_DISPLAYMATRIX, &size);
  return data != nullptr && size >= kBytes ? reinterpret_cast<const int32_t*>(data) : nullptr;
#endif
}

/// `rgb` has rows that are padded; the image's are not.
Image Turn(const AVFrame& rgb, const Orientation& orientation) {
  Image image{.width = rgb.width, .height = rgb.height, .rgb = {}};
  if (orientation.is_transposed) {
    std::swap(image.width, image.height);
  }
  image.rgb.resize(kChannels * static_cast<size_t>(image.width) *
                   static_cast<size_t>(image.height));
  uint8_t* out = image.rgb.data();
  for (int y = 0; y < image.height; ++y) {
    const int shown_y = orientation.flips_y ? image.height - 1 - y : y;
    for (int x = 0; x < image.width; ++x) {
      const int shown_x = orientation.flips_x ? image.width - 1 - x : x;
      const int row = orientation.is_transposed ? shown_x : shown_y;
      const int column = orientation.is_transposed ? shown_y : shown_x;
      std::memcpy(out, rgb.data[0] + ptrdiff_t{row} * rgb.linesize[0] + ptrdiff_t{column} * 3,
                  kChannels);
      out += kChannels;
    }
  }
  return image;
}

}  // namespace

Orientation OrientationOf(const int32_t* matrix) {
  // Shown x = a·x + c·y and shown y = b·x + d·y.
  const int64_t a = matrix[0];
  const int64_t b = matrix[1];
  const int64_t c = matrix[3];
  const int64_t d = matrix[4];
  const bool is_transposed = std::abs(b) + std::abs(c) > std::abs(a) + std::abs(d);
  return {.is_transposed = is_transposed,
          .flips_x = (is_transposed ? c : a) < 0,
          .flips_y = (is_transposed ? b : d) < 0};
}

Orientation OrientationOf(const AVStream& stream) {
  const int32_t* matrix = DisplayMatrix(stream);
  return matrix == nullptr ? Orientation() : OrientationOf(matrix);
}

void RgbConverter::Free::operator()(SwsContext* context) const { sws_freeContext(context); }

Result<Image> RgbConverter::Convert(const AVFrame& frame) {
  const auto format = static_cast<AVPixelFormat>(frame.format);
  scaler_.reset(sws_getCachedContext(scaler_.release(), frame.width, frame.height, format,
                                     frame.width, frame.height, AV_PIX_FMT_RGB24, SWS_BICUBIC,
                                     nullptr, nullptr, nullptr));
  if (scaler_ == nullptr) {
    return Refuse("", "pixels of a form that libswscale cannot convert", "another form");
  }
  // Of formats that have no such coefficients it says so, and needs none.
  constexpr int kOne = 1 << 16;
  (void)sws_setColorspaceDetails(scaler_.get(), sws_getCoefficients(frame.colorspace),
                                 frame.color_range == AVCOL_RANGE_JPEG ? 1 : 0,
                                 sws_getCoefficients(SWS_CS_DEFAULT), 1, 0, kOne, kOne);
  const FramePtr rgb(av_frame_alloc());
  if (rgb == nullptr) {
    return Refuse("", "memory ran out", "a smaller frame");
  }
  rgb->format = AV_PIX_FMT_RGB24;
  rgb->width = frame.width;
  rgb->height = frame.height;
  if (av_frame_get_buffer(rgb.get(), 0) < 0) {
    return Refuse("", "memory ran out", "a smaller frame");
  }
  if (sws_scale(scaler_.get(), frame.data, frame.linesize, 0, frame.height, rgb->data,
                rgb->linesize) != frame.height) {
    return Refuse("", "pixels that libswscale cannot convert", "another form");
  }
  return Turn(*rgb, orientation_);
}

}  // namespace facet::helper
