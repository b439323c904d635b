// SPDX-License-Identifier: Apache-2.0
// Decoded frames to red, green and blue, turned as the file says that they are to be seen. Colours
// as the frame is labelled, BT.601 where it is not.
#pragma once

#include <cstdint>
#include <memory>

#include "base/status.h"
#include "helper/media_file.h"
#include "media/image.h"

struct SwsContext;

namespace facet::helper {

/// How a stored picture is turned for showing: mirrored along an axis, then the axes exchanged.
struct Orientation {
  bool is_transposed = false;  ///< rows are shown as columns
  bool flips_x = false;        ///< of the shown picture
  bool flips_y = false;
};

/// Of a display matrix, nine numbers (ISO 14496-12); angles between those of quarter turns are
/// rounded.
Orientation OrientationOf(const int32_t* matrix);
/// As the track is labelled.
Orientation OrientationOf(const AVStream& stream);

class RgbConverter {
 public:
  explicit RgbConverter(Orientation orientation) : orientation_(orientation) {}

  Result<Image> Convert(const AVFrame& frame);

 private:
  struct Free {
    void operator()(SwsContext* context) const;
  };

  Orientation orientation_;
  std::unique_ptr<SwsContext, Free> scaler_;  // for frames like the last one
};

}  // namespace facet::helper
