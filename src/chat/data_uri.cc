// SPDX-License-Identifier: Apache-2.0
#include "chat/data_uri.h"

#include "base/ascii.h"
#include "base/base64.h"

namespace facet {
namespace {

constexpr std::string_view kScheme = "data:";
constexpr std::string_view kEncoding = ";base64";
constexpr size_t kMaxTypeBytes = 256;

}  // namespace

bool IsDataUri(std::string_view url) {
  return ToLowerAscii(url.substr(0, kScheme.size())) == kScheme;
}

Result<std::string> DecodeDataUri(std::string_view uri, size_t max_bytes,
                                  const std::string& where) {
  const size_t comma = uri.substr(0, kMaxTypeBytes).find(',');
  const std::string type =
      comma == std::string_view::npos ? "" : ToLowerAscii(uri.substr(0, comma));
  if (!type.ends_with(kEncoding)) {
    return Refuse(where, "a data URI without base64", "data:TYPE;base64,DATA");
  }
  return DecodeBase64(uri.substr(comma + 1), max_bytes, where);
}

}  // namespace facet
