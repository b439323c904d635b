// SPDX-License-Identifier: Apache-2.0
#include "server/http.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <chrono>
#include <unordered_map>
#include <utility>

#include "server/http_connection.h"
#include "server/http_exchange.h"

namespace facet {

const std::string* HttpRequest::Header(std::string_view name) const {
  for (const auto& header : headers) {
    if (header.first == name) {
      return &header.second;
    }
  }
  return nullptr;
}

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;

/// Clients beyond the limit that are being told so; more are closed without a word.
constexpr size_t kMaxRefused = 64;
/// Accepted in one go, between which others are served.
constexpr int kMaxAccepts = 64;
/// Without free descriptors a connection that waits makes the listener readable all the time.
constexpr auto kAcceptPause = std::chrono::milliseconds(50);

std::string AddressText(std::string_view host, uint16_t port) {
  const bool is_ipv6 = host.find(':') != std::string_view::npos;
  return is_ipv6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

/// "[::1]" as in URLs is ::1.
std::string_view WithoutBrackets(std::string_view host) {
  return host.size() >= 2 && host.front() == '[' && host.back() == ']'
             ? host.substr(1, host.size() - 2)
             : host;
}

Clock::duration Seconds(double seconds) {
  constexpr double kLongest = 1e9;
  return std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(std::clamp(seconds, 0.0, kLongest)));
}

std::string WantedInstead(const error_code& error) {
  if (error == asio::error::address_in_use) {
    return "another port (--port)";
  }
  if (error == asio::error::access_denied) {
    return "a port from 1024 on (--port)";
  }
  return "an address or name of this machine (--host)";
}

class AsioServer final : public HttpServer {
 public:
  AsioServer(HttpOptions options, HttpHandler handler, HttpErrorBody make_error,
             HttpWantsBody wants_body)
      : io_(1), acceptor_(io_), accept_timer_(io_), stop_timer_(io_) {
    shared_.options = std::move(options);
    shared_.handler = std::move(handler);
    shared_.make_error = std::move(make_error);
    shared_.wants_body = std::move(wants_body);
    shared_.mailbox = std::make_shared<HttpMailbox>(
        [this](HttpMailbox::Task task) { asio::post(io_, std::move(task)); });
    shared_.on_closed = [this](HttpConnection* connection) { Forget(connection); };
  }

  ~AsioServer() override {
    shared_.mailbox->Close();
    CutAll();
  }
  AsioServer(const AsioServer&) = delete;
  AsioServer& operator=(const AsioServer&) = delete;

  Status Open() {
    const std::string host(WithoutBrackets(shared_.options.host));
    const std::string where = AddressText(host, shared_.options.port);
    if (host.empty()) {  // to the resolver it would mean all addresses
      return Refuse("host", "nothing", "an address or name of this machine (--host)");
    }
    error_code error;
    tcp::resolver resolver(io_);
    const auto found =
        resolver.resolve(host, std::to_string(shared_.options.port), tcp::resolver::passive, error);
    if (error) {
      return Refuse(where, error.message(), WantedInstead(error));
    }
    // A name of both kinds ("localhost") is served by IPv4, which every client tries.
    std::vector<tcp::endpoint> endpoints(found.begin(), found.end());
    std::stable_partition(endpoints.begin(), endpoints.end(),
                          [](const tcp::endpoint& endpoint) { return endpoint.address().is_v4(); });
    for (const tcp::endpoint& endpoint : endpoints) {
      error = Bind(endpoint);
      if (!error || error == asio::error::address_in_use || error == asio::error::access_denied) {
        break;
      }
    }
    if (error) {
      return Refuse(where, error.message(), WantedInstead(error));
    }
    port_ = acceptor_.local_endpoint(error).port();
    WaitToAccept();
    return {};
  }

  [[nodiscard]] uint16_t port() const override { return port_; }

  [[nodiscard]] size_t n_connections() const override { return n_connections_; }

  void Run() override {
    const auto work = asio::make_work_guard(io_);
    io_.run();
  }

  void Stop(double deadline_s) override {
    shared_.mailbox->Post([this, deadline_s] { StopNow(deadline_s); });
  }

 private:
  error_code Bind(const tcp::endpoint& endpoint) {
    error_code error;
    error_code ignored;
    acceptor_.close(ignored);
    acceptor_.open(endpoint.protocol(), error);
    if (!error) {
      acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
    }
    if (!error) {
      acceptor_.non_blocking(true, error);
    }
    if (!error) {
      acceptor_.bind(endpoint, error);
    }
    if (!error) {
      acceptor_.listen(asio::socket_base::max_listen_connections, error);
    }
    return error;
  }

