// SPDX-License-Identifier: Apache-2.0
// Whether a file in memory is all of it, as far as its container tells: demuxers take a file that
// was cut between two packets for a shorter one.
#pragma once

#include <cstddef>
#include <span>

#include "base/status.h"
#include "media/helper_protocol.h"

namespace facet::helper {

/// Refuses a file that says that it is longer. ADTS and files of unknown length say nothing.
Status CheckWholeFile(std::span<const std::byte> bytes, Container container);

}  // namespace facet::helper
