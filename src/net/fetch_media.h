// SPDX-License-Identifier: Apache-2.0
// A file by a URL that a stranger gave: into memory, with limits, and only from the public network,
// so that a request to a server cannot make it look around at home.
#pragma once

#include <cstddef>
#include <string>

#include "base/status.h"
#include "net/public_address.h"

namespace facet {

struct MediaFetchLimits {
  size_t max_bytes = 0;
  int timeout_s = 20;  ///< of each request
  int max_redirects = 3;
};

/// http and https only; no credentials, cookies or proxies. `where` is what errors call the URL,
/// which may hold a secret and is not shown. `allows` is another than IsPublicAddress in tests
/// only. Blocks; safe from any thread.
Result<std::string> FetchMedia(const std::string& url, const std::string& where,
                               const MediaFetchLimits& limits,
                               AddressFilter allows = IsPublicAddress);

}  // namespace facet
