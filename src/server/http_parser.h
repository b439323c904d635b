// SPDX-License-Identifier: Apache-2.0
// One HTTP/1.x request after another from bytes as they arrive. Boost.Beast reads the lines of a
// head; what it is lenient about is refused here, because a proxy in front may read it otherwise
// (request smuggling): folded lines, line ends that are not CR LF, both or several body lengths,
// transfer codings other than "chunked", control characters. Chunks are decoded here: every byte is
// looked at once, none is held that is not part of the body.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "server/http.h"

namespace facet {

struct HttpLimits {
  size_t max_header_bytes = size_t{32} << 10;  ///< of a head; also of chunk extensions and trailers
  size_t max_body_bytes = size_t{64} << 20;
};
inline constexpr int kMaxHttpHeaders = 100;

class HttpParser {
 public:
  enum class State { kHead, kBody, kDone, kFailed };

  explicit HttpParser(HttpLimits limits) : limits_(limits) {}

  /// Takes bytes; returns how many it took: all, unless the request is done or has failed. The
  /// result does not depend on how the bytes are split.
  size_t Feed(std::string_view bytes);

  [[nodiscard]] State state() const { return state_; }
  /// Bytes of a request have come.
  [[nodiscard]] bool has_begun() const { return state_ != State::kHead || !head_.empty(); }
  /// kFailed: the status to answer with, and why.
  [[nodiscard]] int failure_status() const { return failure_status_; }
  [[nodiscard]] const std::string& failure() const { return failure_; }

  // From kBody on.
  [[nodiscard]] const HttpRequest& request() const { return request_; }  ///< what has come of it
  [[nodiscard]] bool is_http_1_0() const { return is_http_1_0_; }
  /// The client means to send more requests.
  [[nodiscard]] bool keeps_alive() const { return keeps_alive_; }
  /// The client waits for "100 Continue" before it sends the body.
  [[nodiscard]] bool expects_continue() const { return expects_continue_; }

  /// The request (kDone; without the peer). Ready for the next one afterwards.
  HttpRequest Take();
  /// Its head (from kBody on). What has come of the body is dropped, the rest must not be fed.
  HttpRequest TakeHead();
  /// Drops what has come.
  void Reset() { *this = HttpParser(limits_); }

 private:
  enum class Chunk { kSize, kExtension, kSizeEnd, kData, kDataCr, kDataLf, kTrailer, kTrailerEnd };

  void Fail(int status, std::string message);
  size_t FeedHead(std::string_view bytes);
  bool CheckHeadByte(char c);
  void EndHead();
  void ReadFields();
  bool ReadHost();
  bool ReadLength();
  size_t FeedBody(std::string_view bytes);
  size_t FeedChunks(std::string_view bytes);
  void FeedChunkByte(char c);
  void FeedChunkSize(char c);
  void EndChunkSize();
  void FeedTrailer(char c);
  void AppendBody(std::string_view bytes);

  HttpLimits limits_;
  State state_ = State::kHead;
  HttpRequest request_;
  int failure_status_ = 0;
  std::string failure_;
  bool is_http_1_0_ = false;
  bool keeps_alive_ = false;
  bool expects_continue_ = false;

  std::string head_;          ///< what has come of the head
  size_t line_begin_ = 0;     ///< in head_
  int n_lines_ = 0;           ///< that have ended, the request line included
  bool has_skipped_ = false;  ///< an empty line before the request line

  bool is_chunked_ = false;
  uint64_t n_left_ = 0;  ///< bytes of the body, or of the chunk, still to come
  Chunk chunk_ = Chunk::kSize;
  int n_digits_ = 0;           ///< of the chunk's size
  size_t n_overhead_ = 0;      ///< bytes of extensions and trailers
  size_t trailer_length_ = 0;  ///< of the line so far
};

}  // namespace facet
