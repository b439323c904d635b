// SPDX-License-Identifier: Apache-2.0
#include "server/access.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/ascii.h"
#include "server/http_wire.h"

namespace facet {
namespace {

constexpr size_t kMaxKeyBytes = 512;
constexpr size_t kMaxAskedHeaders = 2048;

bool IsPrintable(char c) { return c > ' ' && c < '\x7f'; }

/// The time depends on the length of `given` alone.
bool IsSame(std::string_view given, std::string_view key) {
  unsigned difference = given.size() == key.size() ? 0 : 1;
  for (size_t n = 0; n < given.size(); ++n) {
    difference |= static_cast<unsigned char>(given[n] ^ key[n % key.size()]);
  }
  return difference == 0;
}

std::string_view GivenKey(const HttpRequest& request) {
  constexpr std::string_view kBearer = "bearer ";
  if (const std::string* header = request.Header("authorization")) {
    const std::string_view value = *header;
    const auto is_same_letter = [](char a, char b) { return (a | 0x20) == b || a == b; };
    if (value.size() > kBearer.size() &&
        std::equal(kBearer.begin(), kBearer.end(), value.begin(),
                   [&](char wanted, char found) { return is_same_letter(found, wanted); })) {
      const size_t begin = value.find_first_not_of(' ', kBearer.size());
      return begin == std::string_view::npos ? std::string_view() : value.substr(begin);
    }
  }
  const std::string* header = request.Header("x-api-key");
  return header == nullptr ? std::string_view() : std::string_view(*header);
}

std::string_view WithoutPort(std::string_view host) {
  if (host.starts_with('[')) {
    return host.substr(0, host.find(']') + 1);
  }
  return host.substr(0, host.find(':'));
}

/// The headers a page asks to send, if they are nothing but names.
std::string AskedHeaders(const HttpRequest& request) {
  const std::string* asked = request.Header("access-control-request-headers");
  constexpr std::string_view kOthers = "-_, ";
  const auto is_safe = [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           kOthers.find(c) != std::string_view::npos;
  };
  if (asked == nullptr || asked->size() > kMaxAskedHeaders ||
      !std::all_of(asked->begin(), asked->end(), is_safe)) {
    return "authorization, content-type, x-api-key, x-request-id";
  }
  return *asked;
}

}  // namespace

Access::Access(std::vector<std::string> keys, std::vector<std::string> origins,
               std::string_view host)
    : keys_(std::move(keys)),
      origins_(std::move(origins)),
      host_(ToLowerAscii(host)),
      allows_all_(std::find(origins_.begin(), origins_.end(), "*") != origins_.end()) {}

bool Access::HasKey(const HttpRequest& request) const {
  const std::string_view given = GivenKey(request);
  bool is_found = keys_.empty();
  for (const std::string& key : keys_) {
    is_found = IsSame(given, key) || is_found;  // All are compared, whichever it is.
  }
  return is_found;
}

bool Access::IsListed(std::string_view origin) const {
  return allows_all_ || std::find(origins_.begin(), origins_.end(), origin) != origins_.end();
}

bool Access::AllowsOrigin(const HttpRequest& request) const {
  const std::string* origin = request.Header("origin");
  if (origin == nullptr || IsListed(*origin)) {
    return true;
  }
  // A host of one's own name is trusted only where no name server was asked for it.
  const std::string* host = request.Header("host");
  return host != nullptr && *origin == "http://" + *host && IsLoopback(WithoutPort(*host));
}

bool Access::AllowsHost(const HttpRequest& request) const {
  const std::string* header = request.Header("host");
  if (header == nullptr || allows_all_ || !keys_.empty() || !IsLoopback(host_)) {
    return true;
  }
  const std::string name = ToLowerAscii(WithoutPort(*header));
  return name == host_ || IsLoopback(name);
}

HttpHeaders Access::HeadersFor(const HttpRequest& request) const {
  if (origins_.empty()) {
    return {};
  }
  HttpHeaders headers;
  const std::string* origin = request.Header("origin");
  if (origin != nullptr && IsListed(*origin)) {
    headers.emplace_back("access-control-allow-origin", allows_all_ ? "*" : *origin);
    headers.emplace_back("access-control-expose-headers", "x-request-id, retry-after");
  }
  if (!allows_all_) {
    headers.emplace_back("vary", "origin");
  }
  return headers;
}

HttpResponse Access::AnswerOptions(const HttpRequest& request, const std::string& methods) const {
  HttpResponse response{.status = 204, .content_type = {}, .body = {}};
  response.headers.emplace_back("allow", methods + ", OPTIONS");
  const std::string* origin = request.Header("origin");
  if (origin != nullptr && IsListed(*origin) &&
      request.Header("access-control-request-method") != nullptr) {
    response.headers.emplace_back("access-control-allow-methods", methods + ", OPTIONS");
    response.headers.emplace_back("access-control-allow-headers", AskedHeaders(request));
    response.headers.emplace_back("access-control-max-age", "600");
  }
  return response;
}

bool IsLoopback(std::string_view host) {
  if (host == "localhost" || host.ends_with(".localhost") || host == "::1" || host == "[::1]") {
    return true;
  }
  const bool is_address = host.find_first_not_of("0123456789.") == std::string_view::npos;
  return is_address && host.starts_with("127.") && std::count(host.begin(), host.end(), '.') == 3;
}

Status CheckKey(std::string_view key, const std::string& where) {
  if (key.empty() || key.size() > kMaxKeyBytes) {
    return Refuse(where, fmt::format("a key of {} bytes", key.size()),
                  fmt::format("1 to {}", kMaxKeyBytes));
  }
  if (!std::all_of(key.begin(), key.end(), IsPrintable)) {
    return Refuse(where, "a key with blanks or characters that are not ASCII",
                  "letters, digits and signs");
  }
  return {};
}

Result<std::vector<std::string>> ParseKeys(std::string_view text, const std::string& name) {
  constexpr std::string_view kBlank = " \t\r";
  std::vector<std::string> keys;
  for (int number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    line.remove_prefix(std::min(line.find_first_not_of(kBlank), line.size()));
    line = line.substr(0, line.find_last_not_of(kBlank) + 1);
    if (line.empty() || line.front() == '#') {
      continue;
    }
    FACET_RETURN_IF_ERROR(CheckKey(line, fmt::format("{}:{}", name, number)));
    keys.emplace_back(line);
  }
  if (keys.empty()) {
    return Refuse(name, "no keys", "one a line");
  }
  return keys;
}

Status CheckOrigin(std::string_view origin, const std::string& where) {
  const size_t scheme = origin.find("://");
  const bool is_origin = scheme != std::string_view::npos && scheme > 0 &&
                         origin.size() > scheme + 3 &&
                         origin.find('/', scheme + 3) == std::string_view::npos &&
                         std::all_of(origin.begin(), origin.end(), IsPrintable);
  if (origin != "*" && !is_origin) {
    return Refuse(where, fmt::format("\"{}\"", origin), "* or an origin such as https://host:port");
  }
  return {};
}

}  // namespace facet
