// SPDX-License-Identifier: Apache-2.0
// How a camera was held, as EXIF tells it: one number in a directory of TIFF. Only that directory
// is read, no link in it is followed, so nothing can loop; what is broken counts as not turned.
#pragma once

#include <cstddef>
#include <span>

#include "media/image.h"

namespace facet {

/// 1 to 8; 1 where nothing is said. `block`: TIFF data, with or without "Exif\0\0" before it.
int ExifOrientation(std::span<const std::byte> block);

/// The picture as it is to be seen. Orientations 5 to 8 exchange the sides.
Image Turn(Image image, int orientation);

}  // namespace facet
