// SPDX-License-Identifier: Apache-2.0
// The sound of a file as one channel, the mean of those it has, at the rate it has.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/status.h"
#include "media/helper_protocol.h"

struct AVFrame;

namespace facet::helper {

/// Answers with all but DONE.
Status AnswerSound(std::span<const std::byte> file, const HelperJob& job);

/// Appends the mean of the channels of each sample, full scale being 1. Refuses sample formats that
/// no decoder of ours gives.
Status AppendMean(const AVFrame& frame, std::vector<float>& out);

}  // namespace facet::helper
