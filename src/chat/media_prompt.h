// SPDX-License-Identifier: Apache-2.0
// Where media stand in a prompt: the template writes a placeholder for each part, which becomes the
// marks and soft tokens of its items (reference.md 5 and 6.2), and the tokens tell where each item
// lies. Placeholders that came from outside stay text.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "chat/prompt.h"
#include "media/media_item.h"
#include "text/vocab.h"

namespace facet {

enum class MediaPartKind { kImage, kAudio, kVideo };

/// One content part. An image has one item; audio one or more, one after the other; a video its
/// frames.
struct MediaPart {
  MediaPartKind kind = MediaPartKind::kImage;
  std::vector<MediaItemPtr> items;
  std::vector<double> seconds = {};  ///< kVideo: when each frame is shown
};

/// The prompt with the placeholders, in order, written out. Refused when the template wrote others
/// than there are parts (a text-only template writes none), or the vocabulary lacks the marks.
Result<Prompt> ExpandMedia(const Prompt& prompt, std::span<const MediaPart> parts,
                           const Vocab& vocab);

/// The items of `parts` in the tokens of an expanded prompt.
Result<std::vector<PlacedMedia>> PlaceMedia(std::span<const int32_t> prompt,
                                            std::span<const MediaPart> parts, const Vocab& vocab);

}  // namespace facet
