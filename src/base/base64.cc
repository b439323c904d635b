// SPDX-License-Identifier: Apache-2.0
#include "base/base64.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>

namespace facet {
namespace {

constexpr int8_t kNoDigit = -1;

constexpr std::array<int8_t, 256> MakeDigits() {
  constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::array<int8_t, 256> digits = {};
  for (int8_t& digit : digits) {
    digit = kNoDigit;
  }
  for (size_t i = 0; i < kAlphabet.size(); ++i) {
    digits[static_cast<unsigned char>(kAlphabet[i])] = static_cast<int8_t>(i);
  }
  return digits;
}

constexpr std::array<int8_t, 256> kDigits = MakeDigits();

size_t CountPadding(std::string_view text) {
  return text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
}

}  // namespace

Result<std::string> DecodeBase64(std::string_view text, size_t max_bytes,
                                 const std::string& where) {
  if (text.size() % 4 != 0) {
    return Refuse(where, fmt::format("base64 of {} characters", text.size()),
                  "a multiple of 4, with = at the end where it takes them");
  }
  const size_t n_padding = CountPadding(text);
  const size_t n_bytes = text.size() / 4 * 3 - n_padding;
  if (n_bytes > max_bytes) {
    return Refuse(where, fmt::format("{} bytes", n_bytes), fmt::format("at most {}", max_bytes));
  }
  std::string bytes;
  bytes.reserve(n_bytes);
  uint32_t bits = 0;
  int n_bits = 0;
  const size_t n_digits = text.size() - n_padding;
  for (size_t i = 0; i < n_digits; ++i) {
    const int8_t digit = kDigits[static_cast<unsigned char>(text[i])];
    if (digit == kNoDigit) {
      return Refuse(where, fmt::format("a character that is no base64 at {}", i),
                    "A-Z, a-z, 0-9, + and /");
    }
    bits = (bits << 6 | static_cast<uint32_t>(digit)) & 0xFFFF;
    n_bits += 6;
    if (n_bits >= 8) {
      n_bits -= 8;
      bytes.push_back(static_cast<char>(bits >> n_bits));
    }
  }
  if ((bits & ((1U << n_bits) - 1)) != 0) {
    return Refuse(where, "base64 with bits behind its last byte", "none");
  }
  return bytes;
}

}  // namespace facet
