// SPDX-License-Identifier: Apache-2.0
// One request and its way back. Every answer carries the request's id and the headers of CORS, and
// every request, however it ends, is told once to metrics and log.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "base/json.h"
#include "server/api_error.h"
#include "server/http.h"
#include "server/request_log.h"

namespace facet {

/// Handed from thread to thread; used by one at a time. Respond or Fail once, or StartStream,
/// Write, EndStream.
class Call {
 public:
  using Clock = std::chrono::steady_clock;
  using OnDone = std::function<void(const RequestRecord& record)>;

  /// `headers` are added to the answer. `on_done` may be called on any thread.
  Call(HttpRequest request, std::shared_ptr<HttpExchange> exchange, std::string id,
       HttpHeaders headers, OnDone on_done);
  /// A call that was not answered counts as one with status 500, which is what the client gets.
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  [[nodiscard]] const HttpRequest& request() const { return request_; }
  [[nodiscard]] RequestRecord& record() { return record_; }
  [[nodiscard]] Clock::time_point arrival() const { return arrival_; }
  /// Gives the body away: it may be large and is read once.
  std::string TakeBody();

  void AddHeader(std::string name, std::string value);
  void Respond(HttpResponse response);
  void Respond(const Json& body);
  void Fail(const ApiError& error);
  void StartStream();
  void Write(std::string bytes);
  /// `error`: what a stream told of in place of its end; may be null.
  void EndStream(const ApiError* error);
  void SetOnClosed(std::function<void()> on_closed);
  /// The client has gone: the record's status is 499, and what follows is dropped.
  void MarkClosed();

 private:
  void End(int status);
  void NoteError(const ApiError& error);

  HttpRequest request_;
  std::shared_ptr<HttpExchange> exchange_;
  HttpHeaders headers_;
  OnDone on_done_;
  Clock::time_point arrival_ = Clock::now();
  RequestRecord record_;
  bool is_closed_ = false;
  bool is_done_ = false;
};

/// The client's own id (1 to 128 letters, digits and . _ : -), or nothing.
std::string GivenRequestId(const HttpRequest& request);

}  // namespace facet
