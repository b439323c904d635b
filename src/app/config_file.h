// SPDX-License-Identifier: Apache-2.0
// The configuration file: lines of `key = value`, a small and strict part of TOML. Values are
// numbers, true, false, "texts" with the escapes \n \t \r \" \\, 'texts' without escapes, bare
// texts up to a comment, and for keys that may be repeated ["a", 'b']. Comments begin with #. A
// file that begins with { is one JSON object with the same keys. An unknown or repeated key is
// refused.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "app/options.h"
#include "base/status.h"

namespace facet {

struct ConfigEntry {
  const OptionSpec* option;
  std::vector<std::string> values;  ///< unchecked
  std::string where;                ///< "FILE:LINE: KEY", of JSON "FILE: KEY", for errors
};

/// `name` is what errors call the file.
Result<std::vector<ConfigEntry>> ParseConfig(std::string_view text, const std::string& name);

}  // namespace facet
