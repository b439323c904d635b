// SPDX-License-Identifier: Apache-2.0
#include "support/http_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string_view>
#include <utility>

namespace facet::testing {
namespace {

[[noreturn]] void Die(const char* what) {
  std::perror(what);
  std::abort();
}

/// Until the blank line behind the headers, or the end; empty when it is not HTTP (but TLS, say).
std::string ReadHead(int connection) {
  std::string head;
  char buffer[4096];
  while (head.find("\r\n\r\n") == std::string::npos) {
    const ssize_t got = ::recv(connection, buffer, sizeof buffer, 0);
    if (got <= 0) {
      return head;
    }
    head.append(buffer, static_cast<size_t>(got));
    if (head[0] < 'A' || head[0] > 'Z') {
      return "";
    }
  }
  return head;
}

/// False when the client has gone.
bool Send(int connection, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) {
      return false;
    }
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

HttpRequest ParseRequest(const std::string& head) {
  HttpRequest request;
  std::istringstream lines(head);
  std::string word;
  lines >> word >> request.path;
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line) && line.size() > 1) {
    const size_t colon = std::min(line.find(": "), line.size() - 2);
    std::string name = line.substr(0, colon);
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    request.headers[name] = line.substr(colon + 2, line.size() - colon - 3);
  }
  return request;
}

std::string Chunked(const std::string& body) {
  constexpr size_t kChunk = 1000;
  std::ostringstream out;
  for (size_t at = 0; at < body.size(); at += kChunk) {
    const std::string chunk = body.substr(at, kChunk);
    out << std::hex << chunk.size() << "\r\n" << chunk << "\r\n";
  }
  out << "0\r\n\r\n";
  return out.str();
}

std::string Bytes(const HttpReply& reply) {
  if (!reply.raw.empty()) {
    return reply.raw;
  }
  std::ostringstream out;
  out << "HTTP/1.1 " << reply.status << " Text\r\nConnection: close\r\n";
  for (const auto& [name, value] : reply.headers) {
    out << name << ": " << value << "\r\n";
  }
  if (reply.is_chunked) {
    out << "Transfer-Encoding: chunked\r\n";
  } else {
    out << "Content-Length: " << reply.claimed_length.value_or(reply.body.size()) << "\r\n";
  }
  const std::string body = reply.is_chunked ? Chunked(reply.body) : reply.body;
  out << "\r\n" << body.substr(0, reply.cut_after.value_or(body.size()));
  return out.str();
}

}  // namespace

std::string HttpRequest::Header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

HttpServer::HttpServer(std::function<HttpReply(const HttpRequest&)> answer)
    : answer_(std::move(answer)) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (listener_ < 0 || ::bind(listener_, generic, size) != 0 || ::listen(listener_, 16) != 0 ||
      ::getsockname(listener_, generic, &size) != 0 || ::pipe2(stop_, O_CLOEXEC) != 0) {
    Die("a server for the test");
  }
  url_ = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  thread_ = std::thread([this] { Serve(); });
}

HttpServer::~HttpServer() {
  ::close(stop_[1]);
  thread_.join();
  ::close(stop_[0]);
  ::close(listener_);
}

std::vector<HttpRequest> HttpServer::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

void HttpServer::Serve() {
  while (true) {
    pollfd waits[2] = {{listener_, POLLIN, 0}, {stop_[0], POLLIN, 0}};
    if (::poll(waits, 2, -1) < 0 || waits[1].revents != 0) {
      return;
    }
    const int connection = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection >= 0) {
      Answer(connection);
      ::close(connection);
    }
  }
}

void HttpServer::Answer(int connection) {
  const std::string head = ReadHead(connection);
  if (head.empty()) {
    return;
  }
  const HttpRequest request = ParseRequest(head);
  {
    const std::lock_guard lock(mutex_);
    requests_.push_back(request);
  }
  const HttpReply reply = answer_(request);
  const bool is_sent = Send(connection, Bytes(reply));
  if (reply.after_cut) {
    reply.after_cut();
  }
  if (is_sent) {
    ::shutdown(connection, SHUT_WR);
  }
}

HttpReply FileReply(const HttpRequest& request, const std::string& content,
                    const std::string& etag) {
  HttpReply reply;
  reply.headers = {{"ETag", etag}, {"Accept-Ranges", "bytes"}};
  const std::string range = request.Header("range");
  const std::string if_range = request.Header("if-range");
  if (range.empty() || (!if_range.empty() && if_range != etag)) {
    reply.body = content;
    return reply;
  }
  const size_t begin = std::stoull(range.substr(std::string("bytes=").size()));
  const std::string total = std::to_string(content.size());
  if (begin >= content.size()) {
    reply.status = 416;
    reply.headers.emplace_back("Content-Range", "bytes */" + total);
    return reply;
  }
  reply.status = 206;
  reply.body = content.substr(begin);
  reply.headers.emplace_back("Content-Range", "bytes " + std::to_string(begin) + "-" +
                                                  std::to_string(content.size() - 1) + "/" + total);
  return reply;
}

}  // namespace facet::testing
