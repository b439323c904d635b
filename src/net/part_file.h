// SPDX-License-Identifier: Apache-2.0
// The beginning of a file that is being downloaded: PATH.part, locked against other processes, and
// PATH.part.json, which says of what it is the beginning.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/sha256.h"
#include "base/status.h"

namespace facet {

/// Which version of the file the part is the beginning of.
struct PartOrigin {
  std::string url;
  std::string validator;  ///< ETag, or date of the last change; empty: it cannot be resumed
  std::optional<uint64_t> size;
  std::string sha256;  ///< as the server announced it; empty when it did not

  bool operator==(const PartOrigin&) const = default;
};

/// Owns the lock for as long as it lives. Not for several threads.
class PartFile {
 public:
  /// Opens or creates PATH.part and takes what can be resumed of it: all, when its origin is `url`
  /// and has a validator, else nothing. Refuses when another process has it.
  static Result<PartFile> Open(const std::string& path, const std::string& url);
  PartFile(PartFile&& other) noexcept;
  PartFile& operator=(PartFile&&) = delete;
  /// Removes a part that nothing could be resumed from.
  ~PartFile();

  [[nodiscard]] uint64_t n_bytes() const { return n_bytes_; }
  [[nodiscard]] const PartOrigin& origin() const { return origin_; }
  /// Of all bytes that are there.
  [[nodiscard]] std::string Sha256Hex() const { return hash_.Hex(); }
  /// Bytes that the disk has left.
  [[nodiscard]] Result<uint64_t> FreeBytes() const;

  /// Sets the origin, before bytes of it are added; `is_resumed`: of the same version as those that
  /// are there. Otherwise the part is emptied first.
  Status Begin(PartOrigin origin, bool is_resumed);
  Status Add(std::span<const std::byte> bytes);
  /// Puts everything onto the disk and renames it to PATH. The last call.
  Status Commit();
  /// Removes the part and what is known of it. The last call.
  void Discard();

 private:
  PartFile(std::string path, int file) : path_(std::move(path)), file_(file) {}
  Status Resume(const std::string& url);
  Status Empty();

  std::string path_;  // of the complete file
  int file_;          // -1: moved from, committed or discarded
  uint64_t n_bytes_ = 0;
  PartOrigin origin_;
  Sha256 hash_;
};

}  // namespace facet
