// SPDX-License-Identifier: Apache-2.0
#include "net/fetch_media.h"

#include <fmt/format.h>

#include <span>
#include <utility>

#include "base/bytes.h"
#include "net/fetch.h"

namespace facet {

Result<std::string> FetchMedia(const std::string& url, const std::string& where,
                               const MediaFetchLimits& limits, AddressFilter allows) {
  const auto too_large = [&](uint64_t n_bytes) {
    return Refuse(where, fmt::format("{} bytes or more", n_bytes),
                  fmt::format("at most {}", limits.max_bytes));
  };
  std::string bytes;
  const FetchSink sink = {
      .on_head = [&](const FetchHead& head) -> Status {
        if (head.status != 200) {
          return Refuse(where, fmt::format("the URL's server answered {}", head.status), "200");
        }
        return head.content_length.value_or(0) > limits.max_bytes
                   ? Status(too_large(*head.content_length))
                   : Status();
      },
      .on_body = [&](std::span<const std::byte> piece) -> Status {
        if (piece.size() > limits.max_bytes - bytes.size()) {
          return too_large(limits.max_bytes + 1);
        }
        bytes += AsText(piece);
        return {};
      }};
  const FetchResult result = Fetch({.url = url.substr(0, url.find('#')),
                                    .max_redirects = limits.max_redirects,
                                    .timeout_s = limits.timeout_s,
                                    .allows = allows},
                                   sink);
  if (result.kind != FetchResult::Kind::kDone) {
    return Refuse(where, result.error.found, result.error.wanted);
  }
  return bytes;
}

}  // namespace facet
