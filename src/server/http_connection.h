// SPDX-License-Identifier: Apache-2.0
// One client: reads a request, hands it over, sends the answer, and so on. Everything runs on the
// I/O thread. The state is one of: a request comes in; an answer is on its way; said goodbye and
// waiting for the client to close. A read is pending in all of them, so a client that goes is
// noticed at once.
//
// A client that ends its sending side (FIN) counts as gone, even if it still listens: nothing tells
// it apart from one that crashed, and an answer costs minutes of all cores.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/http.h"
#include "server/http_exchange.h"

namespace boost::asio {
class io_context;
}

namespace facet {

class HttpConnection;

/// What the connections of a server share; outlives them.
struct HttpShared {
  HttpOptions options;
  HttpHandler handler;
  HttpErrorBody make_error;
  HttpWantsBody wants_body;
  std::shared_ptr<HttpMailbox> mailbox;
  /// The connection has closed its socket.
  std::function<void(HttpConnection*)> on_closed;
  /// Of all connections and their exchanges; see HttpOptions::max_buffered_bytes.
  HttpByteCount::Sum n_buffered = std::make_shared<std::atomic<size_t>>(0);
  /// What is read lands here first; a connection that waits holds no buffer.
  std::vector<char> scratch = std::vector<char>(size_t{64} << 10);
};

class HttpConnection {
 public:
  virtual ~HttpConnection() = default;
  virtual void Start() = 0;
  /// In place of Start: tells `status` without reading a request, and closes.
  virtual void StartRefused(int status, std::string_view message) = 0;
  /// No further request: closes at once unless an answer is on its way.
  virtual void FinishUp() = 0;
  /// Closes at once; what the client has not got is lost.
  virtual void Cut() = 0;
};

/// Takes over the socket `fd`. `peer`: address and port for HttpRequest::peer.
std::shared_ptr<HttpConnection> MakeHttpConnection(boost::asio::io_context& io, int fd,
                                                   std::string peer, HttpShared* shared);

}  // namespace facet
