// SPDX-License-Identifier: Apache-2.0
// "data:image/png;base64,..." (RFC 2397), as far as media are sent in it: base64 only. The type is
// passed over; what the bytes are, they say themselves.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/status.h"

namespace facet {

bool IsDataUri(std::string_view url);

/// `where` is what errors call the URI, which is one.
Result<std::string> DecodeDataUri(std::string_view uri, size_t max_bytes, const std::string& where);

}  // namespace facet
