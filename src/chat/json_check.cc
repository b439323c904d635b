// SPDX-License-Identifier: Apache-2.0
#include "chat/json_check.h"

#include <fmt/format.h>

namespace facet {

std::string FoundValue(const Json* value) {
  constexpr size_t kShown = 40;
  if (value == nullptr) {
    return "nothing";
  }
  if (!value->is_string()) {
    return std::string(value->KindName());
  }
  const std::string& text = value->as_string();
  if (text.size() <= kShown) {
    return value->Dump();
  }
  size_t end = kShown;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) {
    --end;  // not inside a character
  }
  return Json(text.substr(0, end) + "...").Dump();
}

Status CheckMember(const std::string& where, const Json& object, std::string_view key,
                   std::string_view wanted, bool is_right) {
  if (is_right) {
    return {};
  }
  return Refuse(fmt::format("{}.{}", where, key), FoundValue(object.Find(key)),
                std::string(wanted));
}

}  // namespace facet
