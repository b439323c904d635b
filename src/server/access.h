// SPDX-License-Identifier: Apache-2.0
// Who may ask: keys, the names of this machine, and the origins of web pages (CORS). A page that is
// not allowed is refused, not only left without the header that lets it read: a browser sends a
// POST across origins without asking first, and a local server must not work for any page that is
// open.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "server/http.h"

namespace facet {

/// Immutable, so any number of threads may ask.
class Access {
 public:
  /// No keys: anyone. `origins`: "https://host[:port]" each, or "*". `host`: what is listened on.
  Access(std::vector<std::string> keys, std::vector<std::string> origins, std::string_view host);

  /// Whether the request has a key (Authorization: Bearer, or x-api-key), or none is needed. Takes
  /// as long for a key that is nearly right as for any other of its length.
  [[nodiscard]] bool HasKey(const HttpRequest& request) const;
  /// Whether the request comes from no web page, from one of this machine's own server, or from one
  /// of the origins.
  [[nodiscard]] bool AllowsOrigin(const HttpRequest& request) const;
  /// Whether the request was sent to a name that is this machine's for certain. A page of another
  /// name that a name server leads here is of the same origin as the server, to a browser; so only
  /// where nothing else tells who asks: listening on loopback, without keys.
  [[nodiscard]] bool AllowsHost(const HttpRequest& request) const;
  /// Headers that every answer to the request carries; none where no origins are set.
  [[nodiscard]] HttpHeaders HeadersFor(const HttpRequest& request) const;
  /// The answer to OPTIONS. `methods`: those of the route, "GET, HEAD".
  [[nodiscard]] HttpResponse AnswerOptions(const HttpRequest& request,
                                           const std::string& methods) const;

 private:
  [[nodiscard]] bool IsListed(std::string_view origin) const;

  std::vector<std::string> keys_;
  std::vector<std::string> origins_;
  std::string host_;
  bool allows_all_ = false;
};

/// Whether only this machine reaches the address or name. Names other than localhost and those
/// below it count as reachable.
bool IsLoopback(std::string_view host);

/// Keys of a file, one a line, without blanks at the ends; empty lines and those that begin with #
/// are passed over. Refused: no key, and keys with characters that a header cannot carry.
Result<std::vector<std::string>> ParseKeys(std::string_view text, const std::string& name);

/// A key must be 1 to 512 printable ASCII characters without blanks.
Status CheckKey(std::string_view key, const std::string& where);

/// An origin is "*" or SCHEME://HOST[:PORT].
Status CheckOrigin(std::string_view origin, const std::string& where);

}  // namespace facet
