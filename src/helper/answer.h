// SPDX-License-Identifier: Apache-2.0
// Standard output, which facet reads (media/helper_protocol.h).
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace facet::helper {

/// Writes all of it. A reader that is gone ends this process.
void Answer(std::span<const std::byte> bytes);
void Answer(std::string_view bytes);

}  // namespace facet::helper
