// SPDX-License-Identifier: Apache-2.0
// Much memory at once, straight from the system. In pages of 2 MB where the system gives them:
// what is read from end to end again and again, such as weights, then costs few look-ups of
// addresses.
#pragma once

#include <cstddef>
#include <string>

#include "base/status.h"

namespace facet {

/// Owns zeroed memory that stays at its address until destruction, also through moves. A page takes
/// memory when it is first written; the thread that writes it decides on which node it lies.
class PageMemory {
 public:
  static constexpr size_t kAlignment = size_t{2} << 20;

  PageMemory() = default;
  /// `what` names the memory in the error.
  static Result<PageMemory> Allocate(size_t n_bytes, const std::string& what);
  PageMemory(PageMemory&& other) noexcept;
  PageMemory& operator=(PageMemory&& other) noexcept;
  ~PageMemory();

  [[nodiscard]] std::byte* data() const { return data_; }  ///< aligned to kAlignment
  [[nodiscard]] size_t size() const { return size_; }

 private:
  PageMemory(std::byte* data, size_t size) : data_(data), size_(size) {}

  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace facet
