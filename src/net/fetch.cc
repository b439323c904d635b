// SPDX-License-Identifier: Apache-2.0
#include "net/fetch.h"

#include <curl/curl.h>
#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>

#include "base/utf8.h"
#include "net/model_name.h"

namespace facet {
namespace {

constexpr size_t kMaxHeaderBytes = 4096;
constexpr uint64_t kMaxDroppedBytes = uint64_t{64} << 10;  // Of bodies that nobody reads.
constexpr long kConnectTimeoutSeconds = 30;
constexpr long kStallSeconds = 60;
constexpr long kStallBytesPerSecond = 1000;
constexpr long kBufferBytes = 512L << 10;

using Easy = std::unique_ptr<CURL, decltype(&curl_easy_cleanup)>;
using HeaderList = std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)>;

bool EqualsIgnoringCase(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) {
           const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : +c; };
           return lower(x) == lower(y);
         });
}

std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const size_t begin = std::min(text.find_first_not_of(kBlanks), text.size());
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

bool IsRedirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

bool IsSuccess(int status) { return status >= 200 && status < 300; }

/// One request and its answer, without what redirects lead to.
class Hop {
 public:
  /// `head` holds what former answers said that still counts.
  Hop(const FetchSink& sink, FetchHead head) : sink_(sink), head_(std::move(head)) {}

  /// `token` empty: none is sent.
  FetchResult Run(const FetchRequest& request, const std::string& url, const std::string& token);
  /// Where the answer redirects to, absolute; empty when it does not.
  [[nodiscard]] const std::string& redirect() const { return redirect_; }

 private:
  static size_t OnHeader(char* data, size_t size, size_t count, void* self);
  static size_t OnBody(char* data, size_t size, size_t count, void* self);
  static curl_socket_t OnConnect(void* self, curlsocktype purpose, curl_sockaddr* address);
  bool TakeHeader(std::string_view line);
  bool TakeBody(std::span<const std::byte> bytes);
  void TakeStatusLine(std::string_view line);
  /// The head is complete; called again at the end for answers without any.
  bool HandHeadOn();
  Status Configure(const FetchRequest& request, const std::string& url, const std::string& token);
  [[nodiscard]] FetchResult Outcome(CURLcode code, const std::string& url) const;

  const FetchSink& sink_;
  FetchHead head_;
  Easy easy_{curl_easy_init(), curl_easy_cleanup};
  HeaderList headers_{nullptr, curl_slist_free_all};
  std::array<char, CURL_ERROR_SIZE> message_{};
  std::string redirect_;
  std::optional<Error> refusal_;
  bool is_head_done_ = false;
  AddressFilter allows_ = nullptr;
  bool was_kept_off_ = false;  // an address was not allowed
  uint64_t n_dropped_ = 0;
};

/// Every option must be taken: one that is not would be a limit that does not hold.
template <typename Value>
bool Set(const Easy& easy, CURLoption option, Value value) {
  return curl_easy_setopt(easy.get(), option, value) == CURLE_OK;
}

Status Hop::Configure(const FetchRequest& request, const std::string& url,
                      const std::string& token) {
  bool ok = easy_ != nullptr && Set(easy_, CURLOPT_URL, url.c_str()) &&
            Set(easy_, CURLOPT_PROTOCOLS_STR, "http,https") &&
            Set(easy_, CURLOPT_FOLLOWLOCATION, 0L) && Set(easy_, CURLOPT_NOSIGNAL, 1L) &&
            Set(easy_, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L) &&
            Set(easy_, CURLOPT_USERAGENT, "facet/" FACET_VERSION) &&
            Set(easy_, CURLOPT_CONNECTTIMEOUT, kConnectTimeoutSeconds) &&
            Set(easy_, CURLOPT_LOW_SPEED_LIMIT, kStallBytesPerSecond) &&
            Set(easy_, CURLOPT_LOW_SPEED_TIME, kStallSeconds) &&
            Set(easy_, CURLOPT_BUFFERSIZE, kBufferBytes) &&
            Set(easy_, CURLOPT_ERRORBUFFER, message_.data()) &&
            Set(easy_, CURLOPT_HEADERFUNCTION, &Hop::OnHeader) &&
            Set(easy_, CURLOPT_HEADERDATA, static_cast<void*>(this)) &&
            Set(easy_, CURLOPT_WRITEFUNCTION, &Hop::OnBody) &&
            Set(easy_, CURLOPT_WRITEDATA, static_cast<void*>(this));
  if (request.allows != nullptr) {
    allows_ = request.allows;
    ok = ok && Set(easy_, CURLOPT_PROXY, "") &&
         Set(easy_, CURLOPT_OPENSOCKETFUNCTION, &Hop::OnConnect) &&
         Set(easy_, CURLOPT_OPENSOCKETDATA, static_cast<void*>(this));
  }
  if (request.timeout_s > 0) {
    ok = ok && Set(easy_, CURLOPT_TIMEOUT, static_cast<long>(request.timeout_s));
  }
  const auto add_header = [this, &ok](const std::string& line) {
    curl_slist* longer = curl_slist_append(headers_.get(), line.c_str());
    ok = ok && longer != nullptr;
    if (longer != nullptr) {
      static_cast<void>(headers_.release());
      headers_.reset(longer);
    }
  };
  if (!token.empty()) {
    add_header("Authorization: Bearer " + token);
  }
  if (request.offset > 0) {
    add_header(fmt::format("Range: bytes={}-", request.offset));
    if (!request.if_range.empty()) {
      add_header("If-Range: " + request.if_range);
    }
  }
  ok = ok && Set(easy_, CURLOPT_HTTPHEADER, headers_.get());
  return ok ? Status() : Refuse(url, "libcurl takes not all options", "libcurl 7.85 or newer");
}

