// SPDX-License-Identifier: Apache-2.0
// HTTP/1.1 as text: the request target, and the heads and chunks of answers. Pure functions; what
// arrives is hostile, what leaves is ours.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "server/http.h"

namespace facet {

struct HttpTarget {
  std::string path;   ///< percent-decoded UTF-8 without control characters; "*" for OPTIONS *
  std::string query;  ///< as it came, without '?'
};

/// Reads "/path?query", "http://host/path?query" and "*". "." and ".." stay as they are: paths are
/// compared, never opened.
Result<HttpTarget> ParseTarget(std::string_view target);

/// Whether `value` can be the Host of a request: a name or address with or without a port.
bool IsHost(std::string_view value);

/// Whether a comma-separated list of tokens ("keep-alive, Upgrade") has `token`, in any case.
bool HasToken(std::string_view list, std::string_view token);

/// How an answer's body is delimited.
enum class HttpFraming {
  kNone,     ///< by its status there is none
  kLength,   ///< content-length
  kChunked,  ///< chunks
  kToClose,  ///< by the connection's end
};

struct HttpHead {
  int status = 200;
  std::string_view content_type = {};
  HttpFraming framing = HttpFraming::kLength;
  size_t length = 0;  ///< kLength
  bool keeps_alive = true;
  const HttpHeaders* headers = nullptr;
};

/// Status line, headers (with the date) and the empty line. Control characters in names and values
/// become spaces.
std::string FormatHead(const HttpHead& head);

/// Adds one chunk; `bytes` is not empty.
void AppendChunk(std::string& out, std::string_view bytes);
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

/// Whether an answer with this status has a body at all.
bool HasBody(int status);

}  // namespace facet
