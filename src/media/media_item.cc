// SPDX-License-Identifier: Apache-2.0
#include "media/media_item.h"

#include <span>

#include "base/bytes.h"
#include "base/sha256.h"

namespace facet {

std::string HashOf(const MediaItem& item) {
  std::string head;
  Append(head, static_cast<int32_t>(item.kind));
  Append(head, static_cast<int32_t>(item.n_tokens));
  Append(head, static_cast<int32_t>(item.width));
  Append(head, static_cast<int32_t>(item.height));
  Append(head, static_cast<int32_t>(item.audio_form));
  Append(head, static_cast<int32_t>(item.n_frames));
  Sha256 hash;
  hash.Add(AsBytes(head));
  hash.Add(std::as_bytes(std::span(item.pixels)));
  hash.Add(std::as_bytes(std::span(item.sound)));
  return hash.Hex();
}

}  // namespace facet