FetchResult Hop::Run(const FetchRequest& request, const std::string& url,
                     const std::string& token) {
  if (Status status = Configure(request, url, token); !status.ok()) {
    return {.error = status.error()};
  }
  const CURLcode code = curl_easy_perform(easy_.get());
  const char* redirect = nullptr;
  if (IsRedirect(head_.status) &&
      curl_easy_getinfo(easy_.get(), CURLINFO_REDIRECT_URL, &redirect) == CURLE_OK &&
      redirect != nullptr) {
    redirect_ = redirect;
  }
  if (code == CURLE_OK && redirect_.empty()) {
    HandHeadOn();
  }
  return Outcome(code, request.url);
}

size_t Hop::OnHeader(char* data, size_t size, size_t count, void* self) {
  const size_t n_bytes = size * count;
  return static_cast<Hop*>(self)->TakeHeader({data, n_bytes}) ? n_bytes : 0;
}

size_t Hop::OnBody(char* data, size_t size, size_t count, void* self) {
  const size_t n_bytes = size * count;
  const std::span bytes(reinterpret_cast<const std::byte*>(data), n_bytes);
  return static_cast<Hop*>(self)->TakeBody(bytes) ? n_bytes : 0;
}

curl_socket_t Hop::OnConnect(void* self, curlsocktype, curl_sockaddr* address) {
  Hop& hop = *static_cast<Hop*>(self);
  if (!hop.allows_(address->addr)) {
    hop.was_kept_off_ = true;
    return CURL_SOCKET_BAD;
  }
  return ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

void Hop::TakeStatusLine(std::string_view line) {
  // Those of a former answer (100 Continue) do not count; the digest of a redirect does.
  head_ = FetchHead{.linked_etag = std::move(head_.linked_etag),
                    .linked_size = std::move(head_.linked_size)};
  const size_t space = line.find(' ');
  if (space != std::string_view::npos) {
    line.remove_prefix(space + 1);
    std::from_chars(line.data(), line.data() + line.size(), head_.status);
  }
}

bool Hop::TakeHeader(std::string_view line) {
  if (is_head_done_) {
    return true;  // Trailers of a chunked body.
  }
  line = Trimmed(line);
  if (line.starts_with("HTTP/")) {
    TakeStatusLine(line);
    return true;
  }
  if (line.empty()) {
    return head_.status < 200 || IsRedirect(head_.status) || HandHeadOn();
  }
  const std::array<std::pair<std::string_view, std::string*>, 7> fields = {{
      {"etag", &head_.etag},
      {"last-modified", &head_.last_modified},
      {"content-type", &head_.content_type},
      {"content-encoding", &head_.content_encoding},
      {"content-range", &head_.content_range},
      {"x-linked-etag", &head_.linked_etag},
      {"x-linked-size", &head_.linked_size},
  }};
  const size_t colon = std::min(line.find(':'), line.size());
  const std::string_view name = line.substr(0, colon);
  const std::string_view value = Trimmed(line.substr(std::min(colon + 1, line.size())));
  for (const auto& [field, target] : fields) {
    if (EqualsIgnoringCase(name, field) && value.size() <= kMaxHeaderBytes) {
      *target = value;
    }
  }
  uint64_t length = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), length);
  if (EqualsIgnoringCase(name, "content-length") && error == std::errc() &&
      end == value.data() + value.size()) {
    head_.content_length = length;
  }
  return true;
}

