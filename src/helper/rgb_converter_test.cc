// SPDX-License-Identifier: Apache-2.0
// Turning is tested in video_task_test.cc, on files that ask for it.
#include "helper/rgb_converter.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>

extern "C" {
#include <libavutil/frame.h>
#include <libavutil/pixfmt.h>
}

namespace facet::helper {
namespace {

/// One colour of 16 x 16 pixels in YUV 4:4:4.
std::array<int, 3> Converted(int y, int u, int v, AVColorSpace space, AVColorRange range) {
  const FramePtr frame(av_frame_alloc());
  frame->format = AV_PIX_FMT_YUV444P;
  frame->width = 16;
  frame->height = 16;
  frame->colorspace = space;
  frame->color_range = range;
  EXPECT_EQ(av_frame_get_buffer(frame.get(), 0), 0);
  const std::array<int, 3> values = {y, u, v};
  for (size_t plane = 0; plane < 3; ++plane) {
    for (int row = 0; row < 16; ++row) {
      uint8_t* line = frame->data[plane] + ptrdiff_t{row} * frame->linesize[plane];
      std::fill(line, line + 16, static_cast<uint8_t>(values[plane]));
    }
  }
  RgbConverter converter({});
  const auto image = converter.Convert(*frame);
  EXPECT_TRUE(image.ok());
  return {image->rgb[0], image->rgb[1], image->rgb[2]};
}

void ExpectNear(const std::array<int, 3>& colour, const std::array<int, 3>& expected) {
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(colour[i], expected[i], 2) << "channel " << i;
  }
}

TEST(RgbConverter, ReadsColoursAsTheyAreLabelled) {
  // Limited range: 16 is black, 235 white.
  ExpectNear(Converted(16, 128, 128, AVCOL_SPC_UNSPECIFIED, AVCOL_RANGE_UNSPECIFIED), {0, 0, 0});
  ExpectNear(Converted(235, 128, 128, AVCOL_SPC_BT709, AVCOL_RANGE_MPEG), {255, 255, 255});
  ExpectNear(Converted(100, 128, 128, AVCOL_SPC_UNSPECIFIED, AVCOL_RANGE_JPEG), {100, 100, 100});
  // Pure red by the formulas of BT.601 and of BT.709.
  ExpectNear(Converted(81, 90, 240, AVCOL_SPC_SMPTE170M, AVCOL_RANGE_MPEG), {254, 0, 0});
  ExpectNear(Converted(81, 90, 240, AVCOL_SPC_UNSPECIFIED, AVCOL_RANGE_MPEG), {254, 0, 0});
  ExpectNear(Converted(63, 102, 240, AVCOL_SPC_BT709, AVCOL_RANGE_MPEG), {255, 0, 0});
}

TEST(OrientationOf, RoundsToQuarterTurns) {
  const auto of = [](double a, double b, double c, double d) {
    const auto fixed = [](double x) { return static_cast<int32_t>(x * 65536); };
    const std::array<int32_t, 9> matrix = {fixed(a), fixed(b), 0, fixed(c), fixed(d),
                                           0,        0,        0, 1 << 30};
    return OrientationOf(matrix.data());
  };
  EXPECT_FALSE(of(1, 0, 0, 1).is_transposed);
  EXPECT_TRUE(of(0, 1, -1, 0).is_transposed);
  EXPECT_TRUE(of(0, 1, -1, 0).flips_x);
  EXPECT_FALSE(of(0, 1, -1, 0).flips_y);
  EXPECT_TRUE(of(0.1, 0.99, -0.99, 0.1).is_transposed);
  EXPECT_FALSE(of(0.99, 0.1, -0.1, 0.99).is_transposed);
  EXPECT_FALSE(of(0, 0, 0, 0).is_transposed);
}

}  // namespace
}  // namespace facet::helper
