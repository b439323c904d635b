// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer.h"

#include <algorithm>

#include "base/check.h"
#include "base/utf8.h"
#include "text/pair_merger.h"

namespace facet {
Tokenizer::Tokenizer(const Vocab* vocab) : vocab_(vocab), specials_(*vocab), joins_(*vocab) {
  for (size_t c = 0; c < ascii_pieces_.size(); ++c) {
    const char character = static_cast<char>(c);
    ascii_pieces_[c] = PieceOf(std::string_view(&character, 1));
  }
}

std::vector<int> Tokenizer::Encode(std::string_view text, bool parse_special) const {
  if (!IsValidUtf8(text)) {
    const std::string repaired = RepairUtf8(text);
    const Part part = {repaired.size(), parse_special};
    return EncodeParts(repaired, {&part, 1});
  }
  const Part part = {text.size(), parse_special};
  return EncodeParts(text, {&part, 1});
}

std::vector<int> Tokenizer::Encode(std::span<const TextRun> runs) const {
  std::string text;
  std::vector<Part> parts;
  for (const TextRun& run : runs) {
    text += IsValidUtf8(run.text) ? run.text : RepairUtf8(run.text);
    if (!parts.empty() && parts.back().parse_special == run.parse_special) {
      parts.back().end = text.size();
    } else {
      parts.push_back({text.size(), run.parse_special});
    }
  }
  return EncodeParts(text, parts);
}

std::vector<int> Tokenizer::EncodeParts(std::string_view text, std::span<const Part> parts) const {
  FACET_CHECK(text.size() <= INT32_MAX);
  std::vector<int> ids;
  PairMerger merger(*vocab_);
  size_t stretch = 0;  // where the text after the last special token begins
  size_t position = 0;
  for (const Part& part : parts) {
    while (part.parse_special && position < part.end) {
      const auto match = specials_.MatchAt(text.substr(position, part.end - position));
      if (!match) {
        ++position;
        continue;
      }
      EncodeStretch(text.substr(stretch, position - stretch), merger, ids);
      ids.push_back(match->id);
      position += match->size;
      stretch = position;
    }
    position = part.end;
  }
  EncodeStretch(text.substr(stretch), merger, ids);
  return ids;
}

/// Merges run over the whole stretch. It is only cut where no merge can ever reach across, which
/// changes no id and keeps the heaps small.
void Tokenizer::EncodeStretch(std::string_view text, PairMerger& merger,
                              std::vector<int>& ids) const {
  std::vector<int32_t>& pieces = merger.pieces();
  bool is_unknown = false;
  char32_t last = 0;
  for (size_t position = 0; position < text.size();) {
    const bool is_space = text[position] == ' ';
    const Utf8Step step = DecodeUtf8(is_space ? kSpacePiece : text.substr(position));
    const auto size = static_cast<size_t>(step.size);
    if (!pieces.empty() && !is_unknown && !joins_.MayJoin(last, step.character)) {
      merger.MergeInto(ids);
    }
    is_unknown =
        AddPieces(is_space ? kSpacePiece : text.substr(position, size), is_unknown, pieces);
    last = step.character;
    position += is_space ? 1 : size;
  }
  merger.MergeInto(ids);
}

/// Adds the token of one character, or those of its bytes; a run of characters that have neither
/// becomes one unknown token. Returns whether this one is unknown.
bool Tokenizer::AddPieces(std::string_view character, bool is_after_unknown,
                          std::vector<int32_t>& pieces) const {
  const auto first = static_cast<uint8_t>(character[0]);
  const int32_t piece = first < ascii_pieces_.size() ? ascii_pieces_[first] : PieceOf(character);
  if (piece >= 0) {
    pieces.push_back(piece);
    return false;
  }
  const auto has_token = [this](char byte) {
    return vocab_->byte_id(static_cast<uint8_t>(byte)) >= 0;
  };
  if (!std::all_of(character.begin(), character.end(), has_token)) {
    if (!is_after_unknown) {
      pieces.push_back(vocab_->unk_id());
    }
    return true;
  }
  for (const char byte : character) {
    pieces.push_back(vocab_->byte_id(static_cast<uint8_t>(byte)));
  }
  return false;
}

/// The token of one character; special tokens are out of reach here.
int32_t Tokenizer::PieceOf(std::string_view character) const {
  const std::optional<int> id = vocab_->Find(character);
  return id && !vocab_->is_special(*id) ? *id : -1;
}

}  // namespace facet
