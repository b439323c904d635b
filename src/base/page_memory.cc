// SPDX-License-Identifier: Apache-2.0
#include "base/page_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

namespace facet {
namespace {

void Unmap(std::byte* data, size_t size) {
  if (size != 0) {
    (void)::munmap(data, size);
  }
}

}  // namespace

Result<PageMemory> PageMemory::Allocate(size_t n_bytes, const std::string& what) {
  if (n_bytes == 0) {
    return PageMemory();
  }
  if (n_bytes > SIZE_MAX / 2) {
    return Refuse(what, fmt::format("{} bytes", n_bytes), fmt::format("at most {}", SIZE_MAX / 2));
  }
  // A page more than is wanted, so that an aligned part can be cut out.
  constexpr size_t kSystemPage = 4096;
  const size_t size = (n_bytes + kSystemPage - 1) / kSystemPage * kSystemPage;
  const size_t mapped = size + kAlignment;
  void* address =
      ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) {
    return Refuse(what, fmt::format("no memory for {} bytes: {}", n_bytes, std::strerror(errno)));
  }
  auto* begin = static_cast<std::byte*>(address);
  const size_t before = (kAlignment - reinterpret_cast<uintptr_t>(begin) % kAlignment) % kAlignment;
  Unmap(begin, before);
  Unmap(begin + before + size, kAlignment - before);
  (void)::madvise(begin + before, size, MADV_HUGEPAGE);  // a wish: small pages do as well
  return PageMemory(begin + before, size);
}

PageMemory::PageMemory(PageMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

PageMemory& PageMemory::operator=(PageMemory&& other) noexcept {
  if (this != &other) {
    Unmap(data_, size_);
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
  }
  return *this;
}

PageMemory::~PageMemory() { Unmap(data_, size_); }

}  // namespace facet
