// SPDX-License-Identifier: Apache-2.0
// Compiles any text as a template and renders it with a small conversation, within small limits.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/json.h"
#include "jinja/template.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using facet::Json;
  facet::jinja::Limits limits;
  limits.max_steps = 20'000;
  limits.max_depth = 50;
  limits.max_output_bytes = size_t{1} << 16;
  limits.max_template_bytes = size_t{1} << 14;
  limits.max_value_bytes = size_t{1} << 20;
  const auto compiled =
      facet::jinja::Template::Compile({reinterpret_cast<const char*>(data), size}, "fuzz", limits);
  if (!compiled.ok()) {
    return 0;
  }
  const Json message =
      Json::MakeObject({{"role", "user"}, {"content", " H\u00e9llo <b>'World'</b>\n"}});
  const Json context =
      Json::MakeObject({{"messages", Json::MakeArray({message, message})},
                        {"l", Json::MakeArray({3, 1, 2})},
                        {"d", Json::MakeObject({{"b", 2}, {"A", nullptr}, {"c", 1.5}})},
                        {"s", "Hello World"},
                        {"n", 7},
                        {"bos_token", "<bos>"}});
  static_cast<void>(compiled->Render(context, {"bos_token"}, 1'700'000'000));
  return 0;
}
