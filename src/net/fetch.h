// SPDX-License-Identifier: Apache-2.0
// One GET over HTTP: redirects followed within limits, the answer handed on piece by piece. Knows
// nothing of files, retries or models (download.h does). The transport is libcurl, wrapped in
// fetch.cc, so that no other file sees its header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "base/status.h"
#include "net/public_address.h"

namespace facet {

struct FetchRequest {
  std::string url;
  /// Access token; sent to the origin (scheme, host, port) of `url` only, never to where it
  /// redirects. Empty: none.
  std::string token = {};
  uint64_t offset = 0;  ///< above 0: only the bytes from here on are asked for
  std::string if_range =
      {};  ///< with an offset: the validator (ETag or date) of what is there already
  int max_redirects = 10;
  int timeout_s = 0;  ///< of each request, to its end; 0: none
  /// For URLs of strangers: only addresses that this takes are connected to (IsPublicAddress), and
  /// no proxy of the environment is used, which could go anywhere. None: all are.
  AddressFilter allows = nullptr;
};

/// What an answer says before its body. Texts are as they came, empty when absent, at most 4096
/// bytes: they are the server's and not to be trusted.
struct FetchHead {
  int status = 0;
  std::string etag = {};
  std::string last_modified = {};
  std::string content_type = {};
  std::string content_encoding = {};
  std::string content_range = {};
  /// X-Linked-Etag, also of the redirects: digest of the file that is meant.
  std::string linked_etag = {};
  std::string linked_size = {};  ///< X-Linked-Size, likewise
  std::optional<uint64_t> content_length = {};
};

/// Who takes the answer. A refusal ends the fetch.
struct FetchSink {
  /// Once, of the last answer (never of a redirect), before any of the body.
  std::function<Status(const FetchHead&)> on_head;
  /// Only when the status is 2xx; the bodies of other answers are dropped.
  std::function<Status(std::span<const std::byte>)> on_body;
};

struct FetchResult {
  enum class Kind {
    kDone,         ///< an answer came and was handed on in full; its status may be any
    kUnreachable,  ///< no connection: unknown host, refused, no network
    kLost,         ///< the connection broke, stalled, or ended before the body did
    kRefused,      ///< by the sink, or for a reason that asking again does not change
  };
  Kind kind = Kind::kRefused;
  FetchHead head = {};                    ///< as far as it came
  Error error = {};                       ///< unless done
  std::optional<int> retry_after_s = {};  ///< what the server asked for
};

/// Blocks until the answer has ended. Redirects go to http and https only and never from https to
/// http. A connection that moves less than 1 kB per second for a minute counts as lost.
/// Safe from any thread.
FetchResult Fetch(const FetchRequest& request, const FetchSink& sink);

}  // namespace facet
