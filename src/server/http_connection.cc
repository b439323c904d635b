// SPDX-License-Identifier: Apache-2.0
#include "server/http_connection.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <limits>
#include <utility>

#include "server/http_parser.h"
#include "server/http_wire.h"

namespace facet {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;

/// How long a client may take to notice that it has been said goodbye to. Closing earlier, with its
/// bytes unread, would destroy the answer on its way.
constexpr double kLingerSeconds = 2;
/// A buffer that has grown beyond this is given back after use.
constexpr size_t kKeptBufferBytes = size_t{16} << 10;
constexpr std::string_view kComment = ": \n\n";
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

/// Of write_timeout_s: for the rest of an answer that is complete.
constexpr double kAnswerTimeouts = 4;

Clock::duration Seconds(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

class Connection final : public HttpConnection, public std::enable_shared_from_this<Connection> {
 public:
  Connection(asio::io_context& io, int fd, std::string peer, HttpShared* shared)
      : shared_(shared),
        peer_(std::move(peer)),
        socket_(io),
        timer_(io),
        body_(shared->n_buffered),
        unsent_(shared->n_buffered),
        parser_({.max_header_bytes = shared->options.max_header_bytes,
                 .max_body_bytes = shared->options.max_body_bytes}) {
    error_code error;
    socket_.assign(tcp::v4(), fd, error);  // the family matters to Open alone
    if (error) {
      ::close(fd);
      return;
    }
    socket_.non_blocking(true, error);
    socket_.set_option(tcp::no_delay(true), error);
  }

  void Start() override {
    Arm(Wait::kIdle, shared_->options.idle_timeout_s);
    WaitToRead();
  }

  void StartRefused(int status, std::string_view message) override {
    WaitToRead();
    Refuse(status, message);
  }

  void FinishUp() override {
    closes_ = true;
    if (state_ == State::kReading) {
      Close();
    }
  }

  void Cut() override {
    if (state_ != State::kClosed) {
      // A reset: the client must not take what it got for the whole, and what it did not take must
      // not stay in the system's memory.
      error_code error;
      socket_.set_option(asio::socket_base::linger(true, 0), error);
      Close();
    }
  }

 private:
  enum class State { kReading, kAnswering, kLeaving, kClosed };
  /// What the timer is waiting for.
  enum class Wait { kNothing, kIdle, kHead, kBody, kHeartbeat, kWrite, kLeave };

  // ---- Time -------------------------------------------------------------------------------------

  /// The system's timer is set anew only for an earlier time: most deadlines are moved before they
  /// come.
  void Arm(Wait wait, double seconds) {
    wait_ = wait;
    deadline_ = Clock::now() + Seconds(seconds);
    if (wait == Wait::kWrite) {
      deadline_ = std::min(deadline_, answer_deadline_);
    }
    if (!is_timer_set_ || deadline_ < timer_.expiry()) {
      SetTimer();
    }
  }

  void SetTimer() {
    is_timer_set_ = true;
    timer_.expires_at(deadline_);
    timer_.async_wait([self = shared_from_this()](const error_code& error) {
      if (!error) {
        self->OnTimer();
      }
    });
  }

  void OnTimer() {
    if (timer_.expiry() > Clock::now() || state_ == State::kClosed) {
      return;  // set anew while this was on its way
    }
    is_timer_set_ = false;
    if (wait_ == Wait::kNothing) {
      return;
    }
    if (Clock::now() < deadline_) {
      SetTimer();
      return;
    }
    switch (std::exchange(wait_, Wait::kNothing)) {
      case Wait::kNothing:
        return;
      case Wait::kIdle:
      case Wait::kLeave:
        Close();
        return;
      case Wait::kHead:
        Refuse(408, "the request's headers did not come in time");
        return;
      case Wait::kBody:
        Refuse(408, "the request's body did not come in time");
        return;
      case Wait::kWrite:
        OnWriteTimer();
        return;
      case Wait::kHeartbeat:
        SendStreamBytes(kComment);
        return;
    }
  }

  /// The system takes new bytes only when a good part of its buffer is free. A slow client that
  /// took some meanwhile is told by what is left there.
  void OnWriteTimer() {
    int n_queued = 0;
    if (Clock::now() >= answer_deadline_ ||
        ::ioctl(socket_.native_handle(), SIOCOUTQ, &n_queued) != 0 || n_queued >= n_queued_) {
      Cut();
      return;
    }
    n_queued_ = n_queued;
    Arm(Wait::kWrite, shared_->options.write_timeout_s);
  }

  // ---- Reading ----------------------------------------------------------------------------------

  void WaitToRead() {
    socket_.async_wait(tcp::socket::wait_read,
                       [self = shared_from_this()](const error_code& error) {
                         if (self->state_ == State::kClosed) {
                           return;
                         }
                         if (error) {
                           self->Close();
                         } else {
                           self->Read();
                         }
                       });
  }

  void Read() {
    error_code error;
    std::vector<char>& scratch = shared_->scratch;
    const size_t n = socket_.read_some(asio::buffer(scratch), error);
    if (error && error != asio::error::would_block && error != asio::error::interrupted) {
      Close();  // the end, or a reset
      return;
    }
    if (state_ == State::kReading) {
      OnBytes(std::string_view(scratch.data(), n));
    } else if (state_ == State::kAnswering && n > 0) {
      // Pipelined: what is beyond the answer is not looked at. The bytes are gone, so this was the
      // connection's last exchange.
      closes_ = true;
    }
    if (state_ != State::kClosed) {
      WaitToRead();
    }
  }

  void OnBytes(std::string_view bytes) {
    const HttpParser::State before = parser_.state();
    const bool had_begun = parser_.has_begun();
    const size_t n_taken = parser_.Feed(bytes);
    switch (parser_.state()) {
      case HttpParser::State::kHead:
        if (!had_begun && parser_.has_begun()) {
          Arm(Wait::kHead, shared_->options.header_timeout_s);
        }
        return;
      case HttpParser::State::kBody:
        if (before == HttpParser::State::kHead) {
          if (shared_->wants_body && !shared_->wants_body(parser_.request())) {
            closes_ = true;
            BeginExchange();
            return;
          }
          Arm(Wait::kBody, shared_->options.body_timeout_s);
          if (parser_.expects_continue()) {
            Send(std::string(kContinue));
          }
        }
        CountBody();
        return;
      case HttpParser::State::kDone:
        closes_ = closes_ || n_taken < bytes.size();
        if (CountBody()) {
          BeginExchange();
        }
        return;
      case HttpParser::State::kFailed:
        Refuse(parser_.failure_status(), parser_.failure());
        return;
    }
  }

  /// False: it was one too many, and has been refused.
  bool CountBody() {
    const size_t n_bytes = parser_.request().body.size();
    body_.Set(n_bytes);
    if (n_bytes > 0 && *shared_->n_buffered > shared_->options.max_buffered_bytes) {
      Refuse(503, "the server holds too many bodies and answers");
      return false;
    }
    return true;
  }

  void BeginExchange() {
    state_ = State::kAnswering;
    wait_ = Wait::kNothing;
    if (is_writing_) {
      Arm(Wait::kWrite, shared_->options.write_timeout_s);  // "100 Continue" is still on its way
    }
    is_http_1_0_ = parser_.is_http_1_0();
    closes_ = closes_ || !parser_.keeps_alive();
    has_answer_ = false;
    answer_deadline_ = Clock::time_point::max();
    is_streaming_ = false;
    const bool is_whole = parser_.state() == HttpParser::State::kDone;
    HttpRequest request = is_whole ? parser_.Take() : parser_.TakeHead();
    request.peer = peer_;
    is_head_ = request.method == "HEAD";
    channel_ = std::make_shared<HttpChannel>(
        shared_->mailbox, [weak = std::weak_ptr<Connection>(shared_from_this())] {
          if (const auto self = weak.lock()) {
            self->OnWords();
          }
        });
    shared_->handler(std::move(request), channel_->MakeExchange(std::move(body_)));
  }

  // ---- Answering --------------------------------------------------------------------------------

  void OnWords() {
    if (channel_ == nullptr || state_ != State::kAnswering) {
      return;
    }
    HttpWords words = channel_->Take();
    if (words.response.has_value()) {
      SendResponse(std::move(*words.response));
      return;
    }
    if (words.stream.has_value()) {
      SendStreamHead(*words.stream);
    }
    if (!words.bytes.empty()) {
      SendStreamBytes(words.bytes);
    }
    if (words.ends) {
      EndStream();
    } else if (words.is_dropped && is_streaming_) {
      Cut();
    } else if (words.is_dropped && !has_answer_) {
      SendResponse(shared_->make_error(500, "the request was not answered"));
    }
  }

  /// All of the answer is sent or queued.
  void SetAnswered() {
    has_answer_ = true;
    answer_deadline_ = Clock::now() + Seconds(kAnswerTimeouts * shared_->options.write_timeout_s);
  }

  void SendResponse(HttpResponse response) {
    SetAnswered();
    const bool has_body = HasBody(response.status);
    std::string bytes = FormatHead({.status = response.status,
                                    .content_type = response.content_type,
                                    .framing = has_body ? HttpFraming::kLength : HttpFraming::kNone,
                                    .length = response.body.size(),
                                    .keeps_alive = !closes_,
                                    .headers = &response.headers});
    if (has_body && !is_head_) {
      bytes += response.body;
    }
    response.body = std::string();
    Send(std::move(bytes));
  }

  void SendStreamHead(HttpHeaders headers) {
    is_streaming_ = true;
    headers.emplace_back("cache-control", "no-cache");
    headers.emplace_back("x-accel-buffering", "no");
    closes_ = closes_ || is_http_1_0_;
    Send(FormatHead({.content_type = "text/event-stream; charset=utf-8",
                     .framing = is_http_1_0_ ? HttpFraming::kToClose : HttpFraming::kChunked,
                     .keeps_alive = !closes_,
                     .headers = &headers}));
    if (is_head_) {
      is_streaming_ = false;
      SetAnswered();
    }
  }

  void SendStreamBytes(std::string_view bytes) {
    if (!is_streaming_ || state_ != State::kAnswering) {
      return;
    }
    // What finds nothing unsent before it is taken whatever its size: the client has not lagged.
    const size_t n_unsent = unsent_bytes();
    if (n_unsent > 0 &&
        (n_unsent + bytes.size() > shared_->options.max_unsent_bytes ||
         *shared_->n_buffered + bytes.size() > shared_->options.max_buffered_bytes)) {
      Cut();
      return;
    }
    if (is_http_1_0_) {
      Send(std::string(bytes));
      return;
    }
    AppendChunk(waiting_, bytes);
    StartWriting();
  }

  void EndStream() {
    if (!is_streaming_ || state_ != State::kAnswering) {
      return;
    }
    is_streaming_ = false;
    SetAnswered();
    if (!is_http_1_0_) {
      waiting_ += kLastChunk;
    }
    if (!is_writing_ && waiting_.empty()) {
      OnDrained();
    } else {
      StartWriting();
    }
  }

  /// An answer of the server's own, after which the connection ends.
  void Refuse(int status, std::string_view message) {
    state_ = State::kAnswering;
    wait_ = Wait::kNothing;
    closes_ = true;
    is_head_ = false;
    HttpResponse response = shared_->make_error(status, message);
    parser_.Reset();  // after `message`, which may be the parser's
    body_.Set(0);
    SendResponse(std::move(response));
  }

  // ---- Writing ----------------------------------------------------------------------------------

  [[nodiscard]] size_t unsent_bytes() const {
    return waiting_.size() + (in_flight_.size() - n_sent_);
  }

  void Send(std::string bytes) {
    if (waiting_.empty()) {
      waiting_ = std::move(bytes);
    } else {
      waiting_ += bytes;
    }
    StartWriting();
  }

  /// What has gathered meanwhile is sent together.
  void StartWriting() {
    unsent_.Set(unsent_bytes());
    if (is_writing_ || waiting_.empty()) {
      return;
    }
    is_writing_ = true;
    in_flight_.clear();
    std::swap(in_flight_, waiting_);
    n_sent_ = 0;
    Write();
  }

  void Write() {
    if (state_ == State::kAnswering) {
      Arm(Wait::kWrite, shared_->options.write_timeout_s);
    }
    socket_.async_write_some(asio::buffer(in_flight_.data() + n_sent_, in_flight_.size() - n_sent_),
                             [self = shared_from_this()](const error_code& error, size_t n) {
                               if (self->state_ == State::kClosed) {
                                 return;
                               }
                               if (error) {
                                 self->Close();
                                 return;
                               }
                               self->OnWritten(n);
                             });
  }

  void OnWritten(size_t n) {
    n_sent_ += n;
    unsent_.Set(unsent_bytes());
    n_queued_ = std::numeric_limits<int>::max();
    if (n_sent_ < in_flight_.size()) {
      Write();
      return;
    }
    is_writing_ = false;
    n_sent_ = 0;
    in_flight_.clear();
    if (in_flight_.capacity() > kKeptBufferBytes) {
      in_flight_ = std::string();
    }
    if (waiting_.empty()) {
      OnDrained();
    } else {
      StartWriting();
    }
  }

  void OnDrained() {
    if (state_ != State::kAnswering) {
      return;
    }
    if (has_answer_) {
      EndExchange();
    } else if (is_streaming_) {
      Arm(Wait::kHeartbeat, shared_->options.heartbeat_s);
    } else {
      wait_ = Wait::kNothing;  // "100 Continue" has been sent; the handler is at work
    }
  }

  void EndExchange() {
    if (channel_ != nullptr) {
      std::exchange(channel_, nullptr)->SetSent();
    }
    if (!closes_) {
      in_flight_ = std::string();
      waiting_ = std::string();
      state_ = State::kReading;
      Arm(Wait::kIdle, shared_->options.idle_timeout_s);
      return;
    }
    state_ = State::kLeaving;
    error_code error;
    socket_.shutdown(tcp::socket::shutdown_send, error);
    Arm(Wait::kLeave, kLingerSeconds);
  }

  void Close() {
    if (state_ == State::kClosed) {
      return;
    }
    state_ = State::kClosed;
    error_code error;
    socket_.close(error);
    timer_.cancel();
    const auto self = shared_from_this();
    if (channel_ != nullptr) {
      std::exchange(channel_, nullptr)->SetGone();
    }
    shared_->on_closed(this);
  }

  HttpShared* const shared_;
  const std::string peer_;
  tcp::socket socket_;
  asio::steady_timer timer_;
  HttpByteCount body_;    ///< of the request that comes in
  HttpByteCount unsent_;  ///< of the answer
  HttpParser parser_;
  State state_ = State::kReading;

  Wait wait_ = Wait::kNothing;
  Clock::time_point deadline_;
  bool is_timer_set_ = false;

  // Of the exchange.
  std::shared_ptr<HttpChannel> channel_;  ///< null: none, or an answer of the server's own
  bool is_http_1_0_ = false;
  bool is_head_ = false;
  bool is_streaming_ = false;  ///< the stream's head is out, its end is not
  bool has_answer_ = false;    ///< all of it is sent or queued
  Clock::time_point answer_deadline_ = Clock::time_point::max();  ///< for it to be taken
  bool closes_ = false;                                           ///< after this answer

  std::string waiting_;
  std::string in_flight_;
  size_t n_sent_ = 0;  ///< of in_flight_
  bool is_writing_ = false;
  /// Bytes in the system's buffer when the write timer last came since a byte went there.
  int n_queued_ = std::numeric_limits<int>::max();
};

}  // namespace

std::shared_ptr<HttpConnection> MakeHttpConnection(asio::io_context& io, int fd, std::string peer,
                                                   HttpShared* shared) {
  return std::make_shared<Connection>(io, fd, std::move(peer), shared);
}

}  // namespace facet
