// SPDX-License-Identifier: Apache-2.0
// Pillow's BICUBIC resize with antialiasing: two passes in fixed point, a = -0.5, support scaled by
// the factor of shrinking, each pass rounded to bytes. Equal to it byte for byte.
#pragma once

#include "media/image.h"

namespace facet {

/// The image itself when it has that size already. Sides are positive.
Image ResizeBicubic(const Image& image, int width, int height);

}  // namespace facet
