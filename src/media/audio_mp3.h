// SPDX-License-Identifier: Apache-2.0
// The frames of MP3 files. Their number is in the file only where an encoder put a tag into the
// first one; without it libsndfile guesses the length from the size, wrongly for a varying bit
// rate, and stops there. So they are counted here, which also shows what was cut off.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace facet {

/// Whether the bytes begin with the header of a frame of MPEG layer III.
bool IsMp3Frame(std::string_view bytes);

/// The frames alone, without tags, behind a first one that says how many there are: the file's own,
/// which may also tell what the encoder added at both ends, or one made here. `file` begins with a
/// frame. Refused: a last frame that is cut, fewer or more frames than the file says, other bytes
/// between frames or behind them that are no tag. `name` is what errors call the file.
Result<std::string> CountedMp3(std::span<const std::byte> file, const std::string& name);

}  // namespace facet
