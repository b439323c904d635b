// SPDX-License-Identifier: Apache-2.0
// SHA-256 of bytes that come in pieces. The digest is OpenSSL's, wrapped in sha256.cc, so that no
// other file sees its headers.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace facet {

/// Not for several threads.
class Sha256 {
 public:
  Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;
  ~Sha256();

  void Add(std::span<const std::byte> bytes);
  /// 64 lower-case hexadecimal digits of what was added so far; more may be added afterwards.
  [[nodiscard]] std::string Hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string Sha256Hex(std::string_view text);

/// Whether `text` is 64 hexadecimal digits, lower-case.
bool IsSha256Hex(std::string_view text);

}  // namespace facet
