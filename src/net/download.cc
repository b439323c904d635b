// SPDX-License-Identifier: Apache-2.0
#include "net/download.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "base/bytes.h"
#include "base/file.h"
#include "base/sha256.h"
#include "net/part_file.h"
#include "net/retry.h"

namespace facet {
namespace {

constexpr int kOk = 200;
constexpr int kPartial = 206;
constexpr int kNotSatisfiable = 416;

std::optional<uint64_t> ParseSize(std::string_view text) {
  uint64_t size = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return size;
}

/// "bytes FIRST-LAST/TOTAL"; "bytes */TOTAL" has no range, "bytes FIRST-LAST/*" no total.
struct ContentRange {
  std::optional<uint64_t> first;
  std::optional<uint64_t> last;
  std::optional<uint64_t> total;

  static ContentRange Parse(std::string_view text) {
    constexpr std::string_view kUnit = "bytes ";
    const size_t slash = text.find('/');
    if (!text.starts_with(kUnit) || slash == std::string_view::npos) {
      return {};
    }
    const std::string_view range = text.substr(kUnit.size(), slash - kUnit.size());
    const size_t dash = std::min(range.find('-'), range.size());
    return {.first = ParseSize(range.substr(0, dash)),
            .last = ParseSize(range.substr(std::min(dash + 1, range.size()))),
            .total = ParseSize(text.substr(slash + 1))};
  }
};

bool IsStrong(std::string_view etag) { return etag.size() > 2 && etag.front() == '"'; }

/// What tells one version of the file from another, exactly; empty when the server gives nothing
/// that does.
std::string ValidatorOf(const FetchHead& head) {
  return IsStrong(head.etag) ? head.etag : head.last_modified;
}

/// The digest in an ETag: 64 hexadecimal digits, quoted or not; empty for any other.
std::string DigestOf(std::string_view etag) {
  if (etag.size() >= 2 && etag.front() == '"' && etag.back() == '"') {
    etag = etag.substr(1, etag.size() - 2);
  }
  return IsSha256Hex(etag) ? std::string(etag) : std::string();
}

class Downloader {
 public:
  Downloader(const DownloadRequest& request, const DownloadHooks& hooks, PartFile* part)
      : request_(request), hooks_(hooks), part_(*part) {}
  Status Run();

 private:
  Status OnHead(const FetchHead& head);
  Status OnBody(std::span<const std::byte> bytes);
  /// What the answer's size must be, from all that tells it.
  [[nodiscard]] Result<std::optional<uint64_t>> CheckSize(const FetchHead& head) const;
  [[nodiscard]] Status CheckKind(const FetchHead& head) const;
  [[nodiscard]] Result<std::optional<uint64_t>> CheckRange(const FetchHead& head) const;
  /// Whether the answer to a request for the rest shows that the beginning is of no use.
  [[nodiscard]] bool IsOtherVersion(const FetchHead& head) const;
  Status Finish();
  [[nodiscard]] Error Refusal(std::string found, std::string wanted) const {
    return Refuse(request_.url, std::move(found), std::move(wanted));
  }

