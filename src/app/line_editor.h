// SPDX-License-Identifier: Apache-2.0
// The editor of the chat's input as a state machine: bytes from a terminal go in, text, cursor and
// screen rows come out. It knows no terminal, so every key is tested without one; terminal_input.h
// connects it.
//
// Enter submits; a line that ends in \ goes on, and so does a text that begins with """ until the
// next """. Alt-Enter and Ctrl-J break the line. Pasted text never submits.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "app/history.h"

namespace facet {

/// What the terminal is to show. Rows fit the width that was asked for; the cursor counts from 0.
struct EditorScreen {
  std::vector<std::string> rows;
  int cursor_row = 0;
  int cursor_column = 0;
};

class LineEditor {
 public:
  enum class Event { kNone, kSubmit, kInterrupt, kEnd, kClearScreen, kSuspend };

  /// `history` may be null and outlives the editor; `completions` are words that Tab completes at
  /// the beginning.
  LineEditor(const History* history, std::vector<std::string> completions);

  /// Takes one byte. kSubmit: Take() has the text. kInterrupt: Ctrl-C on an empty line (on a text
  /// it empties the line).
  Event Feed(char byte);
  /// Nothing came for a while: a lone ESC is forgotten.
  void EndEscape();
  [[nodiscard]] bool is_in_escape() const {
    return state_ != State::kGround && state_ != State::kPaste;
  }

  /// The submitted text, without the marks of continuation; the editor is empty afterwards.
  std::string Take();

  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] size_t cursor() const { return cursor_; }

  /// At least 8 columns and 1 row. When the text needs more than `max_rows` rows, those around the
  /// cursor.
  [[nodiscard]] EditorScreen Render(std::string_view prompt, int columns, int max_rows) const;

 private:
  enum class State { kGround, kEscape, kCsi, kSs3, kPaste };

  Event OnControl(char byte);
  void OnEscape(char byte);
  void OnSequence(char final_byte);
  void OnText(char byte);
  Event OnEnter();
  void OnPaste(char byte);

  void Insert(std::string_view text);
  void Erase(size_t begin, size_t end);  ///< keeps what was erased for Ctrl-Y
  void DeleteBack();
  void DeleteForward();
  void MoveVertically(int direction);
  void ShowHistory(int direction);
  void Complete();
  [[nodiscard]] size_t LineBegin() const;
  [[nodiscard]] size_t LineEnd() const;
  [[nodiscard]] size_t WordBegin() const;
  [[nodiscard]] size_t WordEnd() const;

  const History* history_;
  std::vector<std::string> completions_;
  std::string text_;
  size_t cursor_ = 0;     // byte position in text_, at a border of grapheme clusters
  std::string partial_;   // bytes of a character that is not complete
  std::string sequence_;  // of an escape sequence, after its introducer
  std::string killed_;
  std::string draft_;       // what was typed before the history was looked at
  size_t history_pos_ = 0;  // entries back from the newest; 0: the draft
  State state_ = State::kGround;
  std::string paste_;
};

}  // namespace facet
