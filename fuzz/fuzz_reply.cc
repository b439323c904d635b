// SPDX-License-Identifier: Apache-2.0
// Replies of a model gone mad: bytes chosen from marks, the words of calls and text, through the
// splitter. No delta may hold a mark, broken UTF-8 or arguments that are no JSON object; text that
// is not a call must not be lost; and how text is divided into tokens must not matter.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/json.h"
#include "base/utf8.h"
#include "chat/reply.h"
#include "text/vocab.h"

namespace {

using facet::Json;
using facet::ReplyDelta;
using facet::Vocab;

constexpr std::string_view kMarks[] = {
    "<|\"|>",  "<|tool_call>", "<tool_call|>",     "<|channel>",       "<channel|>",
    "<|turn>", "<turn|>",      "<|tool_response>", "<tool_response|>", "<|image|>"};
constexpr std::string_view kPieces[] = {
    "call:", "f",    "g{",   "{",         "}",       "[",        "]",       "(",
    ")",     ":",    "=",    ",",         "a:",      "s:",       "i:",      "l:",
    "o:",    "\"",   "'",    "\\",        " ",       "\n",       "12",      "-0.5e3",
    "true",  "null", "None", "thought\n", "model\n", "http://x", "\\u00e9", "\xF0\x9F\x98\x80"};
constexpr size_t kTextToken = std::size(kMarks);

/// The marks, and one token for all text: the splitter takes its bytes from the caller.
const Vocab& MarkVocab() {
  static const Vocab vocab = [] {
    facet::VocabParts parts;
    parts.tokens_name = "tokens";
    parts.merges_name = "merges";
    for (const std::string_view mark : kMarks) {
      parts.texts.push_back(mark);
      parts.kinds.push_back(facet::TokenKind::kControl);
    }
    parts.texts.insert(parts.texts.end(), {"a", "<unk>"});
    parts.kinds.insert(parts.kinds.end(), {facet::TokenKind::kNormal, facet::TokenKind::kUnknown});
    return *Vocab::FromParts(parts);
  }();
  return vocab;
}

const Json& Tools() {
  static const Json tools = *facet::ParseJson(
      R"([{"name":"f","parameters":{"type":"object","properties":{
        "s":{"type":"string"},"i":{"type":"integer"},"o":{"type":"object"},
        "l":{"type":"array","items":{"type":"boolean"}}}}},{"name":"g"}])",
      "tools");
  return tools;
}

struct Token {
  size_t id;
  std::string text;
};

/// A byte is a mark, a piece, or itself.
std::vector<Token> TokensOf(std::string_view data) {
  std::vector<Token> tokens;
  for (const char c : data) {
    const auto byte = static_cast<uint8_t>(c);
    if (byte >= 0x80 && byte < 0x80 + std::size(kMarks)) {
      tokens.push_back({static_cast<size_t>(byte - 0x80), ""});
    } else if (byte >= 0xA0 && byte < 0xA0 + std::size(kPieces)) {
      tokens.push_back({kTextToken, std::string(kPieces[byte - 0xA0])});
    } else {
      tokens.push_back({kTextToken, std::string(1, c)});
    }
  }
  return tokens;
}

struct Split {
  std::string content;
  std::string thought;
  std::vector<ReplyDelta> calls;
  int n_parse_errors = 0;

  bool operator==(const Split&) const = default;
};

void Add(const std::vector<ReplyDelta>& deltas, Split& split) {
  for (const ReplyDelta& delta : deltas) {
    FACET_CHECK(facet::IsValidUtf8(delta.text) && !delta.text.empty());
    if (delta.kind == ReplyDelta::Kind::kCall) {
      const auto arguments = facet::ParseJson(delta.text, "arguments");
      FACET_CHECK(arguments.ok() && arguments->is_object());
      FACET_CHECK(!delta.name.empty() && delta.index == static_cast<int>(split.calls.size()));
      split.calls.push_back(delta);
    } else {
      (delta.kind == ReplyDelta::Kind::kContent ? split.content : split.thought) += delta.text;
    }
  }
}

Split SplitTokens(const std::vector<Token>& tokens, const Json& tools, bool by_byte) {
  facet::ReplySplitter splitter(MarkVocab(), tools, false);
  Split split;
  for (const Token& token : tokens) {
    const size_t step = by_byte && !token.text.empty() ? 1 : std::string::npos;
    for (size_t pos = 0; pos == 0 || (step == 1 && pos < token.text.size()); ++pos) {
      Add(splitter.Push(static_cast<int>(token.id), std::string_view(token.text).substr(pos, step)),
          split);
    }
  }
  Add(splitter.Finish(), split);
  FACET_CHECK(splitter.n_calls() == static_cast<int>(split.calls.size()));
  split.n_parse_errors = splitter.n_parse_errors();
  return split;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::vector<Token> tokens = TokensOf({reinterpret_cast<const char*>(data), size});
  const Split split = SplitTokens(tokens, Tools(), false);
  FACET_CHECK(split == SplitTokens(tokens, Tools(), true));
  const Split without_tools = SplitTokens(tokens, Json(), false);
  FACET_CHECK(without_tools.calls.empty() && without_tools.n_parse_errors == 0);
  bool has_visible_text = false;
  for (const Token& token : tokens) {
    has_visible_text =
        has_visible_text || token.text.find_first_of("{}[]()12") != std::string::npos;
  }
  FACET_CHECK(!has_visible_text || !split.content.empty() || !split.thought.empty() ||
              !split.calls.empty());
  return 0;
}
