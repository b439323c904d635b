// SPDX-License-Identifier: Apache-2.0
#include "server/http_wire.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <optional>
#include <utility>

#include "base/ascii.h"
#include "base/utf8.h"

namespace facet {
namespace {

bool IsControl(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

bool EqualsLower(std::string_view text, std::string_view lower) {
  return text.size() == lower.size() &&
         std::equal(text.begin(), text.end(), lower.begin(),
                    [](char a, char b) { return ToLowerAscii(a) == ToLowerAscii(b); });
}

std::string_view Trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) {
    return {};
  }
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') {
    return c - '0';
  }
  const char lower = ToLowerAscii(c);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

Result<std::string> DecodePath(std::string_view path) {
  std::string decoded;
  decoded.reserve(path.size());
  for (size_t i = 0; i < path.size(); ++i) {
    if (path[i] != '%') {
      decoded.push_back(path[i]);
      continue;
    }
    const int high = i + 2 < path.size() ? HexDigit(path[i + 1]) : -1;
    const int low = high >= 0 ? HexDigit(path[i + 2]) : -1;
    if (low < 0) {
      return Refuse("path", "\"%\" without two hexadecimal digits", "\"%25\"");
    }
    decoded.push_back(static_cast<char>(high * 16 + low));
    i += 2;
  }
  if (std::any_of(decoded.begin(), decoded.end(), IsControl)) {
    return Refuse("path", "a control character");
  }
  if (!IsValidUtf8(decoded)) {
    return Refuse("path", "broken UTF-8");
  }
  return decoded;
}

std::string_view ReasonOf(int status) {
  constexpr std::pair<int, std::string_view> kReasons[] = {
      {200, "OK"},
      {201, "Created"},
      {202, "Accepted"},
      {204, "No Content"},
      {304, "Not Modified"},
      {400, "Bad Request"},
      {401, "Unauthorized"},
      {403, "Forbidden"},
      {404, "Not Found"},
      {405, "Method Not Allowed"},
      {408, "Request Timeout"},
      {409, "Conflict"},
      {413, "Content Too Large"},
      {415, "Unsupported Media Type"},
      {417, "Expectation Failed"},
      {422, "Unprocessable Content"},
      {429, "Too Many Requests"},
      {431, "Request Header Fields Too Large"},
      {499, "Client Closed Request"},
      {500, "Internal Server Error"},
      {501, "Not Implemented"},
      {503, "Service Unavailable"},
      {504, "Gateway Timeout"},
      {505, "HTTP Version Not Supported"},
  };
  for (const auto& [number, reason] : kReasons) {
    if (number == status) {
      return reason;
    }
  }
  return "Other";
}

/// "Sun, 06 Nov 1994 08:49:37 GMT", of now. Names are spelt out here: strftime's depend on the
/// locale.
std::string HttpDate() {
  constexpr std::string_view kDays = "SunMonTueWedThuFriSat";
  constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  const auto name = [](std::string_view names, int i) {
    return names.substr(static_cast<size_t>(i) * 3, 3);
  };
  return fmt::format("{}, {:02} {} {} {:02}:{:02}:{:02} GMT", name(kDays, utc.tm_wday), utc.tm_mday,
                     name(kMonths, utc.tm_mon), utc.tm_year + 1900, utc.tm_hour, utc.tm_min,
                     utc.tm_sec);
}

void AppendSafe(std::string& out, std::string_view text) {
  for (const char c : text) {
    out.push_back(IsControl(c) ? ' ' : c);
  }
}

void AppendHeader(std::string& out, std::string_view name, std::string_view value) {
  AppendSafe(out, name);
  out += ": ";
  AppendSafe(out, value);
  out += "\r\n";
}

}  // namespace

Result<HttpTarget> ParseTarget(std::string_view target) {
  for (const char c : target) {
    if (IsControl(c) || c == ' ' || c == '#' || static_cast<unsigned char>(c) >= 0x80) {
      return Refuse("target", "a character that a URL cannot hold", "percent-encoding");
    }
  }
  if (target == "*") {
    return HttpTarget{"*", {}};
  }
  const size_t scheme_end = target.find("://");
  const std::string_view scheme = target.substr(0, scheme_end);
  if (scheme_end != std::string_view::npos &&
      (EqualsLower(scheme, "http") || EqualsLower(scheme, "https"))) {
    target.remove_prefix(scheme_end + 3);
    const size_t host_end = std::min(target.find_first_of("/?"), target.size());
    if (host_end == 0 || !IsHost(target.substr(0, host_end))) {
      return Refuse("target", "a URL without a host");
    }
    target.remove_prefix(host_end);
    if (target.empty() || target[0] == '?') {
      return HttpTarget{"/", std::string(target.substr(std::min<size_t>(1, target.size())))};
    }
  }
  if (target.empty() || target[0] != '/') {
    return Refuse("target", "no path", "\"/...\"");
  }
  const size_t path_end = std::min(target.find('?'), target.size());
  FACET_ASSIGN(std::string path, DecodePath(target.substr(0, path_end)));
  return HttpTarget{std::move(path),
                    std::string(target.substr(std::min(path_end + 1, target.size())))};
}

bool IsHost(std::string_view value) {
  constexpr std::string_view kOthers = "-._~!$&'()*+;=:[]%";
  return value.size() <= 512 && std::all_of(value.begin(), value.end(), [&](char c) {
           const char lower = ToLowerAscii(c);
           return (lower >= 'a' && lower <= 'z') || (c >= '0' && c <= '9') ||
                  kOthers.find(c) != std::string_view::npos;
         });
}

bool HasToken(std::string_view list, std::string_view token) {
  while (!list.empty()) {
    const size_t end = std::min(list.find(','), list.size());
    if (EqualsLower(Trim(list.substr(0, end)), token)) {
      return true;
    }
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

bool HasBody(int status) { return status >= 200 && status != 204 && status != 304; }

std::string FormatHead(const HttpHead& head) {
  std::string out = fmt::format("HTTP/1.1 {} {}\r\n", head.status, ReasonOf(head.status));
  AppendHeader(out, "date", HttpDate());
  if (head.framing != HttpFraming::kNone) {
    AppendHeader(out, "content-type", head.content_type);
  }
  if (head.framing == HttpFraming::kLength) {
    AppendHeader(out, "content-length", std::to_string(head.length));
  } else if (head.framing == HttpFraming::kChunked) {
    AppendHeader(out, "transfer-encoding", "chunked");
  }
  AppendHeader(out, "connection", head.keeps_alive ? "keep-alive" : "close");
  if (head.headers != nullptr) {
    for (const auto& [name, value] : *head.headers) {
      AppendHeader(out, name, value);
    }
  }
  out += "\r\n";
  return out;
}

void AppendChunk(std::string& out, std::string_view bytes) {
  fmt::format_to(std::back_inserter(out), "{:x}\r\n", bytes.size());
  out += bytes;
  out += "\r\n";
}

}  // namespace facet
