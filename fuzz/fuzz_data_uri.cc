// SPDX-License-Identifier: Apache-2.0
// Reads any bytes as a data URI. What is accepted is within the limit, and is base64 that says
// nothing else: written again it is the same text.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "chat/data_uri.h"

namespace {

std::string Encode(std::string_view bytes) {
  constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t bits = 0;
    for (size_t n = 0; n < 3; ++n) {
      bits = bits << 8 | (i + n < bytes.size() ? static_cast<unsigned char>(bytes[i + n]) : 0U);
    }
    for (size_t n = 0; n < 4; ++n) {
      text += i + n > bytes.size() ? '=' : kAlphabet[bits >> (18 - 6 * n) & 63];
    }
  }
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kMaxBytes = 1000;
  const std::string_view uri(reinterpret_cast<const char*>(data), size);
  if (!facet::IsDataUri(uri)) {
    return 0;
  }
  const auto bytes = facet::DecodeDataUri(uri, kMaxBytes, "uri");
  if (bytes.ok()) {
    FACET_CHECK(bytes->size() <= kMaxBytes);
    FACET_CHECK(Encode(*bytes) == uri.substr(uri.find(',') + 1));
  } else {
    FACET_CHECK(bytes.error().where == "uri");
  }
  return 0;
}
