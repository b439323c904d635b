// SPDX-License-Identifier: Apache-2.0
// One exchange between whoever answers (any thread) and the connection (the I/O thread). Neither
// side keeps the other alive: the answering side may outlive connection, server and I/O context,
// and what it says then goes nowhere.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "server/http.h"

namespace facet {

/// The way into the I/O thread, until it is closed. Any thread.
class HttpMailbox {
 public:
  using Task = std::function<void()>;
  explicit HttpMailbox(std::function<void(Task)> post) : post_(std::move(post)) {}

  /// Runs `task` on the I/O thread; after Close it is dropped.
  void Post(Task task);
  /// Nothing is posted once this has returned.
  void Close();

 private:
  std::mutex mutex_;
  std::function<void(Task)> post_;
};

/// A part of a sum of bytes, taken off at its end. The sum may be shared by threads, a part not.
class HttpByteCount {
 public:
  using Sum = std::shared_ptr<std::atomic<size_t>>;
  explicit HttpByteCount(Sum sum) : sum_(std::move(sum)) {}
  HttpByteCount(HttpByteCount&& other) noexcept
      : sum_(other.sum_), n_bytes_(std::exchange(other.n_bytes_, 0)) {}
  HttpByteCount& operator=(HttpByteCount&&) = delete;
  ~HttpByteCount() { Set(0); }

  void Set(size_t n_bytes) {
    *sum_ += n_bytes - n_bytes_;  // modulo 2^64, as what is taken off
    n_bytes_ = n_bytes;
  }

 private:
  const Sum sum_;
  size_t n_bytes_ = 0;
};

/// What has been said since the last Take, in this order.
struct HttpWords {
  std::optional<HttpResponse> response;
  std::optional<HttpHeaders> stream;  ///< a stream starts with these headers
  std::string bytes;                  ///< of the stream
  bool ends = false;                  ///< the stream
  bool is_dropped = false;            ///< nobody will say more
};

/// The state that both sides share. Words are gathered here; however many are said, one task at a
/// time is on its way to the I/O thread.
class HttpChannel : public std::enable_shared_from_this<HttpChannel> {
 public:
  /// `on_words` is called on the I/O thread when there is something to take; it holds the
  /// connection weakly.
  HttpChannel(std::shared_ptr<HttpMailbox> mailbox, std::function<void()> on_words)
      : mailbox_(std::move(mailbox)), on_words_(std::move(on_words)) {}

  /// The side that answers; `body` counts as long as it lives. Dropping the last reference is a
  /// word of its own.
  std::shared_ptr<HttpExchange> MakeExchange(HttpByteCount body);

  // The connection's side, on the I/O thread.
  HttpWords Take();
  /// All that was said has been sent; nobody is told that the client goes.
  void SetSent();
  /// The client has gone: calls on_closed. Not after SetSent.
  void SetGone();

 private:
  friend class HttpExchangeHandle;
  enum class Phase { kSilent, kStreaming, kSaid };  ///< of what has been said
  enum class Fate { kOpen, kSent, kGone };          ///< of the client

  void Respond(HttpResponse response);
  void StartStream(HttpHeaders headers);
  void Write(std::string bytes);
  void EndStream();
  void Drop();
  void SetOnClosed(std::function<void()> on_closed);
  /// Wakes the I/O thread unless it is on its way. `lock` holds mutex_ and is released.
  void Wake(std::unique_lock<std::mutex> lock);

  const std::shared_ptr<HttpMailbox> mailbox_;
  const std::function<void()> on_words_;
  std::mutex mutex_;  ///< guards all below
  Phase phase_ = Phase::kSilent;
  Fate fate_ = Fate::kOpen;
  bool is_waking_ = false;
  HttpWords words_;
  std::function<void()> on_closed_;
};

}  // namespace facet
