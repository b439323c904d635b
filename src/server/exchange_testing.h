// SPDX-License-Identifier: Apache-2.0
// A client without a connection, for tests of what answers requests.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "server/http.h"

namespace facet::testing {

class FakeExchange : public HttpExchange {
 public:
  void Respond(HttpResponse response) override {
    const std::lock_guard lock(mutex_);
    response_ = std::move(response);
    ++n_answers_;
    changed_.notify_all();
  }
  void StartStream(HttpHeaders headers) override {
    const std::lock_guard lock(mutex_);
    response_.headers = std::move(headers);
    is_stream_ = true;
    changed_.notify_all();
  }
  void Write(std::string bytes) override {
    const std::lock_guard lock(mutex_);
    response_.body += bytes;
    changed_.notify_all();
  }
  void EndStream() override {
    const std::lock_guard lock(mutex_);
    ++n_answers_;
    changed_.notify_all();
  }
  void SetOnClosed(std::function<void()> on_closed) override {
    const std::lock_guard lock(mutex_);
    on_closed_ = std::move(on_closed);
    changed_.notify_all();
  }

  /// The client goes, as soon as somebody wants to know.
  void Close() {
    std::unique_lock lock(mutex_);
    Wait(&lock, [this] { return on_closed_ != nullptr; });
    const auto on_closed = std::exchange(on_closed_, nullptr);
    lock.unlock();
    on_closed();
  }
  /// The whole answer; status 0 when none came. Of a stream, the body is what was written.
  HttpResponse WaitForAnswer() {
    std::unique_lock lock(mutex_);
    if (!Wait(&lock, [this] { return n_answers_ > 0; })) {
      return {.status = 0, .content_type = {}, .body = {}};
    }
    return response_;
  }
  bool WaitForBody(const std::string& part) {
    std::unique_lock lock(mutex_);
    return Wait(&lock, [&] { return response_.body.find(part) != std::string::npos; });
  }
  [[nodiscard]] bool is_stream() {
    const std::lock_guard lock(mutex_);
    return is_stream_;
  }
  /// More than one is a fault.
  [[nodiscard]] int n_answers() {
    const std::lock_guard lock(mutex_);
    return n_answers_;
  }

 private:
  /// Far beyond what any test takes; reached only by one that fails.
  template <typename Condition>
  bool Wait(std::unique_lock<std::mutex>* lock, const Condition& condition) {
    return changed_.wait_for(*lock, std::chrono::seconds(20), condition);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> on_closed_;
  HttpResponse response_;
  bool is_stream_ = false;
  int n_answers_ = 0;
};

}  // namespace facet::testing
