// SPDX-License-Identifier: Apache-2.0
// The chosen frames of a video. Two ways give the same frames: where each packet is known to be one
// frame, the times of the packets tell which packets are needed, and only what lies between the
// wanted frames and the key frames before them is decoded; else, or where that turns out wrong, all
// is decoded twice, to count and to take.
#pragma once

#include <cstddef>
#include <span>

#include "base/status.h"
#include "media/helper_protocol.h"

namespace facet::helper {

/// Answers with all but DONE.
Status AnswerVideo(std::span<const std::byte> file, const HelperJob& job);

}  // namespace facet::helper
