// SPDX-License-Identifier: Apache-2.0
// HTTP/1.1 for a few thousand clients on one thread: limits, time-outs, streams of events, nothing
// of what is said over it. The only files that see Boost.Beast are http*.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace facet {

struct HttpOptions {
  std::string host = "127.0.0.1";  ///< an address of this machine, or a name of one
  uint16_t port = 8080;            ///< 0: any free one
  size_t max_body_bytes = size_t{64} << 20;
  size_t max_header_bytes = size_t{32} << 10;
  size_t max_connections = 4096;  ///< more are told 503 and closed
  double header_timeout_s = 15;   ///< from the first byte of a request to its headers' end
  double body_timeout_s = 60;     ///< for the body to come
  double idle_timeout_s = 75;     ///< between requests of a connection
  /// Without a byte taken by the client; noticed within twice that. The rest of an answer that is
  /// complete must be taken within four times that, however many bytes come meanwhile.
  double write_timeout_s = 30;
  size_t max_unsent_bytes = size_t{4} << 20;  ///< of one stream; a client that lags more is dropped
  /// Of all connections: bodies, from their first byte until the handler drops the exchange, and
  /// what clients have not taken of their answers. At least max_body_bytes. Who sends more of a
  /// body is told 503 and closed, who lags with a stream is dropped. Beside it a connection holds
  /// a head of at most max_header_bytes.
  size_t max_buffered_bytes = size_t{512} << 20;
  double heartbeat_s = 15;  ///< a stream that is silent so long gets a comment
};

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method;
  std::string path;     ///< percent-decoded UTF-8, without the query; ".." stays as it is
  std::string query;    ///< as it came, without '?'
  HttpHeaders headers;  ///< names in lower case
  std::string body;
  std::string peer;  ///< address and port of the client

  /// The first value, or null. `name` in lower case.
  [[nodiscard]] const std::string* Header(std::string_view name) const;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body = {};
  HttpHeaders headers = {};
};

/// One request's way back. All functions may be called from any thread, in order: Respond once, or
/// StartStream, Write any number of times, EndStream. What is said after the client has gone, or
/// after the end, is dropped. Dropping the last reference without a word answers 500.
class HttpExchange {
 public:
  virtual ~HttpExchange() = default;
  virtual void Respond(HttpResponse response) = 0;
  /// 200 with text/event-stream, chunked (HTTP/1.0: until the connection's end); heartbeats go on
  /// until EndStream. Dropping the last reference before EndStream cuts the connection.
  virtual void StartStream(HttpHeaders headers) = 0;
  virtual void Write(std::string bytes) = 0;
  virtual void EndStream() = 0;
  /// Called once, on the I/O thread or at once, if the client goes (or is dropped) before all that
  /// was said has been sent. Not called otherwise. A client that ends its sending side has gone.
  virtual void SetOnClosed(std::function<void()> on_closed) = 0;
};

/// Called on the I/O thread; must not block. A connection has one exchange at a time: when a client
/// sends more before its answer has ended, the answer is sent whole, then the connection is closed
/// and what was pipelined is never looked at.
using HttpHandler =
    std::function<void(HttpRequest request, std::shared_ptr<HttpExchange> exchange)>;

/// Asked on the I/O thread when the head of a request has come and its body has not: false: the
/// handler, which can tell by the head alone that it refuses, gets the request without the body at
/// once, and the connection closes after the answer. Empty: all bodies are read.
using HttpWantsBody = std::function<bool(const HttpRequest& head)>;

/// What it refuses by itself (malformed or too large requests, time-outs, too many connections or
/// bytes) it answers with `make_error`, and closes. 500 is for an exchange that was dropped.
using HttpErrorBody = std::function<HttpResponse(int status, std::string_view message)>;

class HttpServer {
 public:
  /// Binds and listens; a port in use, an address that is not of this machine and the like are
  /// refused with the address.
  static Result<std::unique_ptr<HttpServer>> Listen(HttpOptions options, HttpHandler handler,
                                                    HttpErrorBody make_error,
                                                    HttpWantsBody wants_body = {});
  virtual ~HttpServer() = default;

  [[nodiscard]] virtual uint16_t port() const = 0;
  /// Serves on the caller's thread until Stop has done its work.
  virtual void Run() = 0;
  /// From any thread or a signal's handler thread: no new connections, idle ones close, answers in
  /// progress may end within `deadline_s`, then are cut. Again with a shorter deadline: at once.
  virtual void Stop(double deadline_s) = 0;
  [[nodiscard]] virtual size_t n_connections() const = 0;
};

}  // namespace facet
