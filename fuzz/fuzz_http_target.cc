// SPDX-License-Identifier: Apache-2.0
// HTTP requests from hostile clients. The input is what a connection sends; its first byte says
// where it is split. The split must make no difference, and what is accepted must be clear: one
// host, one body length, a path without control characters.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/ascii.h"
#include "base/check.h"
#include "base/utf8.h"
#include "server/http_parser.h"
#include "server/http_wire.h"

namespace {

using facet::HttpParser;
using facet::HttpRequest;

constexpr facet::HttpLimits kLimits = {.max_header_bytes = 2048, .max_body_bytes = 512};

struct Outcome {
  std::string failure;
  std::vector<HttpRequest> requests;
};

/// Feeds pieces of `n_piece` bytes; requests follow each other.
Outcome Read(std::string_view bytes, size_t n_piece) {
  HttpParser parser(kLimits);
  Outcome outcome;
  while (!bytes.empty() && parser.state() != HttpParser::State::kFailed) {
    const size_t n = parser.Feed(bytes.substr(0, n_piece));
    FACET_CHECK(n <= std::min(n_piece, bytes.size()));
    bytes.remove_prefix(n);
    if (parser.state() == HttpParser::State::kDone) {
      outcome.requests.push_back(parser.Take());
    }
  }
  if (parser.state() == HttpParser::State::kFailed) {
    FACET_CHECK(parser.failure_status() >= 400 && parser.failure_status() < 600);
    outcome.failure = parser.failure();
    FACET_CHECK(!outcome.failure.empty());
  }
  return outcome;
}

size_t Count(const HttpRequest& request, std::string_view name) {
  return static_cast<size_t>(
      std::count_if(request.headers.begin(), request.headers.end(),
                    [&](const auto& header) { return header.first == name; }));
}

bool HasControl(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f;
  });
}

void CheckRequest(const HttpRequest& request) {
  FACET_CHECK(!request.method.empty());
  FACET_CHECK(request.path == "*" || request.path.starts_with("/"));
  FACET_CHECK(!HasControl(request.path) && facet::IsValidUtf8(request.path));
  FACET_CHECK(request.body.size() <= kLimits.max_body_bytes);
  FACET_CHECK(request.headers.size() <= facet::kMaxHttpHeaders);
  FACET_CHECK(Count(request, "host") <= 1);
  FACET_CHECK(Count(request, "content-length") + Count(request, "transfer-encoding") <= 1);
  for (const auto& [name, value] : request.headers) {
    FACET_CHECK(!name.empty() && facet::ToLowerAscii(name) == name && !HasControl(value));
  }
}

void CheckTarget(std::string_view text) {
  const auto target = facet::ParseTarget(text);
  FACET_CHECK(!target.ok() || !HasControl(target->path + target->query));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) {
    return 0;
  }
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const Outcome whole = Read(bytes, bytes.size());
  const Outcome split = Read(bytes, size_t{1} + data[0]);
  FACET_CHECK(whole.failure == split.failure);
  FACET_CHECK(whole.requests.size() == split.requests.size());
  for (size_t i = 0; i < whole.requests.size(); ++i) {
    const HttpRequest& request = whole.requests[i];
    const HttpRequest& other = split.requests[i];
    FACET_CHECK(request.method == other.method && request.path == other.path &&
                request.query == other.query && request.headers == other.headers &&
                request.body == other.body);
    CheckRequest(request);
  }
  CheckTarget(bytes);
  return 0;
}
