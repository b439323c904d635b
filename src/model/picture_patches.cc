// SPDX-License-Identifier: Apache-2.0
#include "model/picture_patches.h"

#include <fmt/format.h>

namespace facet {
namespace {

constexpr int kChannels = 3;

}  // namespace

Status CheckPicture(const MediaItem& item, int side, int n_positions) {
  if (item.kind == MediaKind::kAudio) {
    return Refuse("media", "sound", "a picture");
  }
  const std::string where = fmt::format("picture of {}x{} pixels", item.width, item.height);
  if (item.width < 1 || item.height < 1 || item.width % kTokenSide != 0 ||
      item.height % kTokenSide != 0) {
    return Refuse(where, "its sides", "multiples of 48");
  }
  const int64_t most = int64_t{n_positions} * side;
  if (item.width > most || item.height > most) {
    return Refuse(where, "larger than the encoder's table of positions",
                  fmt::format("at most {} pixels a side", most));
  }
  const int64_t n_tokens = int64_t{item.width / kTokenSide} * (item.height / kTokenSide);
  if (n_tokens != item.n_tokens || n_tokens > kMostItemTokens) {
    return Refuse(where, fmt::format("{} tokens", item.n_tokens),
                  fmt::format("{}, and at most {}", n_tokens, kMostItemTokens));
  }
  const int64_t n_bytes = int64_t{item.width} * item.height * kChannels;
  if (static_cast<int64_t>(item.pixels.size()) != n_bytes) {
    return Refuse(where, fmt::format("{} bytes", item.pixels.size()), fmt::format("{}", n_bytes));
  }
  return {};
}

ByteValues UnitBytes() {
  constexpr double kScale =
      0.00392156862745098;  // the reference's factor, rounded as written there
  ByteValues values{};
  for (size_t byte = 0; byte < values.size(); ++byte) {
    values[byte] = static_cast<float>(static_cast<double>(byte) * kScale);
  }
  return values;
}

void AppendPositions(const MediaItem& picture, int side, PatchPositions* positions) {
  for (int y = 0; y < picture.height / side; ++y) {
    for (int x = 0; x < picture.width / side; ++x) {
      positions->x.push_back(x);
      positions->y.push_back(y);
    }
  }
}

void CutPatches(const MediaItem& picture, int side, const ByteValues& values, float* rows) {
  const auto line_bytes = static_cast<size_t>(side) * kChannels;
  const size_t picture_line_bytes = static_cast<size_t>(picture.width) * kChannels;
  for (int y = 0; y < picture.height / side; ++y) {
    for (int x = 0; x < picture.width / side; ++x) {
      for (int line = 0; line < side; ++line) {
        const uint8_t* bytes = picture.pixels.data() +
                               static_cast<size_t>(y * side + line) * picture_line_bytes +
                               static_cast<size_t>(x) * line_bytes;
        for (size_t i = 0; i < line_bytes; ++i) {
          *rows++ = values[bytes[i]];
        }
      }
    }
  }
}

}  // namespace facet
