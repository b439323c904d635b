// SPDX-License-Identifier: Apache-2.0
#include "chat/reply.h"

#include <utility>

namespace facet {
namespace {

constexpr std::string_view kWhiteSpace = " \t\n\v\f\r";
constexpr std::string_view kThoughtHeader = "thought\n";
constexpr std::string_view kTurnHeader = "model\n";

/// The token's id, or -1, which no token has.
int IdOf(const Vocab& vocab, std::string_view text) { return vocab.Find(text).value_or(-1); }

}  // namespace

ReplySplitter::ReplySplitter(const Vocab& vocab, bool starts_in_thought)
    : channel_open_(IdOf(vocab, "<|channel>")),
      channel_close_(IdOf(vocab, "<channel|>")),
      call_open_(IdOf(vocab, "<|tool_call>")),
      call_close_(IdOf(vocab, "<tool_call|>")),
      response_open_(IdOf(vocab, "<|tool_response>")),
      response_close_(IdOf(vocab, "<tool_response|>")),
      turn_open_(IdOf(vocab, "<|turn>")),
      turn_close_(IdOf(vocab, "<turn|>")),
      quote_(IdOf(vocab, "<|\"|>")),
      vocab_(&vocab) {
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
    EndCall();
  } else if (id == turn_open_) {
    BeginTurn();
  } else if (id == turn_close_ || id == response_open_ || id == response_close_) {
    EndTurn();
  } else if (id == quote_ && mode_ == Kind::kCall) {
    AddText(characters_.Push(vocab_->text(id)));
  } else if (!vocab_->is_special(id)) {
    AddText(characters_.Push(bytes));
  }
  return std::exchange(deltas_, {});
}

std::vector<ReplyDelta> ReplySplitter::Finish() {
  EndText();
  EndCall();
  return std::exchange(deltas_, {});
}

void ReplySplitter::BeginThought() {
  EndText();
  EndCall();
  mode_ = Kind::kThought;
  header_ = kThoughtHeader;
}

void ReplySplitter::EndThought() {
  EndText();
  if (mode_ == Kind::kCall) {
    around_call_ = Kind::kContent;  // a call does not end here, but the thought around it does
  } else {
    mode_ = Kind::kContent;
  }
}

void ReplySplitter::BeginCall() {
  EndText();
  EndCall();
  around_call_ = mode_;
  mode_ = Kind::kCall;
}

void ReplySplitter::EndCall() {
  if (mode_ == Kind::kCall) {
    deltas_.push_back({Kind::kCall, std::exchange(call_, {})});
    mode_ = around_call_;
  }
}

void ReplySplitter::BeginTurn() {
  EndTurn();
  header_ = kTurnHeader;
}

void ReplySplitter::EndTurn() {
  EndText();
  EndCall();
  mode_ = Kind::kContent;
}

void ReplySplitter::EndText() {
  AddText(characters_.Flush());
  const std::string_view header = std::exchange(header_, {});
  const std::string seen = std::exchange(header_seen_, {});
  // A header that lacks only its line break is one all the same: "<|channel>thought<channel|>".
  if (seen.size() + 1 != header.size()) {
    AddText(seen);
  }
}

void ReplySplitter::AddText(std::string_view text) {
  if (text.empty()) {
    return;
  }
  if (mode_ == Kind::kCall) {
    call_ += text;
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
  if (mode_ == Kind::kThought) {
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
    Emit(Kind::kContent, std::exchange(held_content_, {}));
  }
  Emit(Kind::kContent, text);
}

void ReplySplitter::AddThought(std::string_view text) {
  const size_t begin = text.find_first_not_of(kWhiteSpace);
  if (begin == std::string_view::npos) {
    held_thought_ += text;
    return;
  }
  if (has_thought_) {
    Emit(Kind::kThought, held_thought_);
  } else {
    text.remove_prefix(begin);
  }
  has_thought_ = true;
  const size_t end = text.find_last_not_of(kWhiteSpace) + 1;
  Emit(Kind::kThought, text.substr(0, end));
  held_thought_ = text.substr(end);
}

void ReplySplitter::Emit(Kind kind, std::string_view text) {
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
