// SPDX-License-Identifier: Apache-2.0
// The files of a batch. Lines are read one at a time, so that a file of any size may be given, and
// without blocking, so that a slow writer of a pipe holds up no reply. Results are appended, a
// whole line at a time, so that a run that was cut can be resumed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_set>

#include "base/json.h"
#include "base/status.h"

namespace facet {

/// Reads lines; not for several threads.
class LineReader {
 public:
  static constexpr size_t kMaxLineBytes = size_t{16} << 20;

  struct Line {
    enum class Kind {
      kText,
      kTooLong,  ///< more than kMaxLineBytes, which are skipped
      kWaiting,  ///< nothing has come in time
      kEnd
    };
    Kind kind = Kind::kEnd;
    int64_t number = 0;     ///< from 1; of kText and kTooLong
    std::string text = {};  ///< without the line break
    bool is_ended = false;  ///< by a line break, not by the end of the file
  };

  /// "-" is standard input.
  static Result<LineReader> Open(const std::string& path);
  LineReader(LineReader&& other) noexcept;
  LineReader& operator=(LineReader&&) = delete;
  ~LineReader();

  /// The next line; waits for it at most `timeout_ms`.
  Result<Line> Next(int timeout_ms);

 private:
  LineReader(std::string name, int file) : name_(std::move(name)), file_(file) {}

  Result<bool> Fill(int timeout_ms);
  Line Take(size_t size, bool is_ended);

  std::string name_;
  int file_;
  std::string buffer_;
  size_t begin_ = 0;       // of the next line in the buffer
  size_t n_searched_ = 0;  // bytes from begin_ on that hold no line break
  int64_t n_lines_ = 0;
  bool is_skipping_ = false;  // the rest of a line that is too long
  bool is_at_end_ = false;
};

/// Where results go.
class ResultFile {
 public:
  /// Empty: standard output. A file that has something already is refused unless `is_resumed`; then
  /// its results are read, and a last line that was cut off is removed.
  static Result<ResultFile> Open(const std::string& path, bool is_resumed);
  ResultFile(ResultFile&& other) noexcept;
  ResultFile& operator=(ResultFile&&) = delete;
  ~ResultFile();

  /// Writes one line.
  Status Write(const Json& line);
  /// Ids (BatchKey::IdText) of the replies that were there at first.
  [[nodiscard]] const std::unordered_set<std::string>& answered() const { return answered_; }

 private:
  ResultFile(std::string name, int file) : name_(std::move(name)), file_(file) {}

  Status Resume();

  std::string name_;
  int file_;
  std::unordered_set<std::string> answered_;
};

}  // namespace facet
