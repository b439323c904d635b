// SPDX-License-Identifier: Apache-2.0
#include "net/model_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/ascii.h"
#include "base/sha256.h"
#include "base/utf8.h"

namespace facet {
namespace {

constexpr std::string_view kHubPrefix = "hf:";
constexpr std::string_view kHubForm = "hf:OWNER/REPOSITORY[@REVISION][/FILE or :TAG]";
constexpr size_t kMaxNameBytes = 4096;
constexpr size_t kMaxPathBytes = 1024;
constexpr size_t kMaxPartBytes = 200;  // File systems take 255, and ".part.json" is added.
constexpr size_t kMaxWordBytes = 96;   // Of an owner, a repository, a revision or a tag.

bool IsAlphanumeric(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

bool IsWordCharacter(char c) { return IsAlphanumeric(c) || c == '.' || c == '_' || c == '-'; }

bool IsWord(std::string_view text) {
  return text.size() <= kMaxWordBytes && IsSafeRelativePath(text) &&
         std::all_of(text.begin(), text.end(), IsWordCharacter);
}

std::string Quoted(std::string_view text) { return fmt::format("\"{}\"", RepairUtf8(text)); }

/// Cuts `text` at the last `separator`; returns what stood behind it, or nothing.
std::string_view CutTail(std::string_view* text, char separator) {
  const size_t at = text->rfind(separator);
  if (at == std::string_view::npos) {
    return {};
  }
  const std::string_view tail = text->substr(at + 1);
  *text = text->substr(0, at);
  return tail;
}

Result<ModelName> ParseHubName(std::string_view text) {
  const Error refusal = Refuse(Quoted(text), "not a name of a model", std::string(kHubForm));
  std::string_view rest = text.substr(kHubPrefix.size());
  const size_t slash = rest.find('/');
  if (slash == std::string_view::npos) {
    return refusal;
  }
  ModelName name;
  name.owner = rest.substr(0, slash);
  rest.remove_prefix(slash + 1);
  const size_t file_slash = rest.find('/');
  std::string_view repository = rest.substr(0, file_slash);
  if (file_slash != std::string_view::npos) {
    name.file = rest.substr(file_slash + 1);
    if (!IsSafeRelativePath(name.file)) {
      return refusal;
    }
  } else if (repository.find(':') != std::string_view::npos) {
    name.tag = CutTail(&repository, ':');
    if (!IsWord(name.tag)) {
      return refusal;
    }
  }
  if (repository.find('@') != std::string_view::npos) {
    name.revision = CutTail(&repository, '@');
  }
  name.repository = repository;
  if (!IsWord(name.owner) || !IsWord(name.repository) || !IsWord(name.revision)) {
    return refusal;
  }
  return name;
}

bool IsHost(std::string_view text) {
  const bool is_ip6 = text.size() > 2 && text.front() == '[' && text.back() == ']';
  if (is_ip6) {
    text = text.substr(1, text.size() - 2);
  }
  return !text.empty() && text.size() <= 253 && text.find("..") == std::string_view::npos &&
         text.front() != '.' && std::all_of(text.begin(), text.end(), [is_ip6](char c) {
           return IsAlphanumeric(c) || c == '.' || c == '-' || (is_ip6 && c == ':');
         });
}

bool IsPort(std::string_view text) {
  unsigned port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() && port > 0 && port < 65536;
}

bool IsAuthority(std::string_view text) {
  const size_t colon = text.rfind(':');
  const bool has_port = colon != std::string_view::npos && !text.ends_with(']');
  return has_port ? IsHost(text.substr(0, colon)) && IsPort(text.substr(colon + 1)) : IsHost(text);
}

/// Bytes that no file system and no shell minds; the others become '_'.
std::string PlainPart(std::string_view part) {
  std::string plain(part);
  for (char& c : plain) {
    c = IsWordCharacter(c) || c == '+' || c == '=' ? c : '_';
  }
  return plain;
}

/// The folder of a server: ':' of a port is no character for paths that go into lists of paths.
std::string HostFolder(const Url& url) { return PlainPart(url.authority); }

/// All but the unreserved characters of RFC 3986; `kept` stay too.
std::string PercentEncoded(std::string_view text, std::string_view kept) {
  std::string encoded;
  for (const char c : text) {
    const bool is_plain = IsWordCharacter(c) || c == '~' || kept.find(c) != std::string_view::npos;
    encoded += is_plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<uint8_t>(c));
  }
  return encoded;
}

std::string RepositoryPath(const ModelName& name) {
  return fmt::format("{}/{}", name.owner, name.repository);
}

/// '@' is in no repository's name, so a revision is never taken for another repository.
std::string WithRevision(const ModelName& name) {
  return RepositoryPath(name) + (name.revision == "main" ? "" : "@" + name.revision);
}

}  // namespace

bool IsModelName(std::string_view text) {
  return text.starts_with(kHubPrefix) || text.starts_with("http://") ||
         text.starts_with("https://");
}

Result<ModelName> ParseModelName(std::string_view text) {
  if (text.size() > kMaxNameBytes) {
    return Refuse("name of a model", fmt::format("{} bytes", text.size()),
                  fmt::format("at most {}", kMaxNameBytes));
  }
  if (text.starts_with(kHubPrefix)) {
    return ParseHubName(text);
  }
  if (!IsModelName(text)) {
    return Refuse(Quoted(text), "not a name of a model",
                  fmt::format("https://HOST/PATH/FILE or {}", kHubForm));
  }
  ModelName name;
  name.url = text;
  FACET_RETURN_IF_ERROR(CachePathOfUrl(name.url));
  return name;
}

Result<Url> ParseUrl(std::string_view text, const std::string& where) {
  const auto refuse = [&where](std::string_view found, std::string_view wanted) {
    return Refuse(where, std::string(found), std::string(wanted));
  };
  if (text.size() > kMaxNameBytes) {
    return refuse(fmt::format("{} bytes", text.size()), fmt::format("at most {}", kMaxNameBytes));
  }
  if (!std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < '\x7f'; })) {
    return refuse("a space, a control or a character beyond ASCII", "them as %XX");
  }
  Url url;
  const size_t colon = text.find("://");
  url.scheme = ToLowerAscii(text.substr(0, colon));
  if (colon == std::string_view::npos || (url.scheme != "http" && url.scheme != "https")) {
    return refuse("another scheme", "http:// or https://");
  }
  text.remove_prefix(colon + 3);
  if (text.find('#') != std::string_view::npos) {
    return refuse("a fragment (#)", "none");
  }
  const size_t question = std::min(text.find('?'), text.size());
  url.query = text.substr(std::min(question + 1, text.size()));
  text = text.substr(0, question);
  const size_t slash = std::min(text.find('/'), text.size());
  url.authority = ToLowerAscii(text.substr(0, slash));
  url.path = slash < text.size() ? text.substr(slash) : "/";
  if (url.authority.find('@') != std::string::npos) {
    return refuse("a user name in the URL", "none");
  }
  if (url.authority.size() > kMaxPartBytes) {  // It names a folder of the cache.
    return refuse(fmt::format("a host of {} bytes", url.authority.size()),
                  fmt::format("at most {}", kMaxPartBytes));
  }
  if (!IsAuthority(url.authority)) {
    return refuse(fmt::format("host \"{}\"", url.authority), "HOST or HOST:PORT");
  }
  return url;
}

