// SPDX-License-Identifier: Apache-2.0
#include "text/vocab.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "base/utf8.h"

namespace facet {
namespace {

/// The texts that the family's templates and processors write as single tokens.
constexpr std::string_view kControlTexts[] = {
    "<pad>",
    "<eos>",
    "<bos>",
    "<unk>",
    "<mask>",
    "<|tool>",
    "<tool|>",
    "<|think|>",
    "<|turn>",
    "<turn|>",
    "<|image>",
    "<|audio>",
    "<|image|>",
    "<|audio|>",
    "<image|>",
    "<audio|>",
    "<|video|>",
    "<|tool_call>",
    "<tool_call|>",
    "<|tool_response>",
    "<tool_response|>",
    "<|channel>",
    "<channel|>",
    "<|\"|>",
};

/// Those of them that a GGUF file types as user defined.
constexpr std::string_view kShownControlTexts[] = {
    "<|tool_call>", "<tool_call|>", "<|tool_response>", "<tool_response|>",
    "<|channel>",   "<channel|>",   "<|\"|>",
};

constexpr std::string_view kEndTexts[] = {"<eos>", "<turn|>", "<|tool_response>"};

template <size_t n>
bool Contains(const std::string_view (&texts)[n], std::string_view text) {
  return std::find(std::begin(texts), std::end(texts), text) != std::end(texts);
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') {
    return c - '0';
  }
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/// The byte that "<0x0A>" stands for.
std::optional<uint8_t> ByteOfText(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') {
    return std::nullopt;
  }
  const int high = HexDigit(text[3]);
  const int low = HexDigit(text[4]);
  if (high < 0 || low < 0) {
    return std::nullopt;
  }
  return static_cast<uint8_t>(high * 16 + low);
}

std::string Quoted(std::string_view text) { return Json(text).Dump(); }

Status CheckText(std::string_view text, const VocabParts& parts, size_t id) {
  const auto where = [&] { return fmt::format("{}[{}]", parts.tokens_name, id); };
  if (text.empty()) {
    return Refuse(where(), "an empty text", "at least one byte");
  }
  if (text.size() > Vocab::kMaxTokenBytes) {
    return Refuse(where(), fmt::format("{} bytes", text.size()),
                  fmt::format("at most {}", Vocab::kMaxTokenBytes));
  }
  if (!IsValidUtf8(text)) {
    return Refuse(where(), "bytes that are not UTF-8", "UTF-8");
  }
  if (parts.kinds[id] == TokenKind::kByte && !ByteOfText(text)) {
    return Refuse(where(), Quoted(text) + " with the type of a byte", "a text like \"<0x0A>\"");
  }
  return {};
}

/// The kind that counts: the family's control tokens and the byte tokens are known by their text.
TokenKind KindOf(std::string_view text, TokenKind stated) {
  if (Contains(kControlTexts, text)) {
    return TokenKind::kControl;
  }
  if (stated != TokenKind::kControl && stated != TokenKind::kUserDefined && ByteOfText(text)) {
    return TokenKind::kByte;
  }
  return stated;
}

}  // namespace

std::optional<std::pair<std::string_view, std::string_view>> SplitMerge(std::string_view text) {
  const size_t space = text.find(' ', 1);
  if (space == std::string_view::npos || space + 1 == text.size()) {
    return std::nullopt;
  }
  return std::pair(text.substr(0, space), text.substr(space + 1));
}

Result<Vocab> Vocab::FromParts(const VocabParts& parts) {
  FACET_CHECK(parts.kinds.size() == parts.texts.size());
  Vocab vocab;
  FACET_RETURN_IF_ERROR(vocab.AddTokens(parts));
  vocab.AddRoles(parts);
  const auto missing = std::find(vocab.byte_ids_.begin(), vocab.byte_ids_.end(), -1);
  if (missing != vocab.byte_ids_.end() && vocab.unk_id_ < 0) {
    return Refuse(parts.tokens_name,
                  fmt::format("no token \"<0x{:02X}>\"", missing - vocab.byte_ids_.begin()),
                  "all 256 byte tokens, or an unknown token");
  }
  FACET_RETURN_IF_ERROR(vocab.AddMerges(parts));
  return vocab;
}

Status Vocab::AddTokens(const VocabParts& parts) {
  const size_t n_tokens = parts.texts.size();
  if (n_tokens == 0 || n_tokens > kMaxTokens) {
    return Refuse(parts.tokens_name, fmt::format("{} tokens", n_tokens),
                  fmt::format("1 to {}", kMaxTokens));
  }
  byte_ids_.fill(-1);
  tokens_.reserve(n_tokens);
  token_table_.Reset(n_tokens);
  for (size_t i = 0; i < n_tokens; ++i) {
    const std::string_view text_i = parts.texts[i];
    FACET_RETURN_IF_ERROR(CheckText(text_i, parts, i));
    int32_t& place =
        token_table_.Place(HashText(text_i), [&](int32_t other) { return text(other) == text_i; });
    if (place != IndexTable::kNone) {
      return Refuse(fmt::format("{}[{}]", parts.tokens_name, i),
                    fmt::format("{}, the text of token {}", Quoted(text_i), place),
                    "a text of its own");
    }
    place = static_cast<int32_t>(i);
    const TokenKind kind = KindOf(text_i, parts.kinds[i]);
    // Offsets fit 32 bits: at most 2^20 tokens of 2^10 bytes, twice.
    const auto text_begin = static_cast<uint32_t>(arena_.size());
    arena_ += text_i;
    const uint32_t bytes_begin = AddBytes(text_i, kind, text_begin);
    const size_t n_bytes = bytes_begin == text_begin ? text_i.size() : arena_.size() - bytes_begin;
    tokens_.push_back({text_begin, bytes_begin, static_cast<uint16_t>(text_i.size()),
                       static_cast<uint16_t>(n_bytes), kind});
    if (kind == TokenKind::kByte) {
      byte_ids_[*ByteOfText(text_i)] = static_cast<int32_t>(i);
    }
  }
  return {};
}

