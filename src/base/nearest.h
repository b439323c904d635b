// SPDX-License-Identifier: Apache-2.0
// What a misspelt name was probably meant to be: for "did you mean" in errors about options,
// commands and fields.
#pragma once

#include <span>
#include <string_view>

namespace facet {

/// Of `names` the one that is most like `text`, when it is like it at all; else empty.
std::string_view Nearest(std::string_view text, std::span<const std::string_view> names);

}  // namespace facet
