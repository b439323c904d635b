// SPDX-License-Identifier: Apache-2.0
#include "chat/reply.h"

#include <utility>

#include "chat/call_text.h"

namespace facet {
namespace {

constexpr std::string_view kThoughtHeader = "thought\n";
constexpr std::string_view kTurnHeader = "model\n";

/// The token's id, or -1, which no token has.
int IdOf(const Vocab& vocab, std::string_view text) { return vocab.Find(text).value_or(-1); }

}  // namespace

ReplySplitter::ReplySplitter(const Vocab& vocab, std::shared_ptr<const OfferedTools> tools,
                             bool starts_in_thought)
    : channel_open_(IdOf(vocab, "<|channel>")),
      channel_close_(IdOf(vocab, "<channel|>")),
      call_open_(IdOf(vocab, "<|tool_call>")),
      call_close_(IdOf(vocab, "<tool_call|>")),
      response_open_(IdOf(vocab, "<|tool_response>")),
      response_close_(IdOf(vocab, "<tool_response|>")),
      turn_open_(IdOf(vocab, "<|turn>")),
      turn_close_(IdOf(vocab, "<turn|>")),
      quote_(IdOf(vocab, "<|\"|>")),
      vocab_(&vocab),
      tools_(std::move(tools)) {
  if (starts_in_thought) {
    BeginThought();  // the header may or may not be part of the prompt
  }
}

std::vector<ReplyDelta> ReplySplitter::Push(int id, std::string_view bytes) {
  if (id == channel_open_) {
    BeginThought();
  } else if (id == channel_close_) {
    EndThought();
  } else if (id == call_open_) {
    BeginCall();
  } else if (id == call_close_) {
    EndText();
    EndCall(End::kClosed);
  } else if (id == turn_open_) {
    BeginTurn();
  } else if (id == turn_close_ || id == response_open_ || id == response_close_) {
    EndTurn();
  } else if (id == quote_) {
    AddQuote();
  } else if (!vocab_->is_special(id)) {
    AddText(characters_.Push(bytes));
  }
  return std::exchange(deltas_, {});
}

std::vector<ReplyDelta> ReplySplitter::Finish() {
  EndText();
  EndCall(End::kCut);
  return std::exchange(deltas_, {});
}

ReplyDelta::Kind ReplySplitter::kind() const {
  if (mode_ == Mode::kThought) {
    return ReplyDelta::Kind::kThought;
  }
  return mode_ == Mode::kCall ? ReplyDelta::Kind::kCall : ReplyDelta::Kind::kContent;
}

void ReplySplitter::BeginThought() {
  EndText();
  EndCall(End::kCut);
  n_repairs_ += has_content_ || mode_ == Mode::kThought ? 1 : 0;
  mode_ = Mode::kThought;
  header_ = kThoughtHeader;
}

void ReplySplitter::EndThought() {
  EndText();
  if (mode_ == Mode::kCall && around_call_ == Mode::kThought) {
    EndCall(End::kCut);
  }
  n_repairs_ += mode_ == Mode::kThought ? 0 : 1;
  mode_ = mode_ == Mode::kThought ? Mode::kContent : mode_;
}

void ReplySplitter::BeginCall() {
  EndText();
  if (tools_->empty()) {
    return;
  }
  EndCall(End::kReopened);
  around_call_ = mode_;
  mode_ = Mode::kCall;
}

void ReplySplitter::EndCall(End end) {
  if (mode_ != Mode::kCall) {
    n_repairs_ += end == End::kClosed && !tools_->empty() ? 1 : 0;
    return;
  }
  mode_ = around_call_;
  unmarked_.reset();
  EndCallText(std::exchange(call_, {}), end);
}

void ReplySplitter::EndCallText(const std::string& text, End end) {
  if (text.empty() && end == End::kReopened) {
    ++n_repairs_;
    return;
  }
  std::optional<ParsedCalls> parsed = ParseCalls(text, *tools_, end == End::kClosed);
  if (!parsed) {
    ++n_parse_errors_;
    AddPlain(WithoutMarks(text));
    return;
  }
  n_repairs_ += mode_ == Mode::kThought || end != End::kClosed ? 1 : 0;
  HandOutCalls(*std::move(parsed));
}

void ReplySplitter::HandOutCalls(ParsedCalls parsed) {
  n_repairs_ += parsed.n_repairs;
  n_parse_errors_ += parsed.has_unread_call ? 1 : 0;
  for (ToolCall& call : parsed.calls) {
    deltas_.push_back(
        {ReplyDelta::Kind::kCall, std::move(call.arguments), std::move(call.name), n_calls_++});
  }
  AddPlain(WithoutMarks(parsed.rest));
}

void ReplySplitter::BeginTurn() {
  EndTurn();
  ++n_repairs_;
  header_ = kTurnHeader;
}

void ReplySplitter::EndTurn() {
  EndText();
  EndCall(End::kCut);
  mode_ = Mode::kContent;
}

void ReplySplitter::AddQuote() {
  if (mode_ == Mode::kCall) {
    AddText(characters_.Flush());
    AddCallText({&kStringMark, 1});
  }
}

void ReplySplitter::AddCallText(std::string_view text) {
  if (!unmarked_) {
    call_ += text;
    return;
  }
  for (size_t n = 0; n < text.size(); ++n) {
    if (unmarked_->Add(text[n], *tools_)) {
      std::optional<ParsedCalls> parsed = ParseCalls(call_, *tools_, false);
      if (parsed && parsed->is_certain) {
        mode_ = around_call_;
        unmarked_.reset();
        HandOutCalls(*std::move(parsed));
        call_.clear();
        AddPlain(WithoutMarks(text.substr(n)));
        return;
      }
    }
    call_ += text[n];
  }
}

void ReplySplitter::EndText() {
  AddText(characters_.Flush());
  const std::string_view header = std::exchange(header_, {});
  const std::string seen = std::exchange(header_seen_, {});
  // A header that lacks only its line break is one all the same: "<|channel>thought<channel|>".
  if (seen.size() + 1 != header.size()) {
    AddText(seen);
  }
  AddContent(std::exchange(opening_, {}));
}

void ReplySplitter::AddText(std::string_view text) {
  if (text.empty()) {
    return;
  }
  if (mode_ == Mode::kCall) {
    AddCallText(text);
    return;
  }
  std::string with_header;
  if (!header_.empty()) {
    header_seen_ += text;
    if (header_seen_.size() < header_.size() && header_.starts_with(header_seen_)) {
      return;
    }
    with_header = std::exchange(header_seen_, {});
    text = with_header;
    if (text.starts_with(header_)) {
      text.remove_prefix(header_.size());
    }
    header_ = {};
  }
  if (mode_ == Mode::kThought) {
    AddThought(text);
  } else {
    AddOpening(text);
  }
}

void ReplySplitter::AddOpening(std::string_view text) {
  if (has_content_ || n_calls_ > 0 || tools_->empty()) {
    AddContent(text);
    return;
  }
  if (opening_.empty()) {
    const std::string_view rest = TrimLeft(text);
    AddContent(text.substr(0, text.size() - rest.size()));  // holds it
    text = rest;
  }
  opening_ += text;
  const CallStart start = FindCallStart(opening_, *tools_);
  if (start == CallStart::kMaybe) {
    return;
  }
  const std::string opening = std::exchange(opening_, {});
  if (start == CallStart::kNo) {
    AddContent(opening);
    return;
  }
  around_call_ = mode_;
  mode_ = Mode::kCall;
  unmarked_.emplace();
  ++n_repairs_;
  AddCallText(opening);
}

void ReplySplitter::AddPlain(std::string_view text) {
  if (mode_ == Mode::kThought) {
    AddThought(text);
  } else {
    AddContent(text);
  }
}

void ReplySplitter::AddContent(std::string_view text) {
  if (!has_content_) {
    if (text.find_first_not_of(kWhiteSpace) == std::string_view::npos) {
      held_content_ += text;
      return;
    }
    has_content_ = true;
    Emit(ReplyDelta::Kind::kContent, std::exchange(held_content_, {}));
  }
  Emit(ReplyDelta::Kind::kContent, text);
}

void ReplySplitter::AddThought(std::string_view text) {
  const size_t begin = text.find_first_not_of(kWhiteSpace);
  if (begin == std::string_view::npos) {
    held_thought_ += text;
    return;
  }
  if (has_thought_) {
    Emit(ReplyDelta::Kind::kThought, held_thought_);
  } else {
    text.remove_prefix(begin);
  }
  has_thought_ = true;
  const size_t end = text.find_last_not_of(kWhiteSpace) + 1;
  Emit(ReplyDelta::Kind::kThought, text.substr(0, end));
  held_thought_ = text.substr(end);
}

void ReplySplitter::Emit(ReplyDelta::Kind kind, std::string_view text) {
  if (text.empty()) {
    return;
  }
  if (deltas_.empty() || deltas_.back().kind != kind) {
    deltas_.push_back({kind, {}});
  }
  deltas_.back().text += text;
}

bool EndsInOpenThought(const Vocab& vocab, std::span<const int> prompt) {
  const int opener = IdOf(vocab, "<|channel>");
  for (size_t end = prompt.size(); end > 0; --end) {
    const int id = prompt[end - 1];
    if (id == opener) {
      return true;
    }
    if (vocab.is_special(id)) {
      return false;  // any other mark ends a thought or stands after its end
    }
  }
  return false;
}

}  // namespace facet