bool Hop::HandHeadOn() {
  if (!is_head_done_) {
    is_head_done_ = true;
    if (const Status status = sink_.on_head(head_); !status.ok()) {
      refusal_ = status.error();
    }
  }
  return !refusal_.has_value();
}

bool Hop::TakeBody(std::span<const std::byte> bytes) {
  if (!is_head_done_ || !IsSuccess(head_.status)) {
    n_dropped_ += bytes.size();
    return n_dropped_ <= kMaxDroppedBytes;
  }
  if (const Status status = sink_.on_body(bytes); !status.ok()) {
    refusal_ = status.error();
  }
  return !refusal_.has_value();
}

FetchResult::Kind KindOf(CURLcode code) {
  switch (code) {
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
      return FetchResult::Kind::kUnreachable;
    case CURLE_PARTIAL_FILE:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
      return FetchResult::Kind::kLost;
    default:
      return FetchResult::Kind::kRefused;
  }
}

FetchResult Hop::Outcome(CURLcode code, const std::string& url) const {
  using Kind = FetchResult::Kind;
  FetchResult result{.kind = Kind::kDone, .head = head_};
  if (refusal_) {
    result.kind = Kind::kRefused;
    result.error = *refusal_;
    return result;
  }
  if (was_kept_off_ && head_.status == 0) {
    result.kind = Kind::kRefused;
    result.error = Refuse(url, "an address that is not of the public network", "one that is");
    return result;
  }
  curl_off_t seconds = 0;
  if (curl_easy_getinfo(easy_.get(), CURLINFO_RETRY_AFTER, &seconds) == CURLE_OK && seconds > 0) {
    result.retry_after_s =
        static_cast<int>(std::min<curl_off_t>(seconds, std::numeric_limits<int>::max()));
  }
  // A body that nobody reads may end as it likes.
  const bool is_complete = code == CURLE_OK || (head_.status >= 300 && n_dropped_ > 0);
  if (is_complete && head_.status != 0) {
    return result;
  }
  result.kind = KindOf(code);
  // libcurl's own text has the time in it that a connection took to fail.
  const bool has_text = message_[0] != '\0' && code != CURLE_COULDNT_CONNECT;
  const char* said = has_text ? message_.data() : curl_easy_strerror(code);
  result.error = Refuse(url, RepairUtf8(said));
  return result;
}

/// Whether `url` may follow on one of `scheme`.
Result<Url> CheckRedirect(const std::string& url, const std::string& where,
                          const std::string& scheme) {
  FACET_ASSIGN(Url target, ParseUrl(url.substr(0, url.find('#')), where + ": redirect"));
  if (scheme == "https" && target.scheme != "https") {
    return Refuse(where, "a redirect from https to http", "https");
  }
  return target;
}

}  // namespace

FetchResult Fetch(const FetchRequest& request, const FetchSink& sink) {
  static const CURLcode kReady = curl_global_init(CURL_GLOBAL_DEFAULT);
  Result<Url> target = ParseUrl(request.url, request.url);
  if (kReady != CURLE_OK || !target.ok()) {
    return {.error = kReady != CURLE_OK ? Refuse(request.url, curl_easy_strerror(kReady))
                                        : target.error()};
  }
  const std::string origin = target->Origin();
  std::string url = request.url;
  FetchHead head;
  for (int n_redirects = 0; n_redirects <= request.max_redirects; ++n_redirects) {
    Hop hop(sink, std::move(head));
    FetchResult result =
        hop.Run(request, url, target->Origin() == origin ? request.token : std::string());
    if (result.kind != FetchResult::Kind::kDone || hop.redirect().empty()) {
      return result;
    }
    url = hop.redirect();
    head = {.linked_etag = std::move(result.head.linked_etag),
            .linked_size = std::move(result.head.linked_size)};
    target = CheckRedirect(url, request.url, target->scheme);
    if (!target.ok()) {
      return {.error = target.error()};
    }
  }
  return {.error = Refuse(request.url, fmt::format("more than {} redirects", request.max_redirects),
                          "the URL that they lead to")};
}

}  // namespace facet
