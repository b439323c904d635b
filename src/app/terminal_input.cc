// SPDX-License-Identifier: Apache-2.0
#include "app/terminal_input.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <utility>

#include "app/text_width.h"

namespace facet {
namespace {

constexpr int kEscapeTimeoutMs =
    50;  // Longer than between the bytes of one key, shorter than between keys.

void Print(std::string_view text) {
  [[maybe_unused]] const Status status = WriteAll(STDOUT_FILENO, text, "standard output");
}

int WidthOf(std::string_view row) {
  int width = 0;
  for (size_t pos = 0; pos < row.size();) {
    const size_t next = NextGrapheme(row, pos);
    width += GraphemeWidth(row.substr(pos, next - pos));
    pos = next;
  }
  return width;
}

enum class Wait { kBytes, kNothing, kEnd };

/// Waits for bytes and appends them. kNothing: the time ran out, or the terminal's size changed.
Wait WaitForBytes(int timeout_ms, std::string* bytes) {
  pollfd input{STDIN_FILENO, POLLIN, 0};
  const int ready = ::poll(&input, 1, timeout_ms);
  if (ready <= 0) {
    return ready == 0 || errno == EINTR ? Wait::kNothing : Wait::kEnd;
  }
  char buffer[4096];
  const ssize_t got = ::read(STDIN_FILENO, buffer, sizeof buffer);
  if (got < 0 && errno == EINTR) {
    return Wait::kNothing;
  }
  if (got <= 0) {
    return Wait::kEnd;
  }
  bytes->append(buffer, static_cast<size_t>(got));
  return Wait::kBytes;
}

}  // namespace

TerminalInput::TerminalInput(const History* history, std::vector<std::string> completions,
                             Style style, TerminalMode* mode)
    : editor_(history, std::move(completions)), style_(style), mode_(mode) {}

TerminalInput::Outcome TerminalInput::ReadLine(std::string_view prompt, std::string* line) {
  if (mode_ == nullptr) {
    return ReadPlainLine(prompt, line);
  }
  mode_->Set(TerminalMode::Kind::kEdit);
  Print("\x1b[?2004h");
  drawn_ = EditorScreen{{""}, 0, 0};
  Draw(prompt, false);
  Outcome outcome = Outcome::kEnd;
  while (!Feed(prompt, &outcome)) {
    const Wait wait = WaitForBytes(editor_.is_in_escape() ? kEscapeTimeoutMs : -1, &pending_);
    if (wait == Wait::kEnd) {
      break;
    }
    if (wait == Wait::kNothing) {
      editor_.EndEscape();
      TakeResize();
      Draw(prompt, false);
    }
  }
  if (outcome == Outcome::kLine) {
    Draw(prompt, true);
    *line = editor_.Take();
  }
  Print("\x1b[?2004l\n");
  mode_->Set(TerminalMode::Kind::kReply);
  return outcome;
}

TerminalInput::Outcome TerminalInput::ReadPlainLine(std::string_view prompt, std::string* line) {
  Print(prompt);
  size_t end = 0;
  while ((end = pending_.find('\n')) == std::string::npos) {
    if (WaitForBytes(-1, &pending_) == Wait::kEnd) {
      return Outcome::kEnd;
    }
  }
  *line = pending_.substr(0, end);
  pending_.erase(0, end + 1);
  return Outcome::kLine;
}

bool TerminalInput::Feed(std::string_view prompt, Outcome* outcome) {
  for (size_t i = 0; i < pending_.size(); ++i) {
    const LineEditor::Event event = editor_.Feed(pending_[i]);
    if (event == LineEditor::Event::kClearScreen) {
      Print("\x1b[H\x1b[2J");
      drawn_ = EditorScreen{{""}, 0, 0};
    } else if (event == LineEditor::Event::kSuspend) {
      Suspend();
    } else if (event != LineEditor::Event::kNone) {
      pending_.erase(0, i + 1);
      *outcome = event == LineEditor::Event::kSubmit      ? Outcome::kLine
                 : event == LineEditor::Event::kInterrupt ? Outcome::kInterrupt
                                                          : Outcome::kEnd;
      return true;
    }
  }
  if (!pending_.empty()) {
    pending_.clear();
    Draw(prompt, false);
  }
  return false;
}

void TerminalInput::MoveToTop(std::string* out) const {
  // A narrower window has wrapped the rows that are on it.
  const int columns = SizeOfTerminal(STDOUT_FILENO).columns;
  int n_up = drawn_.cursor_column / columns;
  for (int row = 0; row < drawn_.cursor_row; ++row) {
    n_up += 1 + std::max(0, WidthOf(drawn_.rows[static_cast<size_t>(row)]) - 1) / columns;
  }
  *out += "\r";
  if (n_up > 0) {
    *out += fmt::format("\x1b[{}A", n_up);
  }
}

void TerminalInput::Draw(std::string_view prompt, bool at_end) {
  const TerminalSize size = SizeOfTerminal(STDOUT_FILENO);
  EditorScreen screen = editor_.Render(prompt, size.columns, size.rows);
  std::string out;
  MoveToTop(&out);
  out += "\x1b[J";
  for (size_t row = 0; row < screen.rows.size(); ++row) {
    std::string_view text = screen.rows[row];
    out += row > 0 ? "\r\n" : "";
    if (row == 0 && text.starts_with(prompt)) {
      out += std::string(style_.bold) + std::string(prompt) + std::string(style_.reset);
      text.remove_prefix(prompt.size());
    }
    out += text;
  }
  const int n_below = static_cast<int>(screen.rows.size()) - 1 - screen.cursor_row;
  if (!at_end) {
    out += n_below > 0 ? fmt::format("\x1b[{}A\r", n_below) : "\r";
    out += screen.cursor_column > 0 ? fmt::format("\x1b[{}C", screen.cursor_column) : "";
  }
  Print(out);
  drawn_ = std::move(screen);
}

void TerminalInput::Suspend() {
  // The shell restores its own settings when the program stops; ours are set again on return.
  Print("\x1b[?2004l\n");
  std::raise(SIGTSTP);
  mode_->Set(TerminalMode::Kind::kEdit);
  Print("\x1b[?2004h");
  drawn_ = EditorScreen{{""}, 0, 0};
}

}  // namespace facet
