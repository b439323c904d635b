// SPDX-License-Identifier: Apache-2.0
#include "media/prepare_image.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "base/check.h"
#include "media/resize.h"

namespace facet {
namespace {

constexpr int kCell = 48;  // pixels along the side of what becomes one soft token

// Python's float division and floor, which the reference uses throughout.
int CellsIn(double length) { return static_cast<int>(std::floor(length / kCell)); }
int WholeRatio(int longer, int shorter) {
  return static_cast<int>(std::floor(static_cast<double>(longer) / shorter));
}

}  // namespace

Result<ImageSize> FitImage(int width, int height, int budget) {
  if (std::find(kImageBudgets.begin(), kImageBudgets.end(), budget) == kImageBudgets.end()) {
    return Refuse("image budget", fmt::format("{} soft tokens", budget),
                  fmt::format("one of {}", fmt::join(kImageBudgets, ", ")));
  }
  if (width < 1 || height < 1) {
    return Refuse("image", fmt::format("{} x {} pixels", width, height), "at least 1 x 1");
  }
  const double n_pixels = static_cast<double>(width) * height;
  const double factor = std::sqrt(static_cast<double>(budget * kCell * kCell) / n_pixels);
  int n_columns = CellsIn(factor * width);
  int n_rows = CellsIn(factor * height);
  // Both cannot be zero: the product of the sides before rounding is that of the budget. Long
  // pictures whose short side would vanish are widened.
  if (n_rows == 0) {
    n_rows = 1;
    n_columns = std::min(WholeRatio(width, height), budget);
  } else if (n_columns == 0) {
    n_columns = 1;
    n_rows = std::min(WholeRatio(height, width), budget);
  }
  return ImageSize{n_columns * kCell, n_rows * kCell};
}

Result<MediaItemPtr> PrepareImage(const Image& image, MediaKind kind, int budget,
                                  const std::string& name) {
  FACET_CHECK(kind != MediaKind::kAudio);
  const Result<ImageSize> size = FitImage(image.width, image.height, budget);
  if (!size.ok()) {
    return Refuse(name, size.error().found, size.error().wanted);
  }
  auto item = std::make_shared<MediaItem>();
  item->kind = kind;
  item->n_tokens = size->n_tokens();
  item->width = size->width;
  item->height = size->height;
  item->pixels = ResizeBicubic(image, size->width, size->height).rgb;
  item->hash = HashOf(*item);
  return MediaItemPtr(std::move(item));
}

}  // namespace facet
