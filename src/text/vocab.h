// SPDX-License-Identifier: Apache-2.0
// The vocabulary of a Gemma 4 tokenizer: token texts, kinds, merges and the ids with a role. It is
// read from a GGUF file's arrays or from a tokenizer.json, both into the same checked form, so that
// nothing above knows the source. All texts lie in one block of memory and both look-ups are flat
// tables: the real vocabulary (262144 tokens, 514906 merges) loads in a fraction of a second.
// docs/tokenizer.md tells the rules.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/status.h"
#include "text/index_table.h"

namespace facet {

class Json;
namespace gguf {
class Metadata;
}

enum class TokenKind : uint8_t { kNormal, kUnknown, kControl, kUserDefined, kUnused, kByte };

/// Tokens `left` and `right` side by side become `merged`. Its place in the list is its rank: lower
/// ranks go first.
struct Merge {
  int32_t left;
  int32_t right;
  int32_t merged;
};

/// What a file says, before it is checked. The views need to live only while the vocabulary is
/// made.
struct VocabParts {
  std::string
      tokens_name;  ///< what errors call the list of tokens: "a.gguf: tokenizer.ggml.tokens"
  std::string merges_name;
  std::vector<std::string_view> texts;  ///< by id
  std::vector<TokenKind>
      kinds;  ///< by id; byte tokens and the family's control tokens are known by text
  std::vector<std::pair<std::string_view, std::string_view>> merges;  ///< texts, by rank
  // Ids in range, or -1: then the token with the family's text for the role, where there is one.
  int bos_id = -1;
  int eos_id = -1;
  int pad_id = -1;
  int unk_id = -1;
  std::vector<int> end_ids;  ///< more ids that end a reply, in range
  std::vector<int> suppressed_ids;
};

/// Immutable once made, so any number of threads may read it. Ids given to the accessors must be in
/// [0, size()).
class Vocab {
 public:
  static constexpr size_t kMaxTokens = size_t{1} << 20;
  static constexpr size_t kMaxMerges = size_t{1} << 22;
  static constexpr size_t kMaxTokenBytes =
      1024;  ///< bounds the work per position when control tokens are searched

  /// From the arrays and ids under tokenizer.ggml. of a GGUF file. `name` is what errors call the
  /// file.
  static Result<Vocab> FromGguf(const gguf::Metadata& metadata, const std::string& name);
  /// From a tokenizer.json; `config` is the tokenizer_config.json beside it, or null.
  static Result<Vocab> FromTokenizerJson(const Json& tokenizer, const Json& config,
                                         const std::string& name);
  static Result<Vocab> FromParts(const VocabParts& parts);

  [[nodiscard]] int size() const { return static_cast<int>(tokens_.size()); }
  /// As it stands in the vocabulary: "▁the", "<0x0A>", "<|turn>".
  [[nodiscard]] std::string_view text(int id) const {
    const Token& token = At(id);
    return std::string_view(arena_).substr(token.text_begin, token.text_size);
  }
  /// What the token adds to decoded text: " the", "\n", "<|turn>". Byte tokens may give parts of a
  /// character.
  [[nodiscard]] std::string_view bytes(int id) const {
    const Token& token = At(id);
    return std::string_view(arena_).substr(token.bytes_begin, token.bytes_size);
  }
  [[nodiscard]] TokenKind kind(int id) const { return At(id).kind; }
  /// Control and user-defined tokens: those that typed text can never become unless it is parsed
  /// for them. The family's control tokens are always control, whatever the file says.
  [[nodiscard]] bool is_special(int id) const {
    return kind(id) == TokenKind::kControl || kind(id) == TokenKind::kUserDefined;
  }
  [[nodiscard]] std::optional<int> Find(std::string_view text) const;

  // -1 where absent.
  [[nodiscard]] int bos_id() const { return bos_id_; }
  [[nodiscard]] int eos_id() const { return eos_id_; }
  [[nodiscard]] int pad_id() const { return pad_id_; }
  [[nodiscard]] int unk_id() const { return unk_id_; }
  /// The token of one byte. Where one of the 256 is missing there is an unknown token.
  [[nodiscard]] int byte_id(uint8_t byte) const { return byte_ids_[byte]; }

  /// Tokens that end a reply: eos, the end of a turn, the start of a tool's response, and what the
  /// file adds.
  [[nodiscard]] const std::vector<int>& end_ids() const { return end_ids_; }
  /// Tokens never to be sampled (tokenizer.ggml.suppress_tokens).
  [[nodiscard]] const std::vector<int>& suppressed_ids() const { return suppressed_ids_; }

  /// All merges by rank.
  [[nodiscard]] std::span<const Merge> merges() const { return merges_; }
  /// The rank of the merge of two neighbours, or -1. Merges of or into special, byte or unknown
  /// tokens are never found: no text may become one, and what is none stays apart.
  [[nodiscard]] int FindMerge(int left, int right) const {
    return merge_table_.Find(HashPair(left, right), [&](int32_t rank) {
      const Merge& merge = merges_[static_cast<size_t>(rank)];
      return merge.left == left && merge.right == right;
    });
  }

  /// For writing a GGUF file: the merges as "left right", by rank.
  [[nodiscard]] std::vector<std::string> MergeTexts() const;
  /// For writing a GGUF file: the value for tokenizer.ggml.token_type. Seven control tokens
  /// (channels, tool calls and the string quote) are written as user defined, as the common
  /// converter does, because other engines drop control tokens from the text that they return.
  [[nodiscard]] int GgufTokenType(int id) const;

 private:
  struct Token {
    uint32_t text_begin;
    uint32_t bytes_begin;
    uint16_t text_size;
    uint16_t bytes_size;
    TokenKind kind;
  };

  Vocab() = default;
  Status AddTokens(const VocabParts& parts);
  Status AddMerges(const VocabParts& parts);
  void AddRoles(const VocabParts& parts);
  [[nodiscard]] bool IsPlain(int id) const;
  [[nodiscard]] uint32_t AddBytes(std::string_view text, TokenKind kind, uint32_t text_begin);

  [[nodiscard]] const Token& At(int id) const {
    FACET_CHECK(static_cast<size_t>(id) < tokens_.size());
    return tokens_[static_cast<size_t>(id)];
  }
  static uint64_t HashPair(int left, int right) {
    return MixBits((static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32) |
                   static_cast<uint32_t>(right));
  }

  std::string arena_;  // all texts, and the decoded bytes where they differ
  std::vector<Token> tokens_;
  IndexTable token_table_;  // text -> id
  std::vector<Merge> merges_;
  IndexTable merge_table_;  // (left, right) -> rank
  std::array<int32_t, 256> byte_ids_ = {};
  int bos_id_ = -1;
  int eos_id_ = -1;
  int pad_id_ = -1;
  int unk_id_ = -1;
  std::vector<int> end_ids_;
  std::vector<int> suppressed_ids_;
};

/// Splits "left right" as merges are written: at the first space that is not the first byte.
/// Nothing when a part would be empty.
std::optional<std::pair<std::string_view, std::string_view>> SplitMerge(std::string_view text);

/// The space of a Gemma vocabulary: U+2581.
inline constexpr std::string_view kSpacePiece = "\xe2\x96\x81";

}  // namespace facet
