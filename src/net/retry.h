// SPDX-License-Identifier: Apache-2.0
// When a fetch that failed is tried again, and what is said when it is not.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "net/download.h"
#include "net/fetch.h"

namespace facet {

class Retry {
 public:
  /// `hooks` must outlive it.
  Retry(std::string url, bool has_token, const DownloadHooks& hooks)
      : url_(std::move(url)), has_token_(has_token), hooks_(hooks) {}

  /// After a fetch that did not end with what was asked for: waits and succeeds when it is worth
  /// another try, else says why not. `n_bytes` is all that is there by now.
  Status Next(const FetchResult& result, uint64_t n_bytes);

 private:
  [[nodiscard]] bool IsWorthIt(const FetchResult& result);

  std::string url_;
  bool has_token_;
  const DownloadHooks& hooks_;
  bool has_answered_ = false;  // the server, to any try
  int n_failures_ = 0;         // without progress
  uint64_t n_bytes_ = 0;       // at the last failure that made progress
};

/// Why an answer that is neither 200 nor 206 is no file.
Error StatusError(const std::string& url, int status, bool has_token);

}  // namespace facet
