// SPDX-License-Identifier: Apache-2.0
// Reading and writing little-endian binary data. The cursor never reads past its end; every failed
// read is an Error that says at which byte.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace facet {

static_assert(std::endian::native == std::endian::little,
              "files are read in place: little-endian only");

template <typename T>
concept Scalar = std::integral<T> || std::floating_point<T>;

/// Bounds-checked reader over bytes that it does not own. `name` is what errors call the data.
class ByteCursor {
 public:
  ByteCursor(std::span<const std::byte> bytes, std::string name)
      : bytes_(bytes), name_(std::move(name)) {}

  [[nodiscard]] size_t position() const { return position_; }
  [[nodiscard]] size_t remaining() const { return bytes_.size() - position_; }
  [[nodiscard]] const std::string& name() const { return name_; }

  /// Reads one value; `what` names it in the error ("tensor count").
  template <Scalar T>
  Result<T> Read(std::string_view what) {
    if (remaining() < sizeof(T)) {
      return Truncated(what, sizeof(T));
    }
    T value;
    std::memcpy(&value, bytes_.data() + position_, sizeof(T));
    position_ += sizeof(T);
    return value;
  }

  /// The next `size` bytes, in place.
  Result<std::span<const std::byte>> Take(uint64_t size, std::string_view what) {
    if (remaining() < size) {
      return Truncated(what, size);
    }
    const auto part = bytes_.subspan(position_, static_cast<size_t>(size));
    position_ += static_cast<size_t>(size);
    return part;
  }

 private:
  [[nodiscard]] Error Truncated(std::string_view what, uint64_t size) const;

  std::span<const std::byte> bytes_;
  std::string name_;
  size_t position_ = 0;
};

inline std::string_view AsText(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

inline std::span<const std::byte> AsBytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

/// Appends the little-endian bytes of a value.
template <Scalar T>
void Append(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

}  // namespace facet