  const DownloadRequest& request_;
  const DownloadHooks& hooks_;
  PartFile& part_;
  uint64_t offset_ = 0;            // of the present try
  std::optional<uint64_t> total_;  // of the whole file
  uint64_t limit_ = 0;             // total, or what the disk has room for
  bool is_stale_ = false;          // the beginning is of another version
};

Status Downloader::Run() {
  Retry retry(request_.url, !request_.token.empty(), hooks_);
  while (true) {
    offset_ = part_.n_bytes();
    is_stale_ = false;
    FetchResult result =
        Fetch({.url = request_.url,
               .token = request_.token,
               .offset = offset_,
               .if_range = part_.origin().validator},
              {.on_head = [this](const FetchHead& head) { return OnHead(head); },
               .on_body = [this](std::span<const std::byte> bytes) { return OnBody(bytes); }});
    const bool is_done = result.kind == FetchResult::Kind::kDone;
    const int status = result.head.status;
    if (is_done && status == kNotSatisfiable && offset_ > 0) {
      // Nothing follows: either everything is there, or it was the beginning of something else.
      total_ = ContentRange::Parse(result.head.content_range).total;
      if (total_ == offset_ && part_.origin().size.value_or(offset_) == offset_) {
        return Finish();
      }
      is_stale_ = true;
    }
    if (is_stale_) {
      FACET_RETURN_IF_ERROR(part_.Begin({}, false));
      result.kind = FetchResult::Kind::kLost;
      result.error = Refuse("", "the server has another version by now");
    } else if (is_done && (status == kOk || status == kPartial)) {
      return Finish();
    }
    FACET_RETURN_IF_ERROR(retry.Next(result, part_.n_bytes()));
  }
}

Status Downloader::CheckKind(const FetchHead& head) const {
  if (!head.content_encoding.empty() && head.content_encoding != "identity") {
    return Refusal(fmt::format("Content-Encoding \"{}\"", head.content_encoding), "none");
  }
  if (head.content_type.starts_with("text/html")) {
    return Refusal("a web page (text/html)",
                   "a file (where a file's page has /blob/ in its URL, the file has /resolve/)");
  }
  return {};
}

Result<std::optional<uint64_t>> Downloader::CheckRange(const FetchHead& head) const {
  const ContentRange range = ContentRange::Parse(head.content_range);
  const bool is_rest = offset_ > 0 && range.first == offset_ && range.last >= offset_ &&
                       (!range.total || *range.last + 1 == *range.total) &&
                       (!head.content_length || *head.content_length == *range.last + 1 - offset_);
  if (!is_rest) {
    return Refusal(fmt::format("Content-Range \"{}\"", head.content_range),
                   offset_ > 0 ? fmt::format("bytes from {} to the end", offset_) : "none");
  }
  return std::optional<uint64_t>(*range.last + 1);
}

Result<std::optional<uint64_t>> Downloader::CheckSize(const FetchHead& head) const {
  std::optional<uint64_t> total = head.content_length;
  if (head.status == kPartial) {
    FACET_ASSIGN(total, CheckRange(head));
  }
  std::optional<uint64_t> wanted = request_.size ? request_.size : ParseSize(head.linked_size);
  if (head.status == kPartial && !wanted) {
    wanted = part_.origin().size;
  }
  if (total && wanted && *total != *wanted) {
    return Refusal(fmt::format("{} bytes", *total), fmt::format("{}", *wanted));
  }
  return total ? total : wanted;
}

bool Downloader::IsOtherVersion(const FetchHead& head) const {
  const std::string validator = ValidatorOf(head);
  return head.status == kPartial && offset_ > 0 && !validator.empty() &&
         validator != part_.origin().validator;
}

Status Downloader::OnHead(const FetchHead& head) {
  if (head.status != kOk && head.status != kPartial) {
    return {};
  }
  if (IsOtherVersion(head)) {
    is_stale_ = true;
    return Refusal("the rest of another version", "of the same");
  }
  FACET_RETURN_IF_ERROR(CheckKind(head));
  FACET_ASSIGN(total_, CheckSize(head));
  const bool is_resumed = head.status == kPartial;
  PartOrigin origin{.url = request_.url,
                    .validator = is_resumed ? part_.origin().validator : ValidatorOf(head),
                    .size = total_,
                    .sha256 = DigestOf(head.linked_etag)};
  if (is_resumed && origin.sha256.empty()) {
    origin.sha256 = part_.origin().sha256;
  }
  FACET_RETURN_IF_ERROR(part_.Begin(std::move(origin), is_resumed));
  FACET_ASSIGN(const uint64_t n_free, part_.FreeBytes());
  const uint64_t n_left = total_.value_or(0) - (total_ ? part_.n_bytes() : 0);
  if (n_left > n_free) {
    return Refusal(fmt::format("{} bytes to come, and the disk has {} left", n_left, n_free),
                   "more room");
  }
  limit_ = total_.value_or(part_.n_bytes() + n_free);
  return {};
}

Status Downloader::OnBody(std::span<const std::byte> bytes) {
  if (bytes.size() > limit_ - part_.n_bytes()) {
    return Refusal(fmt::format("more than {} bytes", limit_),
                   total_ ? "not more than were announced" : "what the disk has room for");
  }
  FACET_RETURN_IF_ERROR(part_.Add(bytes));
  hooks_.on_progress(part_.n_bytes(), total_.value_or(0));
  return {};
}

Status Downloader::Finish() {
  const std::optional<uint64_t> wanted = request_.size ? request_.size : total_;
  if (wanted && part_.n_bytes() != *wanted) {
    return Refusal(fmt::format("{} bytes", part_.n_bytes()), fmt::format("{}", *wanted));
  }
  const std::string& digest = request_.sha256.empty() ? part_.origin().sha256 : request_.sha256;
  const std::string found = part_.Sha256Hex();
  if (!digest.empty() && found != digest) {
    part_.Discard();
    return Refusal("sha256 " + found, digest);
  }
  return part_.Commit();
}

}  // namespace

Status Download(const DownloadRequest& request, const DownloadHooks& hooks) {
  if (FileExists(request.path)) {
    return {};
  }
  FACET_ASSIGN(PartFile part, PartFile::Open(request.path, request.url));
  if (FileExists(request.path)) {
    return {};  // Another process ended its work while this one came to the lock.
  }
  return Downloader(request, hooks, &part).Run();
}

Result<std::string> DownloadText(const std::string& url, const std::string& token,
                                 size_t limit_bytes, const DownloadHooks& hooks) {
  Retry retry(url, !token.empty(), hooks);
  while (true) {
    std::string text;
    const FetchResult result =
        Fetch({.url = url, .token = token, .if_range = {}},
              {.on_head = [](const FetchHead&) { return Status(); },
               .on_body = [&](std::span<const std::byte> bytes) -> Status {
                 if (bytes.size() > limit_bytes - text.size()) {
                   return Refuse(url, fmt::format("more than {} bytes", limit_bytes), "fewer");
                 }
                 text += AsText(bytes);
                 return {};
               }});
    if (result.kind == FetchResult::Kind::kDone && result.head.status == kOk) {
      return text;
    }
    FACET_RETURN_IF_ERROR(retry.Next(result, 0));
  }
}

}  // namespace facet
