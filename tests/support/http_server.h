// SPDX-License-Identifier: Apache-2.0
// A server of HTTP/1.1 on a port of the loopback interface that answers as a test tells it to,
// faults and all. One connection at a time, one answer for each, on a thread of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace facet::testing {

struct HttpRequest {
  std::string path;                            ///< with the query
  std::map<std::string, std::string> headers;  ///< names in lower case

  [[nodiscard]] std::string Header(const std::string& name) const;
};

struct HttpReply {
  int status = 200;
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::string body = {};
  bool is_chunked = false;
  std::optional<uint64_t> claimed_length = {};  ///< in place of the body's length
  std::optional<size_t> cut_after = {};  ///< close the connection after so many bytes of the body
  std::function<void()> after_cut = {};  ///< runs between what was sent and the end of it
  std::string raw = {};                  ///< sent in place of everything above
};

class HttpServer {
 public:
  /// `answer` runs on the server's thread.
  explicit HttpServer(std::function<HttpReply(const HttpRequest&)> answer);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// "http://127.0.0.1:PORT"
  [[nodiscard]] const std::string& url() const { return url_; }
  /// What was asked for so far.
  [[nodiscard]] std::vector<HttpRequest> requests() const;

 private:
  void Serve();
  void Answer(int connection);

  std::function<HttpReply(const HttpRequest&)> answer_;
  std::string url_;
  int listener_ = -1;
  int stop_[2] = {-1, -1};  // a pipe; the end that is written to comes last
  mutable std::mutex mutex_;
  std::vector<HttpRequest> requests_;
  std::thread thread_;
};

/// `content` as a server of files gives it: Range and If-Range are honoured, `etag` (with its
/// quotes) is the validator.
HttpReply FileReply(const HttpRequest& request, const std::string& content,
                    const std::string& etag);

}  // namespace facet::testing
