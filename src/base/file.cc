// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace facet {
namespace {

Error SystemError(const std::string& path, std::string_view action) {
  return Refuse(path, fmt::format("cannot {}: {}", action, std::strerror(errno)));
}

std::string PartOf(const std::string& path) { return path + ".part"; }

}  // namespace

bool FileExists(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0;
}

bool IsDirectory(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

Result<std::string> ReadFile(const std::string& path, uint64_t limit_bytes) {
  if (IsDirectory(path)) {
    return Refuse(path, "a directory", "a file");
  }
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                             std::fclose);
  if (!file) {
    return SystemError(path, "open");
  }
  std::string bytes;
  char buffer[65536];
  size_t got = 0;
  while ((got = std::fread(buffer, 1, sizeof buffer, file.get())) > 0) {
    if (bytes.size() + got > limit_bytes) {
      return Refuse(path, "more bytes than the limit", fmt::format("at most {}", limit_bytes));
    }
    bytes.append(buffer, got);
  }
  if (std::ferror(file.get()) != 0) {
    return SystemError(path, "read");
  }
  return bytes;
}

Result<AtomicFile> AtomicFile::Create(const std::string& path) { return Open(path, O_TRUNC, 0666); }

Result<AtomicFile> AtomicFile::CreatePrivate(const std::string& path) {
  // What an earlier process left may be readable by others.
  (void)::unlink(PartOf(path).c_str());
  return Open(path, O_EXCL | O_NOFOLLOW, 0600);
}

Result<AtomicFile> AtomicFile::Open(const std::string& path, int flags, unsigned permissions) {
  const int fd = ::open(PartOf(path).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | flags, permissions);
  std::FILE* file = fd < 0 ? nullptr : ::fdopen(fd, "wb");
  if (file == nullptr) {
    return SystemError(path, "create");
  }
  return AtomicFile(path, file);
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::exchange(other.path_, {})), file_(std::exchange(other.file_, nullptr)) {}

AtomicFile::~AtomicFile() {
  if (file_ != nullptr) {
    (void)std::fclose(file_);
  }
  if (!path_.empty()) {
    (void)::unlink(PartOf(path_).c_str());
  }
}

Status AtomicFile::Write(std::string_view bytes) {
  FACET_CHECK(file_ != nullptr);
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) {
    return SystemError(path_, "write");
  }
  return {};
}

Status AtomicFile::Finish() {
  FACET_CHECK(file_ != nullptr);
  if (std::fflush(file_) != 0 || ::fsync(::fileno(file_)) != 0) {
    return SystemError(path_, "write");
  }
  if (std::fclose(std::exchange(file_, nullptr)) != 0) {
    return SystemError(path_, "write");
  }
  return {};
}

Status AtomicFile::Commit() {
  FACET_CHECK(!path_.empty());
  if (file_ != nullptr) {
    FACET_RETURN_IF_ERROR(Finish());
  }
  if (std::rename(PartOf(path_).c_str(), path_.c_str()) != 0) {
    return SystemError(path_, "rename");
  }
  path_.clear();
  return {};
}

Status WriteFile(const std::string& path, std::string_view bytes) {
  FACET_ASSIGN(AtomicFile file, AtomicFile::Create(path));
  FACET_RETURN_IF_ERROR(file.Write(bytes));
  return file.Commit();
}

}  // namespace facet
