// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer.h"

#include <algorithm>
#include <functional>

#include "base/check.h"
#include "base/utf8.h"

namespace facet {
namespace {

constexpr int32_t kGone = -1;

/// Byte-pair merging of one stretch: a linked list of pieces, and a heap of the merges that are
/// possible. The order is by rank, then from left to right. Entries that have become stale are
/// dropped when their turn comes: pieces only ever grow, so an entry is good exactly when both of
/// its tokens still stand there.
class PairMerger {
 public:
  PairMerger(const Vocab& vocab, std::vector<int32_t> pieces)
      : vocab_(vocab), ids_(std::move(pieces)) {
    const size_t n = ids_.size();
    next_.resize(n);
    previous_.resize(n);
    for (size_t i = 0; i < n; ++i) {
      next_[i] = static_cast<uint32_t>(i + 1);
      previous_[i] = static_cast<uint32_t>(i - 1);  // wraps for the first piece, which nobody asks
    }
    heap_.reserve(n);
    for (size_t i = 0; i + 1 < n; ++i) {
      const int rank = vocab_.FindMerge(ids_[i], ids_[i + 1]);
      if (rank >= 0) {
        heap_.push_back(Key(rank, i));
      }
    }
    std::make_heap(heap_.begin(), heap_.end(), std::greater<>());
  }

  void Run() {
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
      const uint64_t key = heap_.back();
      heap_.pop_back();
      Apply(vocab_.merges()[key >> 32], static_cast<uint32_t>(key));
    }
  }

  /// What is left, in order.
  void AppendTo(std::vector<int>& out) const {
    for (const int32_t id : ids_) {
      if (id != kGone) {
        out.push_back(id);
      }
    }
  }

 private:
  static uint64_t Key(int rank, size_t position) {
    return (static_cast<uint64_t>(rank) << 32) | position;
  }

  void Apply(const Merge& merge, uint32_t position) {
    const uint32_t second = next_[position];
    if (ids_[position] != merge.left || second == ids_.size() || ids_[second] != merge.right) {
      return;
    }
    ids_[position] = merge.merged;
    ids_[second] = kGone;
    const uint32_t after = next_[second];
    next_[position] = after;
    if (after != ids_.size()) {
      previous_[after] = position;
      Offer(position, after);
    }
    if (position != 0) {
      Offer(previous_[position], position);
    }
  }

  void Offer(uint32_t left, uint32_t right) {
    const int rank = vocab_.FindMerge(ids_[left], ids_[right]);
    if (rank >= 0) {
      heap_.push_back(Key(rank, left));
      std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
    }
  }

  const Vocab& vocab_;
  std::vector<int32_t> ids_;  // kGone where a piece was merged into the one before
  std::vector<uint32_t> next_;
  std::vector<uint32_t> previous_;
  std::vector<uint64_t> heap_;  // rank and position of the left piece
};

}  // namespace

Tokenizer::Tokenizer(const Vocab* vocab) : vocab_(vocab), specials_(*vocab) {
  for (size_t c = 0; c < ascii_pieces_.size(); ++c) {
    const char character = static_cast<char>(c);
    ascii_pieces_[c] = PieceOf(character == ' ' ? kSpacePiece : std::string_view(&character, 1));
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
  size_t stretch = 0;  // where the text after the last special token begins
  size_t position = 0;
  for (const Part& part : parts) {
    while (part.parse_special && position < part.end) {
      const auto match = specials_.MatchAt(text.substr(position, part.end - position));
      if (!match) {
        ++position;
        continue;
      }
      EncodeStretch(text.substr(stretch, position - stretch), ids);
      ids.push_back(match->id);
      position += match->size;
      stretch = position;
    }
    position = part.end;
  }
  EncodeStretch(text.substr(stretch), ids);
  return ids;
}

void Tokenizer::EncodeStretch(std::string_view text, std::vector<int>& ids) const {
  if (text.empty()) {
    return;
  }
  PairMerger merger(*vocab_, Pieces(text));
  merger.Run();
  merger.AppendTo(ids);
}

/// The tokens to start from: one for each character, or for each of its bytes; a run of characters
/// that have neither becomes one unknown token.
std::vector<int32_t> Tokenizer::Pieces(std::string_view text) const {
  std::vector<int32_t> pieces;
  pieces.reserve(text.size());
  bool is_after_unknown = false;
  for (size_t position = 0; position < text.size();) {
    const auto first = static_cast<uint8_t>(text[position]);
    const bool is_ascii = first < ascii_pieces_.size();
    const size_t size = is_ascii ? 1 : static_cast<size_t>(DecodeUtf8(text.substr(position)).size);
    const std::string_view character = first == ' ' ? kSpacePiece : text.substr(position, size);
    const int32_t piece = is_ascii ? ascii_pieces_[first] : PieceOf(character);
    position += size;
    const auto has_byte = [this](char byte) {
      return vocab_->byte_id(static_cast<uint8_t>(byte)) >= 0;
    };
    const bool is_unknown = piece < 0 && !std::all_of(character.begin(), character.end(), has_byte);
    if (is_unknown && !is_after_unknown) {
      pieces.push_back(vocab_->unk_id());
    } else if (piece >= 0) {
      pieces.push_back(piece);
    } else if (!is_unknown) {
      for (const char byte : character) {
        pieces.push_back(vocab_->byte_id(static_cast<uint8_t>(byte)));
      }
    }
    is_after_unknown = is_unknown;
  }
  return pieces;
}

/// The token of one character; special tokens are out of reach here.
int32_t Tokenizer::PieceOf(std::string_view character) const {
  const std::optional<int> id = vocab_->Find(character);
  return id && !vocab_->is_special(*id) ? *id : -1;
}

}  // namespace facet
