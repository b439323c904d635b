// SPDX-License-Identifier: Apache-2.0
// Lines typed at the terminal: connects the line editor to standard input and the screen.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "app/history.h"
#include "app/line_editor.h"
#include "app/terminal.h"

namespace facet {

class TerminalInput {
 public:
  enum class Outcome { kLine, kInterrupt, kEnd };

  /// `history` and `mode` outlive it. `mode` is kEdit while a line is read, and kReply afterwards.
  /// Null on a terminal without cursor movement (TERM=dumb): lines are read as they come.
  TerminalInput(const History* history, std::vector<std::string> completions, Style style,
                TerminalMode* mode);

  /// Waits for a whole input. Keys that follow it stay for the next call.
  Outcome ReadLine(std::string_view prompt, std::string* line);

 private:
  Outcome ReadPlainLine(std::string_view prompt, std::string* line);
  /// Feeds what was read; true when `outcome` is decided.
  bool Feed(std::string_view prompt, Outcome* outcome);
  void Draw(std::string_view prompt, bool at_end);
  void MoveToTop(std::string* out) const;
  void Suspend();

  LineEditor editor_;
  Style style_;
  TerminalMode* mode_;
  std::string pending_;  // read, not fed yet
  EditorScreen drawn_;
};

}  // namespace facet
