// SPDX-License-Identifier: Apache-2.0
// Base64 of RFC 4648 (section 4), read strictly: no line breaks, no missing padding, no bits that
// say nothing, so that one text has one meaning and no other text has it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/status.h"

namespace facet {

/// `where` is what errors call the text. More than `max_bytes` decoded are refused before any
/// memory is taken.
Result<std::string> DecodeBase64(std::string_view text, size_t max_bytes, const std::string& where);

}  // namespace facet