uint32_t Vocab::AddBytes(std::string_view text, TokenKind kind, uint32_t text_begin) {
  const auto begin = static_cast<uint32_t>(arena_.size());
  if (kind == TokenKind::kByte) {
    arena_.push_back(static_cast<char>(*ByteOfText(text)));
    return begin;
  }
  const bool is_literal = kind == TokenKind::kControl || kind == TokenKind::kUserDefined;
  if (is_literal || text.find(kSpacePiece) == std::string_view::npos) {
    return text_begin;
  }
  while (!text.empty()) {
    const size_t piece = text.find(kSpacePiece);
    arena_ += text.substr(0, piece);
    if (piece == std::string_view::npos) {
      break;
    }
    arena_.push_back(' ');
    text.remove_prefix(piece + kSpacePiece.size());
  }
  return begin;
}

void Vocab::AddRoles(const VocabParts& parts) {
  const auto role = [this](int stated, std::string_view text) {
    FACET_CHECK(stated >= -1 && stated < size());
    return stated >= 0 ? stated : Find(text).value_or(-1);
  };
  bos_id_ = role(parts.bos_id, "<bos>");
  eos_id_ = role(parts.eos_id, "<eos>");
  pad_id_ = role(parts.pad_id, "<pad>");
  unk_id_ = role(parts.unk_id, "<unk>");
  const auto add_end = [this](int id) {
    if (id >= 0 && std::find(end_ids_.begin(), end_ids_.end(), id) == end_ids_.end()) {
      end_ids_.push_back(id);
    }
  };
  add_end(eos_id_);
  for (const std::string_view text : kEndTexts) {
    add_end(Find(text).value_or(-1));
  }
  for (const int id : parts.end_ids) {
    FACET_CHECK(id < size());
    add_end(id);
  }
  suppressed_ids_ = parts.suppressed_ids;
}

Status Vocab::AddMerges(const VocabParts& parts) {
  if (parts.merges.size() > kMaxMerges) {
    return Refuse(parts.merges_name, fmt::format("{} merges", parts.merges.size()),
                  fmt::format("at most {}", kMaxMerges));
  }
  merges_.reserve(parts.merges.size());
  merge_table_.Reset(parts.merges.size());
  std::string joined;
  for (const auto& [left, right] : parts.merges) {
    joined.assign(left).append(right);
    const std::string_view texts[] = {left, right, joined};
    int ids[3] = {};
    for (size_t i = 0; i < 3; ++i) {
      const std::optional<int> id = Find(texts[i]);
      if (!id) {
        return Refuse(fmt::format("{}[{}]", parts.merges_name, merges_.size()),
                      Quoted(texts[i]) + ", which is no token",
                      "two tokens that joined are a token");
      }
      ids[i] = *id;
    }
    const auto rank = static_cast<int32_t>(merges_.size());
    merges_.push_back({ids[0], ids[1], ids[2]});
    if (!IsPlain(ids[0]) || !IsPlain(ids[1]) || !IsPlain(ids[2])) {
      continue;
    }
    // Of a repeated merge the last one counts, as in the reference.
    merge_table_.Place(HashPair(ids[0], ids[1]), [&](int32_t other) {
      const Merge& merge = merges_[static_cast<size_t>(other)];
      return merge.left == ids[0] && merge.right == ids[1];
    }) = rank;
  }
  return {};
}

/// Whether text may become the token by merging.
bool Vocab::IsPlain(int id) const {
  return !is_special(id) && kind(id) != TokenKind::kByte && id != unk_id_;
}

std::optional<int> Vocab::Find(std::string_view wanted) const {
  const int32_t id =
      token_table_.Find(HashText(wanted), [&](int32_t other) { return text(other) == wanted; });
  return id == IndexTable::kNone ? std::nullopt : std::optional<int>(id);
}

std::vector<std::string> Vocab::MergeTexts() const {
  std::vector<std::string> texts;
  texts.reserve(merges_.size());
  for (const Merge& merge : merges_) {
    texts.push_back(std::string(text(merge.left)).append(" ").append(text(merge.right)));
  }
  return texts;
}

int Vocab::GgufTokenType(int id) const {
  switch (kind(id)) {
    case TokenKind::kNormal:
      return 1;
    case TokenKind::kUnknown:
      return 2;
    case TokenKind::kControl:
      return Contains(kShownControlTexts, text(id)) ? 4 : 3;
    case TokenKind::kUserDefined:
      return 4;
    case TokenKind::kUnused:
      return 5;
    case TokenKind::kByte:
      return 6;
  }
  return 1;
}

}  // namespace facet
