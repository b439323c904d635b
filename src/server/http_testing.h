// SPDX-License-Identifier: Apache-2.0
// A server on a thread of its own and clients on raw sockets, for tests of what goes over the wire.
#pragma once

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "server/http.h"

namespace facet::testing {

/// Far beyond what any step takes; reached only by a test that fails.
inline constexpr int kPatienceMs = 20'000;

/// Looks again and again until `condition` holds, at most for kPatienceMs.
template <typename Condition>
bool Eventually(const Condition& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatienceMs);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

/// A blocking client. Every read gives up after kPatienceMs.
class TestClient {
 public:
  /// `receive_buffer`: bytes that the system holds unread; 0: the system's choice.
  explicit TestClient(uint16_t port, int receive_buffer = 0) {
    fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    FACET_CHECK(fd_ >= 0);
    if (receive_buffer > 0) {
      ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof(receive_buffer));
    }
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    is_connected_ =
        ::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  }
  ~TestClient() { Close(); }
  TestClient(const TestClient&) = delete;
  TestClient& operator=(const TestClient&) = delete;

  [[nodiscard]] bool is_connected() const { return is_connected_; }

  /// False when the server has closed.
  bool Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) {
        return false;
      }
      bytes.remove_prefix(static_cast<size_t>(n));
    }
    return true;
  }

  /// Adds what comes next to `received`; false at the end, on a reset and when nothing comes.
  bool Receive() {
    pollfd wait{fd_, POLLIN, 0};
    if (::poll(&wait, 1, kPatienceMs) != 1) {
      timed_out = true;
      return false;
    }
    char buffer[16384];
    const ssize_t n = ::recv(fd_, buffer, sizeof(buffer), 0);
    if (n > 0) {
      received.append(buffer, static_cast<size_t>(n));
    }
    return n > 0;
  }

  /// Receives until `text` has come; false when the end comes before.
  bool ReceiveUntil(std::string_view text) {
    while (received.find(text) == std::string::npos) {
      if (!Receive()) {
        return false;
      }
    }
    return true;
  }

  /// All until the server closes.
  const std::string& ReceiveAll() {
    while (Receive()) {
    }
    return received;
  }

  /// One answer with a content-length, taken out of `received`; empty if none comes.
  std::string ReceiveAnswer() {
    if (!ReceiveUntil("\r\n\r\n")) {
      return {};
    }
    const size_t head = received.find("\r\n\r\n") + 4;
    const size_t length = received.find("content-length: ");
    const size_t size = head + (length < head ? std::stoul(received.substr(length + 16)) : 0);
    while (received.size() < size) {
      if (!Receive()) {
        return {};
      }
    }
    std::string answer = received.substr(0, size);
    received.erase(0, size);
    return answer;
  }

  void Close() {
    if (fd_ >= 0) {
      ::close(std::exchange(fd_, -1));
    }
  }
  /// Closes with a reset (RST).
  void Reset() {
    const linger now{1, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    Close();
  }
  void EndSending() { ::shutdown(fd_, SHUT_WR); }
  [[nodiscard]] int fd() const { return fd_; }

  std::string received;
  bool timed_out = false;

 private:
  int fd_ = -1;
  bool is_connected_ = false;
};

/// The body of a message in chunks; what is wrong with them stands at the end as "<BROKEN>".
inline std::string DecodeChunks(std::string_view bytes) {
  std::string body;
  while (true) {
    const size_t line = bytes.find("\r\n");
    if (line == std::string_view::npos) {
      return body + "<BROKEN>";
    }
    const size_t size = std::stoul(std::string(bytes.substr(0, line)), nullptr, 16);
    bytes.remove_prefix(line + 2);
    if (bytes.size() < size + 2 || bytes.substr(size, 2) != "\r\n") {
      return body + "<BROKEN>";
    }
    body += bytes.substr(0, size);
    bytes.remove_prefix(size + 2);
    if (size == 0) {
      return bytes.empty() ? body : body + "<BROKEN>";
    }
  }
}

inline std::string BodyOf(std::string_view answer) {
  const size_t head = answer.find("\r\n\r\n");
  return head == std::string_view::npos ? std::string() : std::string(answer.substr(head + 4));
}

/// A server that runs until the end of the test.
class TestServer {
 public:
  explicit TestServer(HttpHandler handler, HttpOptions options = {},
                      HttpWantsBody wants_body = {}) {
    options.port = 0;
    auto server = HttpServer::Listen(
        std::move(options), std::move(handler),
        [](int status, std::string_view message) {
          return HttpResponse{.status = status, .body = "error: " + std::string(message)};
        },
        std::move(wants_body));
    FACET_CHECK(server.ok());
    server_ = *std::move(server);
    thread_ = std::thread([this] {
      server_->Run();
      has_ended_ = true;
    });
  }
  ~TestServer() {
    server_->Stop(0);
    Join();
  }
  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;

  void Join() {
    if (thread_.joinable()) {
      thread_.join();
    }
  }
  [[nodiscard]] bool has_ended() const { return has_ended_; }
  HttpServer& operator*() { return *server_; }
  HttpServer* operator->() { return server_.get(); }
  [[nodiscard]] uint16_t port() const { return server_->port(); }

 private:
  std::unique_ptr<HttpServer> server_;
  std::atomic<bool> has_ended_ = false;
  std::thread thread_;
};

/// Answers with what it got: "METHOD PATH?QUERY" and the body.
inline void Echo(const HttpRequest& request, const std::shared_ptr<HttpExchange>& exchange) {
  exchange->Respond(
      {.content_type = "text/plain",
       .body = request.method + " " + request.path + "?" + request.query + "\n" + request.body});
}

/// Keeps the exchanges for the test to answer.
class Held {
 public:
  HttpHandler handler() {
    return [this](HttpRequest request, std::shared_ptr<HttpExchange> exchange) {
      const std::lock_guard lock(mutex_);
      requests_.push_back(std::move(request));
      exchanges_.push_back(std::move(exchange));
      came_.notify_all();
    };
  }
  /// The next exchange, when it has come.
  std::shared_ptr<HttpExchange> Next() {
    std::unique_lock lock(mutex_);
    const bool has_come = came_.wait_for(lock, std::chrono::milliseconds(kPatienceMs),
                                         [this] { return exchanges_.size() > n_taken_; });
    FACET_CHECK(has_come);
    return std::move(exchanges_[n_taken_++]);
  }
  HttpRequest request(size_t i) {
    const std::lock_guard lock(mutex_);
    return requests_.at(i);
  }
  size_t n_requests() {
    const std::lock_guard lock(mutex_);
    return requests_.size();
  }

 private:
  std::mutex mutex_;
  std::condition_variable came_;
  std::vector<HttpRequest> requests_;
  std::vector<std::shared_ptr<HttpExchange>> exchanges_;
  size_t n_taken_ = 0;
};

}  // namespace facet::testing
