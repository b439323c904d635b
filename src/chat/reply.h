// SPDX-License-Identifier: Apache-2.0
// The model's tokens split into what a client sees: content, thought and tool calls. Works on token
// ids, because markup is told from text that looks like it by the token alone. What has been handed
// out is never taken back, so the joined deltas of a streamed reply are the whole reply.
// docs/chat-format.md describes the grammar.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/utf8.h"
#include "text/vocab.h"

namespace facet {

/// A piece of the reply. Text is valid UTF-8 and ends at a character.
struct ReplyDelta {
  enum class Kind { kContent, kThought, kCall };
  Kind kind;
  /// kCall: the whole text between the marks of a call, `call:NAME{...}`, with the string marks
  /// `<|"|>` written out.
  std::string text;

  bool operator==(const ReplyDelta&) const = default;
};

/// One for each reply; not for several threads.
///
/// Joined thoughts are without white space at both ends. White space that begins the content is
/// held until more follows, so that content of white space only is none. All other text appears
/// once, in order. Tolerated: a thought anywhere, opened twice, without its header, empty or never
/// closed; surplus closing marks; a repeated turn header; a call that is not closed, or inside a
/// thought.
class ReplySplitter {
 public:
  /// The vocabulary must outlive it; it may lack any of the marks. `starts_in_thought`: the prompt
  /// ended in an opened thought (EndsInOpenThought).
  ReplySplitter(const Vocab& vocab, bool starts_in_thought);

  /// Adds a token of the vocabulary with the bytes that it stands for; returns what can be handed
  /// out now. Bytes of control tokens are not read.
  std::vector<ReplyDelta> Push(int id, std::string_view bytes);
  /// The end of the reply: what was held back, also a call that is not closed.
  std::vector<ReplyDelta> Finish();

 private:
  using Kind = ReplyDelta::Kind;

  void BeginThought();
  void EndThought();
  void BeginCall();
  void EndCall();
  void BeginTurn();
  void EndTurn();
  /// Text up to here is complete: a mark follows, or the end.
  void EndText();
  /// Whole characters in the present mode, of which the head may be a header.
  void AddText(std::string_view text);
  void AddContent(std::string_view text);
  void AddThought(std::string_view text);
  void Emit(Kind kind, std::string_view text);

  // Ids of the marks, or -1.
  int channel_open_;
  int channel_close_;
  int call_open_;
  int call_close_;
  int response_open_;
  int response_close_;
  int turn_open_;
  int turn_close_;
  int quote_;
  const Vocab* vocab_;

  Kind mode_ = Kind::kContent;
  Kind around_call_ = Kind::kContent;  // the mode to go back to after a call
  std::string_view header_;            // what may come first and is no text; empty: nothing
  std::string header_seen_;            // a proper beginning of header_
  Utf8Stream characters_;
  std::string call_;
  std::string held_content_;  // white space before any content
  std::string held_thought_;  // white space after a thought's text
  bool has_content_ = false;
  bool has_thought_ = false;
  std::vector<ReplyDelta> deltas_;
};

/// Whether the prompt ends inside a thought, so that the reply continues it.
bool EndsInOpenThought(const Vocab& vocab, std::span<const int> prompt);

}  // namespace facet
