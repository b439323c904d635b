// SPDX-License-Identifier: Apache-2.0
// A picture made ready for the encoder: the size that fills the budget of soft tokens (reference.md
// 3.1), and the resize to it, equal to Pillow's antialiased bicubic byte for byte.
#pragma once

#include <array>
#include <string>

#include "base/status.h"
#include "media/image.h"
#include "media/media_item.h"

namespace facet {

inline constexpr std::array<int, 5> kImageBudgets = {70, 140, 280, 560, 1120};

struct ImageSize {
  int width = 0;  ///< multiples of 48
  int height = 0;

  [[nodiscard]] int n_tokens() const { return (width / 48) * (height / 48); }
};

/// The size that an image gets. Refused: a budget that is none of the five, a side of zero.
Result<ImageSize> FitImage(int width, int height, int budget);

/// `kind`: kImage or kVideoFrame. `name` is what errors call the picture.
Result<MediaItemPtr> PrepareImage(const Image& image, MediaKind kind, int budget,
                                  const std::string& name);

}  // namespace facet