  void WaitToAccept() {
    acceptor_.async_wait(tcp::acceptor::wait_read, [this](const error_code& error) {
      if (!error && !is_stopping_) {
        Accept();
      }
    });
  }

  void Accept() {
    for (int i = 0; i < kMaxAccepts; ++i) {
      tcp::endpoint peer;
      auto size = static_cast<socklen_t>(peer.capacity());
      const int fd = ::accept4(acceptor_.native_handle(), peer.data(), &size, SOCK_CLOEXEC);
      if (fd >= 0) {
        peer.resize(size);
        Admit(fd, peer);
        continue;
      }
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        PauseAccepting();
        return;
      }
      if (errno == EAGAIN || errno == EWOULDBLOCK) {
        break;
      }
      // The client has gone again, or its network fails: the next one.
    }
    WaitToAccept();
  }

  void PauseAccepting() {
    accept_timer_.expires_after(kAcceptPause);
    accept_timer_.async_wait([this](const error_code& error) {
      if (!error && !is_stopping_) {
        Accept();
      }
    });
  }

  void Admit(int fd, const tcp::endpoint& peer) {
    const size_t n_max = shared_.options.max_connections;
    if (connections_.size() >= n_max + kMaxRefused) {
      ::close(fd);
      return;
    }
    const bool is_served = connections_.size() < n_max;
    const auto connection =
        MakeHttpConnection(io_, fd, AddressText(peer.address().to_string(), peer.port()), &shared_);
    connections_.emplace(connection.get(), connection);
    n_connections_ = connections_.size();
    if (is_served) {
      connection->Start();
    } else {
      connection->StartRefused(503, fmt::format("more than {} connections", n_max));
    }
  }

  void Forget(HttpConnection* connection) {
    connections_.erase(connection);
    n_connections_ = connections_.size();
    StopIfDone();
  }

  void StopNow(double deadline_s) {
    const auto deadline = Clock::now() + Seconds(deadline_s);
    if (is_stopping_ && deadline >= stop_timer_.expiry()) {
      return;
    }
    if (!std::exchange(is_stopping_, true)) {
      error_code ignored;
      acceptor_.close(ignored);
      accept_timer_.cancel();
      for (const auto& connection : Connections()) {
        connection->FinishUp();
      }
    }
    stop_timer_.expires_at(deadline);
    stop_timer_.async_wait([this](const error_code& error) {
      if (!error) {
        CutAll();
      }
    });
    StopIfDone();
  }

  void StopIfDone() {
    if (is_stopping_ && connections_.empty()) {
      io_.stop();
    }
  }

  void CutAll() {
    for (const auto& connection : Connections()) {
      connection->Cut();
    }
  }

  /// A copy: closing takes them out of the map.
  [[nodiscard]] std::vector<std::shared_ptr<HttpConnection>> Connections() const {
    std::vector<std::shared_ptr<HttpConnection>> all;
    all.reserve(connections_.size());
    for (const auto& [key, connection] : connections_) {
      all.push_back(connection);
    }
    return all;
  }

  HttpShared shared_;
  std::unordered_map<HttpConnection*, std::shared_ptr<HttpConnection>> connections_;
  std::atomic<size_t> n_connections_ = 0;
  uint16_t port_ = 0;
  bool is_stopping_ = false;
  // Last, so that what is still queued goes first.
  asio::io_context io_;
  tcp::acceptor acceptor_;
  asio::steady_timer accept_timer_;
  asio::steady_timer stop_timer_;
};

}  // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::Listen(HttpOptions options, HttpHandler handler,
                                                       HttpErrorBody make_error,
                                                       HttpWantsBody wants_body) {
  if (options.max_buffered_bytes < options.max_body_bytes) {
    return Refuse("max_buffered_bytes", std::to_string(options.max_buffered_bytes),
                  fmt::format("at least max_body_bytes, {}", options.max_body_bytes));
  }
  const std::string where = AddressText(options.host, options.port);
  try {
    auto server = std::make_unique<AsioServer>(std::move(options), std::move(handler),
                                               std::move(make_error), std::move(wants_body));
    FACET_RETURN_IF_ERROR(server->Open());
    return std::unique_ptr<HttpServer>(std::move(server));
  } catch (const boost::system::system_error& error) {  // no descriptors for the I/O context
    return Refuse(where, error.code().message());
  }
}

}  // namespace facet
