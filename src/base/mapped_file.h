// SPDX-License-Identifier: Apache-2.0
// A file mapped read-only into memory.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/status.h"

namespace facet {

/// Owns the mapping; the bytes stay at the same address until destruction, also through moves. Safe
/// for concurrent reads. The file must not be shortened while mapped.
class MappedFile {
 public:
  static Result<MappedFile> Open(const std::string& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

  /// Gives the memory of the whole pages inside `part` of bytes() back to the system. The bytes
  /// stay what they are: what is read again comes from the file.
  void Release(std::span<const std::byte> part) const;

 private:
  explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::span<const std::byte> bytes_;
};

}  // namespace facet
