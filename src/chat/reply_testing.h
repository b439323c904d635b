// SPDX-License-Identifier: Apache-2.0
// For tests: replies as lists of tokens, from testdata/reply or written by hand, and what a client
// has of them at the end.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "chat/reply.h"
#include "support/testing.h"
#include "text/test_vocabs.h"

namespace facet::testing {

/// A token as the model gave it: its id, and the bytes where the id does not say them.
struct ReplyToken {
  int id;
  std::string bytes;
};

/// A reply put together, as a client does it.
struct Message {
  std::string content;
  std::string thought;
  std::vector<ReplyDelta> calls;
  int n_repairs = 0;
  int n_parse_errors = 0;

  /// Calls as `NAME{...}`.
  [[nodiscard]] std::vector<std::string> call_texts() const {
    std::vector<std::string> texts;
    texts.reserve(calls.size());
    for (const ReplyDelta& call : calls) {
      texts.push_back(call.name + call.text);
    }
    return texts;
  }
};

/// Checks each delta and adds it.
inline void AddDeltas(Message& message, const std::vector<ReplyDelta>& deltas) {
  for (const ReplyDelta& delta : deltas) {
    EXPECT_TRUE(IsValidUtf8(delta.text));
    EXPECT_FALSE(delta.text.empty());
    if (delta.kind != ReplyDelta::Kind::kCall) {
      (delta.kind == ReplyDelta::Kind::kContent ? message.content : message.thought) += delta.text;
      continue;
    }
    EXPECT_EQ(delta.index, static_cast<int>(message.calls.size()));
    const auto arguments = ParseJson(delta.text, "arguments");
    EXPECT_TRUE(arguments.ok() && arguments->is_object()) << delta.text;
    message.calls.push_back(delta);
  }
}

inline Message SplitTokens(const Vocab& vocab, const std::vector<ReplyToken>& tokens,
                           const Json& tools, bool in_thought = false) {
  ReplySplitter splitter(vocab, tools, in_thought);
  Message message;
  for (const ReplyToken& token : tokens) {
    AddDeltas(message, splitter.Push(token.id, token.bytes));
  }
  AddDeltas(message, splitter.Finish());
  EXPECT_EQ(splitter.n_calls(), static_cast<int>(message.calls.size()));
  message.n_repairs = splitter.n_repairs();
  message.n_parse_errors = splitter.n_parse_errors();
  return message;
}

/// Marks by their text, and other text as one token of the tiny vocabulary: the splitter asks no
/// more of ordinary tokens than not to be special.
inline std::vector<ReplyToken> TokensOf(const std::vector<std::string>& pieces) {
  const int ordinary = *TinyVocab().Find("a");
  std::vector<ReplyToken> tokens;
  tokens.reserve(pieces.size());
  for (const std::string& piece : pieces) {
    const std::optional<int> id = TinyVocab().Find(piece);
    tokens.push_back({id && TinyVocab().is_special(*id) ? *id : ordinary, piece});
  }
  return tokens;
}

/// A text with its marks written out, in tokens of one character each.
inline std::vector<ReplyToken> TokensOfText(std::string_view text) {
  constexpr std::string_view kMarks[] = {"<|\"|>",     "<|tool_call>",    "<tool_call|>",
                                         "<|channel>", "<channel|>",      "<|turn>",
                                         "<turn|>",    "<|tool_response>"};
  std::vector<std::string> pieces;
  while (!text.empty()) {
    size_t size = static_cast<size_t>(DecodeUtf8(text).size);
    for (const std::string_view mark : kMarks) {
      size = text.starts_with(mark) ? mark.size() : size;
    }
    pieces.emplace_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  return TokensOf(pieces);
}

/// Functions without schemas.
inline Json ToolsNamed(std::initializer_list<const char*> names) {
  Json tools{Json::Array()};
  for (const char* name : names) {
    tools.Append(Json::MakeObject({{"name", name}}));
  }
  return tools;
}

/// The rows of reply_cases.jsonl.
inline const std::vector<Json>& ReplyCases() {
  static const std::vector<Json> cases = JsonLinesOrDie(TestdataPath("reply/reply_cases.jsonl"));
  return cases;
}

/// The tokens of a case in the tiny vocabulary.
inline std::vector<ReplyToken> CaseTokens(const Json& row) {
  std::vector<ReplyToken> tokens;
  for (const Json& token : row["tokens"].items()) {
    if (token.contains("c")) {
      tokens.push_back({*TinyVocab().Find(token["c"].as_string()), token["c"].as_string()});
    } else if (token.contains("b")) {
      const int byte = std::stoi(token["b"].as_string(), nullptr, 16);
      tokens.push_back({TinyVocab().byte_id(static_cast<uint8_t>(byte)),
                        std::string(1, static_cast<char>(byte))});
    } else {
      tokens.push_back({*TinyVocab().Find("a"), token.as_string()});
    }
  }
  return tokens;
}

inline Message SplitCase(const Json& row, const std::vector<ReplyToken>& tokens) {
  return SplitTokens(TinyVocab(), tokens, row["tools"], row["start"].as_string() == "thought");
}

}  // namespace facet::testing
