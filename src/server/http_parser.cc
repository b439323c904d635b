// SPDX-License-Identifier: Apache-2.0
#include "server/http_parser.h"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <charconv>
#include <limits>
#include <utility>

#include "base/ascii.h"
#include "base/check.h"
#include "server/http_wire.h"

namespace facet {
namespace {

namespace beast = boost::beast;
using beast::error_code;
using BeastView = beast::string_view;

/// What the grown body is reserved to at first: a length is a claim.
constexpr size_t kFirstBodyBytes = size_t{64} << 10;

bool IsControl(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

/// Reads a complete head into a request.
class HeadReader final : public beast::http::basic_parser<true> {
 public:
  HeadReader(HttpRequest* request, std::string* target) : request_(request), target_(target) {
    header_limit(std::numeric_limits<std::uint32_t>::max());
    skip(true);
  }
  [[nodiscard]] int version() const { return version_; }

 private:
  void on_request_impl(beast::http::verb /*verb*/, BeastView method, BeastView target, int version,
                       error_code& /*error*/) override {
    request_->method.assign(method.data(), method.size());
    target_->assign(target.data(), target.size());
    version_ = version;
  }
  void on_field_impl(beast::http::field /*field*/, BeastView name, BeastView value,
                     error_code& /*error*/) override {
    request_->headers.emplace_back(ToLowerAscii({name.data(), name.size()}),
                                   std::string(value.data(), value.size()));
  }
  void on_header_impl(error_code& /*error*/) override {}
  void on_finish_impl(error_code& /*error*/) override {}
  // Never called: responses and bodies are not read here.
  void on_response_impl(int /*code*/, BeastView /*reason*/, int /*version*/,
                        error_code& /*error*/) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>& /*length*/,
                         error_code& /*error*/) override {}
  std::size_t on_body_impl(BeastView body, error_code& /*error*/) override { return body.size(); }
  void on_chunk_header_impl(std::uint64_t /*size*/, BeastView /*extensions*/,
                            error_code& /*error*/) override {}
  std::size_t on_chunk_body_impl(std::uint64_t /*remain*/, BeastView body,
                                 error_code& /*error*/) override {
    return body.size();
  }

  HttpRequest* request_;
  std::string* target_;
  int version_ = 11;
};

size_t CountHeader(const HttpHeaders& headers, std::string_view name) {
  return static_cast<size_t>(std::count_if(
      headers.begin(), headers.end(), [&](const auto& header) { return header.first == name; }));
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

/// Whether the request line is sound but for its version.
bool HasOtherVersion(std::string_view head) {
  const std::string_view line = head.substr(0, head.find("\r\n"));
  const std::string_view version = line.substr(line.rfind(' ') + 1);
  return std::count(line.begin(), line.end(), ' ') == 2 && version.size() == 8 &&
         version.substr(0, 5) == "HTTP/" && IsDigit(version[5]) && version[6] == '.' &&
         IsDigit(version[7]);
}

}  // namespace

void HttpParser::Fail(int status, std::string message) {
  state_ = State::kFailed;
  failure_status_ = status;
  failure_ = std::move(message);
}

HttpRequest HttpParser::Take() {
  FACET_CHECK(state_ == State::kDone);
  HttpRequest request = std::move(request_);
  Reset();
  return request;
}

HttpRequest HttpParser::TakeHead() {
  FACET_CHECK(state_ == State::kBody || state_ == State::kDone);
  HttpRequest request = std::move(request_);
  request.body = std::string();
  Reset();
  return request;
}

size_t HttpParser::Feed(std::string_view bytes) {
  size_t n_taken = 0;
  if (state_ == State::kHead) {
    n_taken = FeedHead(bytes);
  }
  if (state_ == State::kBody) {
    n_taken += FeedBody(bytes.substr(n_taken));
  }
  return n_taken;
}

// ---- The head -----------------------------------------------------------------------------------

size_t HttpParser::FeedHead(std::string_view bytes) {
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (!CheckHeadByte(bytes[i])) {
      return i;
    }
    head_.push_back(bytes[i]);
    if (bytes[i] != '\n') {
      continue;
    }
    const bool is_empty = head_.size() - line_begin_ == 2;
    if (is_empty && n_lines_ == 0) {
      // One empty line before a request is what some old clients send after a body.
      head_.clear();
      if (std::exchange(has_skipped_, true)) {
        Fail(400, "request line: an empty line");
        return i;
      }
      continue;
    }
    ++n_lines_;
    line_begin_ = head_.size();
    if (is_empty) {
      EndHead();
      return i + 1;
    }
  }
  return bytes.size();
}

/// Whether `c` may follow what has come; otherwise it has failed.
bool HttpParser::CheckHeadByte(char c) {
  const bool is_after_cr = head_.size() > line_begin_ && head_.back() == '\r';
  if (is_after_cr != (c == '\n')) {
    Fail(400, is_after_cr ? "header: CR without LF, wanted CR LF"
                          : "header: LF without CR, wanted CR LF");
    return false;
  }
  if (IsControl(c) && c != '\r' && c != '\n' && c != '\t') {
    Fail(400, "header: a control character");
    return false;
  }
  if (head_.size() == line_begin_ && (c == ' ' || c == '\t')) {
    Fail(400, "header: a line that begins with a space, wanted one line for each header");
    return false;
  }
  if (head_.size() >= limits_.max_header_bytes) {
    Fail(431, "headers: more than " + std::to_string(limits_.max_header_bytes) + " bytes");
    return false;
  }
  if (n_lines_ > kMaxHttpHeaders && head_.size() == line_begin_ && c != '\r') {
    Fail(431, "headers: more than " + std::to_string(kMaxHttpHeaders));
    return false;
  }
  return true;
}

void HttpParser::EndHead() {
  std::string target;
  HeadReader reader(&request_, &target);
  error_code error;
  reader.put(boost::asio::buffer(head_), error);
  if (error == beast::http::error::bad_version && HasOtherVersion(head_)) {
    Fail(505, "request line: a version other than HTTP/1.0 and HTTP/1.1");
    return;
  }
  if (error || !reader.is_header_done()) {
    Fail(400, "header: " + (error ? error.message() : std::string("incomplete")));
    return;
  }
  head_ = std::string();
  is_http_1_0_ = reader.version() == 10;
  auto parts = ParseTarget(target);
  if (parts.ok() && parts->path == "*" && request_.method != "OPTIONS") {
    parts = Refuse("target", "\"*\"", "\"/...\"");
  }
  if (!parts.ok()) {
    Fail(400, parts.error().Message());
    return;
  }
  request_.path = std::move(parts->path);
  request_.query = std::move(parts->query);
  ReadFields();
}

void HttpParser::ReadFields() {
  keeps_alive_ = !is_http_1_0_;
  bool says_close = false;
  for (const auto& [name, value] : request_.headers) {
    if (name == "connection") {
      says_close = says_close || HasToken(value, "close");
      keeps_alive_ = keeps_alive_ || HasToken(value, "keep-alive");
    } else if (name == "expect" && !is_http_1_0_) {
      if (ToLowerAscii(value) != "100-continue") {
        Fail(417, "expect: an unknown expectation, wanted \"100-continue\"");
        return;
      }
      expects_continue_ = true;
    }
  }
  keeps_alive_ = keeps_alive_ && !says_close;
  if (!ReadHost() || !ReadLength()) {
    return;
  }
  state_ = is_chunked_ || n_left_ > 0 ? State::kBody : State::kDone;
}

bool HttpParser::ReadHost() {
  const size_t n_hosts = CountHeader(request_.headers, "host");
  if (n_hosts > 1 || (n_hosts == 0 && !is_http_1_0_)) {
    Fail(400, n_hosts == 0 ? "host: none, wanted one" : "host: several, wanted one");
    return false;
  }
  if (n_hosts == 1 && !IsHost(*request_.Header("host"))) {
    Fail(400, "host: not a host's name");
    return false;
  }
  return true;
}

bool HttpParser::ReadLength() {
  const std::string* length = request_.Header("content-length");
  const std::string* coding = request_.Header("transfer-encoding");
  if (CountHeader(request_.headers, "content-length") +
          CountHeader(request_.headers, "transfer-encoding") >
      1) {
    Fail(400, "content-length, transfer-encoding: several, wanted one");
    return false;
  }
  if (coding != nullptr) {
    if (is_http_1_0_) {
      Fail(400, "transfer-encoding: found in HTTP/1.0, wanted content-length");
      return false;
    }
    if (ToLowerAscii(*coding) != "chunked") {
      Fail(501, "transfer-encoding: unknown, wanted \"chunked\"");
      return false;
    }
    is_chunked_ = true;
  }
  if (length != nullptr) {
    const char* end = length->data() + length->size();
    const auto read = std::from_chars(length->data(), end, n_left_);
    if (read.ec != std::errc() || read.ptr != end) {
      Fail(400, "content-length: not a number");
      return false;
    }
    if (n_left_ > limits_.max_body_bytes) {
      Fail(413, "body: more than " + std::to_string(limits_.max_body_bytes) + " bytes");
      return false;
    }
  }
  return true;
}

// ---- The body -----------------------------------------------------------------------------------

void HttpParser::AppendBody(std::string_view bytes) {
  if (request_.body.empty()) {
    request_.body.reserve(std::min<size_t>(n_left_, kFirstBodyBytes));
  }
  request_.body += bytes;
  n_left_ -= bytes.size();
}

size_t HttpParser::FeedBody(std::string_view bytes) {
  if (is_chunked_) {
    return FeedChunks(bytes);
  }
  const size_t n_taken = std::min<size_t>(bytes.size(), n_left_);
  AppendBody(bytes.substr(0, n_taken));
  if (n_left_ == 0) {
    state_ = State::kDone;
  }
  return n_taken;
}

size_t HttpParser::FeedChunks(std::string_view bytes) {
  size_t n_taken = 0;
  while (n_taken < bytes.size() && state_ == State::kBody) {
    if (chunk_ == Chunk::kData) {
      const size_t n_data = std::min<size_t>(bytes.size() - n_taken, n_left_);
      AppendBody(bytes.substr(n_taken, n_data));
      n_taken += n_data;
      if (n_left_ == 0) {
        chunk_ = Chunk::kDataCr;
      }
      continue;
    }
    FeedChunkByte(bytes[n_taken++]);
  }
  return n_taken;
}

void HttpParser::FeedChunkByte(char c) {
  switch (chunk_) {
    case Chunk::kSize:
      FeedChunkSize(c);
      return;
    case Chunk::kExtension:
      if (c == '\r') {
        chunk_ = Chunk::kSizeEnd;
      } else if (IsControl(c) && c != '\t') {
        Fail(400, "chunk: a control character in an extension");
      } else if (++n_overhead_ > limits_.max_header_bytes) {
        Fail(431, "chunk: extensions of more than " + std::to_string(limits_.max_header_bytes) +
                      " bytes");
      }
      return;
    case Chunk::kSizeEnd:
      if (c != '\n') {
        Fail(400, "chunk: CR without LF, wanted CR LF");
        return;
      }
      EndChunkSize();
      return;
    case Chunk::kData:
      return;  // taken as a whole by FeedChunks
    case Chunk::kDataCr:
    case Chunk::kDataLf:
      if (c != (chunk_ == Chunk::kDataCr ? '\r' : '\n')) {
        Fail(400, "chunk: more bytes than its size, wanted CR LF");
        return;
      }
      chunk_ = chunk_ == Chunk::kDataCr ? Chunk::kDataLf : Chunk::kSize;
      n_digits_ = 0;
      return;
    case Chunk::kTrailer:
    case Chunk::kTrailerEnd:
      FeedTrailer(c);
      return;
  }
}

void HttpParser::FeedChunkSize(char c) {
  constexpr int kMaxDigits = 15;  // no overflow
  if (n_digits_ > 0 && (c == '\r' || c == ';')) {
    chunk_ = c == '\r' ? Chunk::kSizeEnd : Chunk::kExtension;
    return;
  }
  unsigned digit = 0;
  const auto read = std::from_chars(&c, &c + 1, digit, 16);
  if (read.ec != std::errc() || ++n_digits_ > kMaxDigits) {
    Fail(400, "chunk: not a size, wanted hexadecimal digits");
    return;
  }
  n_left_ = n_left_ * 16 + digit;
}

void HttpParser::EndChunkSize() {
  if (n_left_ > limits_.max_body_bytes - request_.body.size()) {
    Fail(413, "body: more than " + std::to_string(limits_.max_body_bytes) + " bytes");
    return;
  }
  chunk_ = n_left_ == 0 ? Chunk::kTrailer : Chunk::kData;
}

/// Trailers are read over: nothing here needs them, and merged into the headers they could forge
/// what was checked before.
void HttpParser::FeedTrailer(char c) {
  if (chunk_ == Chunk::kTrailerEnd) {
    if (c != '\n') {
      Fail(400, "trailer: CR without LF, wanted CR LF");
    } else if (trailer_length_ == 0) {
      state_ = State::kDone;
    }
    chunk_ = Chunk::kTrailer;
    trailer_length_ = 0;
    return;
  }
  if (c == '\r') {
    chunk_ = Chunk::kTrailerEnd;
    return;
  }
  if (IsControl(c) && c != '\t') {
    Fail(400, "trailer: a control character");
    return;
  }
  ++trailer_length_;
  if (++n_overhead_ > limits_.max_header_bytes) {
    Fail(431, "trailers: more than " + std::to_string(limits_.max_header_bytes) + " bytes");
  }
}

}  // namespace facet
