// SPDX-License-Identifier: Apache-2.0
#include "net/retry.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace facet {
namespace {

constexpr int kMaxFailures = 6;
constexpr uint64_t kProgressBytes = uint64_t{1} << 20;
constexpr int kMaxServerWaitSeconds = 120;
constexpr std::chrono::milliseconds kFirstWait(500);

bool IsPassing(int status) {
  return status == 408 || status == 429 || status == 500 || (status >= 502 && status <= 504);
}

/// What went wrong, without the URL.
std::string Reason(const FetchResult& result) {
  return result.kind == FetchResult::Kind::kDone
             ? fmt::format("the server answered {}", result.head.status)
             : result.error.found;
}

}  // namespace

Error StatusError(const std::string& url, int status, bool has_token) {
  switch (status) {
    case 401:
      return has_token ? Refuse(url, "401: the access token is not accepted", "a valid one")
                       : Refuse(url, "401: private, gated or not there",
                                "an access token, or another name");
    case 403:
      return Refuse(url, "403: gated or private",
                    "its terms accepted on its page, and the access token of who accepted them");
    case 404:
      return Refuse(url, "404: not there");
    default:
      return Refuse(url, fmt::format("the server answered {}", status), "200");
  }
}

bool Retry::IsWorthIt(const FetchResult& result) {
  switch (result.kind) {
    case FetchResult::Kind::kDone:
      return IsPassing(result.head.status);
    case FetchResult::Kind::kLost:
      return true;
    case FetchResult::Kind::kUnreachable:
      // A wrong name or no network shows at once; a server that has answered comes back.
      return has_answered_;
    case FetchResult::Kind::kRefused:
      break;
  }
  return false;
}

Status Retry::Next(const FetchResult& result, uint64_t n_bytes) {
  using Kind = FetchResult::Kind;
  has_answered_ = has_answered_ || result.head.status != 0;
  if (!IsWorthIt(result)) {
    return result.kind == Kind::kDone ? StatusError(url_, result.head.status, has_token_)
                                      : result.error;
  }
  if (n_bytes >= n_bytes_ + kProgressBytes) {
    n_bytes_ = n_bytes;
    n_failures_ = 0;
  }
  ++n_failures_;
  const std::string reason = Reason(result);
  const int asked_s = result.retry_after_s.value_or(0);
  if (n_failures_ >= kMaxFailures) {
    return Refuse(url_,
                  fmt::format("given up after {} tries ({}), {} bytes are there", n_failures_,
                              reason, n_bytes),
                  "the same command again, which goes on from there");
  }
  if (asked_s > kMaxServerWaitSeconds) {
    return Refuse(url_, fmt::format("{}, and wants to be left alone for {} s", reason, asked_s),
                  "the same command again by then");
  }
  const std::chrono::milliseconds wait = std::max<std::chrono::milliseconds>(
      kFirstWait * (1 << (n_failures_ - 1)), std::chrono::seconds(asked_s));
  hooks_.on_note(
      fmt::format("{}; again in {:g} s", reason, static_cast<double>(wait.count()) / 1000.0));
  hooks_.wait(wait);
  return {};
}

}  // namespace facet
