// SPDX-License-Identifier: Apache-2.0
#include "base/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace facet {
namespace {

void Unmap(std::span<const std::byte> bytes) {
  if (!bytes.empty()) {
    (void)::munmap(const_cast<std::byte*>(bytes.data()), bytes.size());
  }
}

}  // namespace

void MappedFile::Release(std::span<const std::byte> part) const {
  FACET_CHECK(part.empty() ||
              (part.data() >= bytes_.data() && part.size() <= bytes_.size() &&
               static_cast<size_t>(part.data() - bytes_.data()) <= bytes_.size() - part.size()));
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const size_t past = reinterpret_cast<uintptr_t>(part.data()) % page;
  const size_t before = (page - past) % page;
  if (part.size() < before + page) {
    return;
  }
  auto* begin = const_cast<std::byte*>(part.data()) + before;
  (void)::madvise(begin, (part.size() - before) / page * page, MADV_DONTNEED);
}

Result<MappedFile> MappedFile::Open(const std::string& path) {
  // Without O_NONBLOCK, opening a pipe would wait for a writer before it could be refused.
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) {
    return Refuse(path, fmt::format("cannot open: {}", std::strerror(errno)));
  }
  struct stat info {};
  if (::fstat(file, &info) != 0 || !S_ISREG(info.st_mode)) {
    (void)::close(file);
    return Refuse(path, "not a regular file", "a file");
  }
  const auto size = static_cast<size_t>(info.st_size);
  if (size == 0) {
    (void)::close(file);
    return MappedFile({});
  }
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
  const int map_error = errno;
  (void)::close(file);
  if (data == MAP_FAILED) {
    return Refuse(path, fmt::format("cannot map: {}", std::strerror(map_error)));
  }
  return MappedFile({static_cast<const std::byte*>(data), size});
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  if (this != &other) {
    Unmap(bytes_);
    bytes_ = std::exchange(other.bytes_, {});
  }
  return *this;
}

MappedFile::~MappedFile() { Unmap(bytes_); }

}  // namespace facet
