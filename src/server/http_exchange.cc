// SPDX-License-Identifier: Apache-2.0
#include "server/http_exchange.h"

#include <utility>

namespace facet {

void HttpMailbox::Post(Task task) {
  const std::lock_guard lock(mutex_);
  if (post_) {
    post_(std::move(task));
  }
}

void HttpMailbox::Close() {
  const std::lock_guard lock(mutex_);
  post_ = nullptr;
}

/// What the handler is given. Its only state is the channel: the end of its life is the news that
/// nobody answers any more.
class HttpExchangeHandle final : public HttpExchange {
 public:
  HttpExchangeHandle(std::shared_ptr<HttpChannel> channel, HttpByteCount body)
      : channel_(std::move(channel)), body_(std::move(body)) {}
  ~HttpExchangeHandle() override { channel_->Drop(); }
  HttpExchangeHandle(const HttpExchangeHandle&) = delete;
  HttpExchangeHandle& operator=(const HttpExchangeHandle&) = delete;

  void Respond(HttpResponse response) override { channel_->Respond(std::move(response)); }
  void StartStream(HttpHeaders headers) override { channel_->StartStream(std::move(headers)); }
  void Write(std::string bytes) override { channel_->Write(std::move(bytes)); }
  void EndStream() override { channel_->EndStream(); }
  void SetOnClosed(std::function<void()> on_closed) override {
    channel_->SetOnClosed(std::move(on_closed));
  }

 private:
  const std::shared_ptr<HttpChannel> channel_;
  const HttpByteCount body_;
};

std::shared_ptr<HttpExchange> HttpChannel::MakeExchange(HttpByteCount body) {
  return std::make_shared<HttpExchangeHandle>(shared_from_this(), std::move(body));
}

void HttpChannel::Wake(std::unique_lock<std::mutex> lock) {
  const bool is_waking = std::exchange(is_waking_, true);
  lock.unlock();
  if (!is_waking) {
    mailbox_->Post([self = shared_from_this()] { self->on_words_(); });
  }
}

void HttpChannel::Respond(HttpResponse response) {
  std::unique_lock lock(mutex_);
  if (phase_ == Phase::kSilent && fate_ == Fate::kOpen) {
    phase_ = Phase::kSaid;
    words_.response = std::move(response);
    Wake(std::move(lock));
  }
}

void HttpChannel::StartStream(HttpHeaders headers) {
  std::unique_lock lock(mutex_);
  if (phase_ == Phase::kSilent && fate_ == Fate::kOpen) {
    phase_ = Phase::kStreaming;
    words_.stream = std::move(headers);
    Wake(std::move(lock));
  }
}

void HttpChannel::Write(std::string bytes) {
  std::unique_lock lock(mutex_);
  if (phase_ != Phase::kStreaming || fate_ != Fate::kOpen || bytes.empty()) {
    return;
  }
  if (words_.bytes.empty()) {
    words_.bytes = std::move(bytes);
  } else {
    words_.bytes += bytes;
  }
  Wake(std::move(lock));
}

void HttpChannel::EndStream() {
  std::unique_lock lock(mutex_);
  if (phase_ == Phase::kStreaming && fate_ == Fate::kOpen) {
    phase_ = Phase::kSaid;
    words_.ends = true;
    Wake(std::move(lock));
  }
}

void HttpChannel::Drop() {
  std::unique_lock lock(mutex_);
  if (phase_ != Phase::kSaid && fate_ == Fate::kOpen) {
    words_.is_dropped = true;
    Wake(std::move(lock));
  }
}

void HttpChannel::SetOnClosed(std::function<void()> on_closed) {
  {
    const std::lock_guard lock(mutex_);
    if (fate_ == Fate::kOpen) {
      std::swap(on_closed_, on_closed);  // the former one is destroyed without the lock
      return;
    }
    if (fate_ == Fate::kSent) {
      return;
    }
  }
  on_closed();
}

HttpWords HttpChannel::Take() {
  const std::lock_guard lock(mutex_);
  is_waking_ = false;
  return std::exchange(words_, {});
}

void HttpChannel::SetSent() {
  std::function<void()> on_closed;  // destroyed without the lock: it may hold the exchange
  const std::lock_guard lock(mutex_);
  if (fate_ == Fate::kOpen) {
    fate_ = Fate::kSent;
    on_closed = std::exchange(on_closed_, nullptr);
  }
}

void HttpChannel::SetGone() {
  std::function<void()> on_closed;
  {
    const std::lock_guard lock(mutex_);
    if (fate_ != Fate::kOpen) {
      return;
    }
    fate_ = Fate::kGone;
    words_ = {};
    on_closed = std::exchange(on_closed_, nullptr);
  }
  if (on_closed) {
    on_closed();
  }
}

}  // namespace facet
