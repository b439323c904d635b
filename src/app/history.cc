// SPDX-License-Identifier: Apache-2.0
#include "app/history.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "app/terminal.h"
#include "base/file.h"
#include "base/utf8.h"

namespace facet {
namespace {

constexpr mode_t kOwnerOnly = 0600;
constexpr uint64_t kMaxFileBytes = uint64_t{64} << 20;

std::string Escape(std::string_view entry) {
  std::string line;
  for (const char c : entry) {
    line += c == '\\' ? "\\\\" : c == '\n' ? "\\n" : std::string(1, c);
  }
  return line + "\n";
}

std::string Unescape(std::string_view line) {
  std::string entry;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\\' && i + 1 < line.size()) {
      ++i;
      entry += line[i] == 'n' ? '\n' : line[i];
    } else {
      entry += line[i];
    }
  }
  return RepairUtf8(entry);
}

Error Failure(const std::string& path, std::string_view action) {
  return Refuse(path, fmt::format("cannot {}: {}", action, std::strerror(errno)));
}

Status WriteTo(const std::string& path, int flags, std::string_view bytes) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | flags, kOwnerOnly);
  if (file < 0) {
    return Failure(path, "write");
  }
  Status status = WriteAll(file, bytes, path);
  ::close(file);
  return status;
}

/// mkdir -p of the folder that `path` lies in.
Status MakeFolderOf(const std::string& path) {
  for (size_t slash = path.find('/', 1); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    const std::string folder = path.substr(0, slash);
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
      return Failure(folder, "make the folder");
    }
  }
  return {};
}

}  // namespace

Result<History> History::Open(const std::string& path) {
  FACET_RETURN_IF_ERROR(MakeFolderOf(path));
  History history;
  history.path_ = path;
  if (!FileExists(path)) {
    return history;
  }
  FACET_ASSIGN(const std::string text, ReadFile(path, kMaxFileBytes));
  for (std::string_view rest = text; !rest.empty();) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    if (end > 0) {
      history.entries_.push_back(Unescape(rest.substr(0, end)));
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  if (history.entries_.size() > kMaxEntries) {
    history.entries_.erase(history.entries_.begin(), history.entries_.end() - kMaxEntries);
    std::string all;
    for (const std::string& entry : history.entries_) {
      all += Escape(entry);
    }
    FACET_RETURN_IF_ERROR(WriteTo(path, O_TRUNC, all));
  }
  return history;
}

Status History::Add(const std::string& entry) {
  const bool is_blank = entry.find_first_not_of(" \t\n") == std::string::npos;
  if (is_blank || entry.size() > kMaxEntryBytes ||
      (!entries_.empty() && entries_.back() == entry)) {
    return {};
  }
  entries_.push_back(entry);
  if (path_.empty()) {
    return {};
  }
  return WriteTo(path_, O_APPEND, Escape(entry));
}

}  // namespace facet
