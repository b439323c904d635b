// SPDX-License-Identifier: Apache-2.0
#include "net/part_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/file.h"
#include "base/json.h"

namespace facet {
namespace {

constexpr uint64_t kMaxOriginBytes = uint64_t{64} << 10;

std::string PartOf(const std::string& path) { return path + ".part"; }
std::string OriginOf(const std::string& path) { return path + ".part.json"; }

Error SystemError(const std::string& path, std::string_view action) {
  return Refuse(path, fmt::format("cannot {}: {}", action, std::strerror(errno)));
}

/// Empty when there is none that can be read.
PartOrigin ReadOrigin(const std::string& path) {
  const Result<std::string> text = ReadFile(OriginOf(path), kMaxOriginBytes);
  if (!text.ok()) {
    return {};
  }
  const Result<Json> json = ParseJson(*text, path);
  if (!json.ok()) {
    return {};
  }
  PartOrigin origin{.url = (*json)["url"].as_string(),
                    .validator = (*json)["validator"].as_string(),
                    .size = {},
                    .sha256 = (*json)["sha256"].as_string()};
  if (const Json& size = (*json)["size"]; size.is_integer() && size.as_int() >= 0) {
    origin.size = static_cast<uint64_t>(size.as_int());
  }
  return origin;
}

Status WriteOrigin(const std::string& path, const PartOrigin& origin) {
  const Json json = Json::MakeObject({{"url", origin.url},
                                      {"validator", origin.validator},
                                      {"size", origin.size ? Json(*origin.size) : Json()},
                                      {"sha256", origin.sha256}});
  return WriteFile(OriginOf(path), json.Dump() + "\n");
}

/// Whether `file` is what PATH.part names now, and not what another process has renamed meanwhile.
bool IsCurrent(int file, const std::string& path) {
  struct stat open {};
  struct stat named {};
  return ::fstat(file, &open) == 0 && ::stat(PartOf(path).c_str(), &named) == 0 &&
         open.st_dev == named.st_dev && open.st_ino == named.st_ino;
}

/// The rename itself must be on the disk too.
Status SyncFolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const int file = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) {
    return SystemError(folder, "open");
  }
  // Some file systems cannot do it and say so: then there is no more to be done.
  static_cast<void>(::fsync(file));
  ::close(file);
  return {};
}

}  // namespace

Result<PartFile> PartFile::Open(const std::string& path, const std::string& url) {
  const std::string name = PartOf(path);
  while (true) {
    const int file = ::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (file < 0) {
      return SystemError(name, "create");
    }
    if (::flock(file, LOCK_EX | LOCK_NB) != 0) {
      const Error error = errno == EWOULDBLOCK
                              ? Refuse(path, "another process is downloading it", "to be its only")
                              : SystemError(name, "lock");
      ::close(file);
      return error;
    }
    if (IsCurrent(file, path)) {
      PartFile part(path, file);
      FACET_RETURN_IF_ERROR(part.Resume(url));
      return part;
    }
    ::close(file);
  }
}

PartFile::PartFile(PartFile&& other) noexcept
    : path_(std::move(other.path_)),
      file_(std::exchange(other.file_, -1)),
      n_bytes_(other.n_bytes_),
      origin_(std::move(other.origin_)),
      hash_(std::move(other.hash_)) {}

PartFile::~PartFile() {
  if (file_ < 0) {
    return;
  }
  if (n_bytes_ == 0 || origin_.validator.empty()) {
    Discard();
  } else {
    ::close(file_);
  }
}

Status PartFile::Resume(const std::string& url) {
  origin_ = ReadOrigin(path_);
  if (origin_.url != url || origin_.validator.empty()) {
    origin_ = {};
    return Empty();
  }
  std::array<char, size_t{1} << 16> buffer{};
  while (true) {
    const ssize_t got = ::read(file_, buffer.data(), buffer.size());
    if (got < 0 && errno != EINTR) {
      return SystemError(PartOf(path_), "read");
    }
    if (got == 0) {
      return {};
    }
    if (got > 0) {
      hash_.Add(std::as_bytes(std::span(buffer.data(), static_cast<size_t>(got))));
      n_bytes_ += static_cast<uint64_t>(got);
    }
  }
}

Status PartFile::Empty() {
  if (::ftruncate(file_, 0) != 0 || ::lseek(file_, 0, SEEK_SET) != 0) {
    return SystemError(PartOf(path_), "empty");
  }
  n_bytes_ = 0;
  hash_ = Sha256();
  return {};
}

Result<uint64_t> PartFile::FreeBytes() const {
  struct statvfs disk {};
  if (::fstatvfs(file_, &disk) != 0) {
    return SystemError(PartOf(path_), "ask for free space");
  }
  return uint64_t{disk.f_bavail} * disk.f_frsize;
}

Status PartFile::Begin(PartOrigin origin, bool is_resumed) {
  if (!is_resumed) {
    FACET_RETURN_IF_ERROR(Empty());
  }
  if (origin != origin_) {
    FACET_RETURN_IF_ERROR(WriteOrigin(path_, origin));
    origin_ = std::move(origin);
  }
  return {};
}

Status PartFile::Add(std::span<const std::byte> bytes) {
  hash_.Add(bytes);
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_, bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) {
      return SystemError(PartOf(path_), "write");
    }
    const size_t n_written = written > 0 ? static_cast<size_t>(written) : 0;
    bytes = bytes.subspan(n_written);
    n_bytes_ += n_written;
  }
  return {};
}

Status PartFile::Commit() {
  if (::fsync(file_) != 0) {
    return SystemError(PartOf(path_), "write");
  }
  if (std::rename(PartOf(path_).c_str(), path_.c_str()) != 0) {
    return SystemError(path_, "rename");
  }
  static_cast<void>(::unlink(OriginOf(path_).c_str()));
  ::close(std::exchange(file_, -1));
  return SyncFolderOf(path_);
}

void PartFile::Discard() {
  // The lock goes last, so that nobody finds half of it.
  static_cast<void>(::unlink(OriginOf(path_).c_str()));
  static_cast<void>(::unlink(PartOf(path_).c_str()));
  ::close(std::exchange(file_, -1));
}

}  // namespace facet
