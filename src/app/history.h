// SPDX-License-Identifier: Apache-2.0
// What was typed into the chat before, kept in a file that only its owner may read: one entry per
// line, with line breaks and backslashes escaped. Each entry is appended when it is made, so that
// several chats share the file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace facet {

class History {
 public:
  static constexpr size_t kMaxEntries = 1000;
  static constexpr size_t kMaxEntryBytes = 16384;  ///< longer ones are not kept

  /// Keeps entries in memory only.
  History() = default;
  /// Reads the file when it exists; makes its folder (mode 0700) when that does not. A file with
  /// more entries than kMaxEntries is shortened to the newest.
  static Result<History> Open(const std::string& path);

  [[nodiscard]] const std::vector<std::string>& entries() const {
    return entries_;
  }  ///< oldest first

  /// Blank entries and repetitions of the newest are left out. Fails when the file cannot be
  /// written.
  Status Add(const std::string& entry);

 private:
  std::string path_;
  std::vector<std::string> entries_;
};

}  // namespace facet