bool IsSafeRelativePath(std::string_view path) {
  if (path.size() > kMaxPathBytes || !IsValidUtf8(path) || path.ends_with(".part") ||
      path.ends_with(".part.json")) {
    return false;
  }
  while (true) {
    const size_t slash = std::min(path.find('/'), path.size());
    const std::string_view part = path.substr(0, slash);
    const bool is_plain = std::all_of(part.begin(), part.end(), [](char c) {
      return static_cast<unsigned char>(c) >= ' ' && c != '\x7f' && c != '\\';
    });
    if (part.empty() || part == "." || part == ".." || part.size() > kMaxPartBytes || !is_plain) {
      return false;
    }
    if (slash == path.size()) {
      return true;
    }
    path.remove_prefix(slash + 1);
  }
}

Result<std::string> CachePathOfUrl(const std::string& text) {
  FACET_ASSIGN(const Url url, ParseUrl(text, Quoted(text)));
  const std::string path = url.path.substr(1);
  if (!IsSafeRelativePath(path)) {
    return Refuse(Quoted(text), fmt::format("path \"/{}\"", path), "the path of a file");
  }
  std::string plain;
  for (const char c : path) {
    plain += c == '/' ? "/" : PlainPart(std::string_view(&c, 1));
  }
  const size_t file = plain.rfind('/') + 1;  // 0 when there is no folder.
  // What the path alone does not tell apart, a folder named after the whole URL does.
  if (plain != path || !url.query.empty() || url.scheme != "https") {
    plain.insert(file, Sha256Hex(text).substr(0, 16) + "/");
  }
  return fmt::format("url/{}/{}", HostFolder(url), plain);
}

std::string CachePathOfRepository(const ModelName& name, const Url& endpoint) {
  return fmt::format("hf/{}/{}", HostFolder(endpoint), WithRevision(name));
}

std::string CachePathOfChoice(const ModelName& name, const Url& endpoint) {
  return fmt::format("chosen/{}/{}@{}", HostFolder(endpoint), WithRevision(name), name.tag);
}

std::string FileUrl(const ModelName& name, const std::string& file, const std::string& endpoint) {
  return fmt::format("{}/{}/resolve/{}/{}", endpoint, RepositoryPath(name), name.revision,
                     PercentEncoded(file, "/"));
}

std::string ListingUrl(const ModelName& name, const std::string& endpoint) {
  // blobs: sizes and digests too.
  return fmt::format("{}/api/models/{}/revision/{}?blobs=true", endpoint, RepositoryPath(name),
                     name.revision);
}

Result<std::vector<std::string>> PartsOf(const std::string& file) {
  // NAME-00001-of-00003.gguf
  constexpr std::string_view kEnding = "-00000-of-00000.gguf";
  constexpr size_t kNumber = 1;
  constexpr size_t kCount = 10;
  constexpr int kMaxParts = 1000;
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (file.size() <= kEnding.size()) {
    return std::vector<std::string>{file};
  }
  const std::string stem = file.substr(0, file.size() - kEnding.size());
  const std::string ending = file.substr(stem.size());
  for (size_t i = 0; i < ending.size(); ++i) {
    if (kEnding[i] == '0' ? !is_digit(ending[i]) : ending[i] != kEnding[i]) {
      return std::vector<std::string>{file};
    }
  }
  int number = 0;
  int count = 0;
  std::from_chars(&ending[kNumber], &ending[kNumber] + 5, number);
  std::from_chars(&ending[kCount], &ending[kCount] + 5, count);
  if (number < 1 || number > count || count > kMaxParts) {
    return Refuse(Quoted(file), fmt::format("part {} of {}", number, count),
                  fmt::format("1 to the count, which is at most {}", kMaxParts));
  }
  std::vector<std::string> parts;
  parts.reserve(static_cast<size_t>(count));
  for (int part = 1; part <= count; ++part) {
    parts.push_back(fmt::format("{}-{:05}-of-{:05}.gguf", stem, part, count));
  }
  return parts;
}

}  // namespace facet
