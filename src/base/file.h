// SPDX-License-Identifier: Apache-2.0
// Whole files: reading with a limit, and writing so that a file under its final name is always
// complete.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace facet {

/// The file's bytes. Refuses directories, missing files and files above `limit_bytes`.
Result<std::string> ReadFile(const std::string& path, uint64_t limit_bytes);

bool FileExists(const std::string& path);
bool IsDirectory(const std::string& path);

/// Writes to PATH.part and renames it to PATH in Commit(). Without Commit the part file is removed
/// on destruction, so a failure (a full disk, an interrupt) never leaves half a file under the
/// final name. Several files that belong together are finished one by one and committed when all
/// are. Not for several threads.
class AtomicFile {
 public:
  static Result<AtomicFile> Create(const std::string& path);
  /// That only its owner may read.
  static Result<AtomicFile> CreatePrivate(const std::string& path);
  AtomicFile(AtomicFile&&) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();

  Status Write(std::string_view bytes);
  /// Flushes to the disk and closes. Nothing may be written after it.
  Status Finish();
  /// Finishes, unless that has been done, and renames. The last call.
  Status Commit();

 private:
  static Result<AtomicFile> Open(const std::string& path, int flags, unsigned permissions);
  AtomicFile(std::string path, std::FILE* file) : path_(std::move(path)), file_(file) {}

  std::string path_;  // empty when there is no part file (any more)
  std::FILE* file_;   // null when it is finished
};

/// Writes a whole file through AtomicFile.
Status WriteFile(const std::string& path, std::string_view bytes);

}  // namespace facet
