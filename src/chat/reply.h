// SPDX-License-Identifier: Apache-2.0
// The model's tokens split into what a client sees: content, thought and tool calls. Works on token
// ids, because markup is told from text that looks like it by the token alone. What has been handed
// out is never taken back, so the joined deltas of a streamed reply are the whole reply.
// docs/chat-format.md describes the grammar.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/utf8.h"
#include "chat/tool_call.h"
#include "text/vocab.h"

namespace facet {

/// A piece of the reply. Text is valid UTF-8 and ends at a character.
struct ReplyDelta {
  enum class Kind { kContent, kThought, kCall };
  Kind kind;
  std::string text;       ///< kCall: the arguments, the text of a JSON object, whole
  std::string name = {};  ///< kCall: of the function
  int index = 0;          ///< kCall: 0, 1, ... in the order of the reply

  bool operator==(const ReplyDelta&) const = default;
};

/// One for each reply; not for several threads.
///
/// Joined thoughts are without white space at both ends. White space that begins the content is
/// held until more follows, so that content of white space only is none. All other text appears
/// once, in order; a call that cannot be read becomes the text around it, without its control
/// tokens. A call is handed out when it is complete. Tolerated and counted: a thought after content
/// or opened twice, surplus closing marks, a repeated turn header, a call that is not closed,
/// inside a thought or misspelled (tool_call.h). Tolerated: a thought without its header, empty or
/// never closed.
class ReplySplitter {
 public:
  /// The vocabulary must outlive it; it may lack any of the marks. `tools`: those of the request,
  /// not null; without any, nothing is a call. `starts_in_thought`: the prompt ended in an opened
  /// thought (EndsInOpenThought).
  ReplySplitter(const Vocab& vocab, std::shared_ptr<const OfferedTools> tools,
                bool starts_in_thought);
  /// The same for tools that no other splitter shares.
  ReplySplitter(const Vocab& vocab, const Json& tools, bool starts_in_thought)
      : ReplySplitter(vocab, std::make_shared<OfferedTools>(tools), starts_in_thought) {}

  /// Adds a token of the vocabulary with the bytes that it stands for; returns what can be handed
  /// out now. Bytes of control tokens are not read.
  std::vector<ReplyDelta> Push(int id, std::string_view bytes);
  /// The end of the reply: what was held back.
  std::vector<ReplyDelta> Finish();

  /// What the text of the next token is of, as far as is known: calls may turn out to be content.
  [[nodiscard]] ReplyDelta::Kind kind() const;
  [[nodiscard]] int n_calls() const { return n_calls_; }  ///< handed out so far
  /// Slips of the model that were put right.
  [[nodiscard]] int n_repairs() const { return n_repairs_; }
  /// Calls that could not be read, and so became text.
  [[nodiscard]] int n_parse_errors() const { return n_parse_errors_; }

 private:
  enum class Mode { kContent, kThought, kCall };
  /// How a call ends.
  enum class End { kClosed, kReopened, kCut };

  void BeginThought();
  void EndThought();
  void BeginCall();
  void EndCall(End end);
  void EndCallText(const std::string& text, End end);
  void HandOutCalls(ParsedCalls parsed);
  void BeginTurn();
  void EndTurn();
  void AddQuote();
  void AddCallText(std::string_view text);
  /// Text outside calls, in the present mode.
  void AddPlain(std::string_view text);
  /// Text up to here is complete: a mark follows, or the end.
  void EndText();
  /// Whole characters in the present mode, of which the head may be a header.
  void AddText(std::string_view text);
  /// Text at the very start of the answer, which may be a call without its mark.
  void AddOpening(std::string_view text);
  void AddContent(std::string_view text);
  void AddThought(std::string_view text);
  void Emit(ReplyDelta::Kind kind, std::string_view text);

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
  std::shared_ptr<const OfferedTools> tools_;

  Mode mode_ = Mode::kContent;
  Mode around_call_ = Mode::kContent;  // the mode to go back to after a call
  std::string_view header_;            // what may come first and is no text; empty: nothing
  std::string header_seen_;            // a proper beginning of header_
  Utf8Stream characters_;
  std::string opening_;       // beginning of the answer that may become a call
  std::string call_;          // with kStringMark for the marks of strings
  std::string held_content_;  // white space before any content
  std::string held_thought_;  // white space after a thought's text
  /// Of a call without its mark.
  std::optional<UnmarkedCalls> unmarked_;
  bool has_content_ = false;
  bool has_thought_ = false;
  int n_calls_ = 0;
  int n_repairs_ = 0;
  int n_parse_errors_ = 0;
  std::vector<ReplyDelta> deltas_;
};

/// Whether the prompt ends inside a thought, so that the reply continues it.
bool EndsInOpenThought(const Vocab& vocab, std::span<const int> prompt);

}  // namespace facet
