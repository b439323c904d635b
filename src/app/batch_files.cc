// SPDX-License-Identifier: Apache-2.0
#include "app/batch_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "app/batch_result.h"
#include "app/terminal.h"

namespace facet {
namespace {

constexpr size_t kReadBytes = size_t{256} << 10;

Error SystemError(const std::string& name, std::string_view action) {
  return Refuse(name, fmt::format("cannot {}: {}", action, std::strerror(errno)));
}

void CloseOwn(int file) {
  if (file > STDERR_FILENO) {
    ::close(file);
  }
}

}  // namespace

Result<LineReader> LineReader::Open(const std::string& path) {
  if (path == "-") {
    return LineReader("standard input", STDIN_FILENO);
  }
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    return SystemError(path, "open");
  }
  return LineReader(path, file);
}

LineReader::LineReader(LineReader&& other) noexcept
    : name_(std::move(other.name_)),
      file_(std::exchange(other.file_, -1)),
      buffer_(std::move(other.buffer_)),
      begin_(other.begin_),
      n_searched_(other.n_searched_),
      n_lines_(other.n_lines_),
      is_skipping_(other.is_skipping_),
      is_at_end_(other.is_at_end_) {}

LineReader::~LineReader() { CloseOwn(file_); }

/// Reads more bytes; false when none came in time.
Result<bool> LineReader::Fill(int timeout_ms) {
  buffer_.erase(0, begin_);
  begin_ = 0;
  pollfd waiting{file_, POLLIN, 0};
  const int n_ready = ::poll(&waiting, 1, timeout_ms);
  if (n_ready == 0 || (n_ready < 0 && errno == EINTR)) {
    return false;
  }
  const size_t n_before = buffer_.size();
  buffer_.resize(n_before + kReadBytes);
  const ssize_t got = ::read(file_, buffer_.data() + n_before, kReadBytes);
  buffer_.resize(n_before + (got > 0 ? static_cast<size_t>(got) : 0));
  if (got < 0) {
    return errno == EINTR || errno == EAGAIN ? Result<bool>(false) : SystemError(name_, "read");
  }
  is_at_end_ = got == 0;
  return true;
}

/// The `size` bytes from begin_ on as a line.
LineReader::Line LineReader::Take(size_t size, bool is_ended) {
  Line line{Line::Kind::kText, ++n_lines_, buffer_.substr(begin_, size), is_ended};
  begin_ += size + (is_ended ? 1 : 0);
  n_searched_ = 0;
  if (std::exchange(is_skipping_, false) || size > kMaxLineBytes) {
    line.kind = Line::Kind::kTooLong;
    line.text.clear();
  }
  return line;
}

Result<LineReader::Line> LineReader::Next(int timeout_ms) {
  while (true) {
    const size_t end = buffer_.find('\n', begin_ + n_searched_);
    if (end != std::string::npos) {
      return Take(end - begin_, true);
    }
    n_searched_ = buffer_.size() - begin_;
    if (is_at_end_) {
      return n_searched_ == 0 && !is_skipping_ ? Line() : Take(n_searched_, false);
    }
    if (n_searched_ > kMaxLineBytes) {
      is_skipping_ = true;
      begin_ = buffer_.size();
      n_searched_ = 0;
    }
    FACET_ASSIGN(const bool has_more, Fill(timeout_ms));
    if (!has_more) {
      return Line{Line::Kind::kWaiting};
    }
  }
}

Result<ResultFile> ResultFile::Open(const std::string& path, bool is_resumed) {
  if (path.empty()) {
    return ResultFile("standard output", STDOUT_FILENO);
  }
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file < 0) {
    return SystemError(path, "create");
  }
  ResultFile results(path, file);
  struct stat info {};
  if (::fstat(file, &info) != 0) {
    return SystemError(path, "look at");
  }
  if (S_ISREG(info.st_mode) && info.st_size > 0) {
    if (!is_resumed) {
      return Refuse(path, fmt::format("{} bytes are there already", info.st_size),
                    "a new file, or --resume");
    }
    FACET_RETURN_IF_ERROR(results.Resume());
  }
  return results;
}

ResultFile::ResultFile(ResultFile&& other) noexcept
    : name_(std::move(other.name_)),
      file_(std::exchange(other.file_, -1)),
      answered_(std::move(other.answered_)) {}

ResultFile::~ResultFile() { CloseOwn(file_); }

Status ResultFile::Resume() {
  FACET_ASSIGN(LineReader reader, LineReader::Open(name_));
  off_t n_whole = 0;  // bytes of whole lines
  while (true) {
    FACET_ASSIGN(const LineReader::Line line, reader.Next(-1));
    if (line.kind == LineReader::Line::Kind::kEnd) {
      return {};
    }
    if (!line.is_ended) {
      return ::ftruncate(file_, n_whole) == 0 ? Status() : Status(SystemError(name_, "cut"));
    }
    if (line.kind == LineReader::Line::Kind::kTooLong) {
      return Refuse(fmt::format("{}: line {}", name_, line.number), "a line that is too long",
                    fmt::format("at most {} bytes", LineReader::kMaxLineBytes));
    }
    n_whole += static_cast<off_t>(line.text.size()) + 1;
    const std::string where = fmt::format("{}: line {}", name_, line.number);
    FACET_ASSIGN(const Json result, ParseJson(line.text, where));
    Result<std::string> id = AnsweredId(result);
    if (!id.ok()) {
      return Refuse(where, id.error().found, id.error().wanted);
    }
    if (!id->empty()) {
      answered_.insert(*std::move(id));
    }
  }
}

Status ResultFile::Write(const Json& line) { return WriteAll(file_, line.Dump() + "\n", name_); }

}  // namespace facet
