// SPDX-License-Identifier: Apache-2.0
// One running request: its tokens, which of them have K/V and where, and what decides about the
// next one. Knows no other sequence, no runner and no clock.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "engine/logprobs.h"
#include "engine/repetition_guard.h"
#include "engine/request.h"
#include "engine/sampler.h"
#include "engine/scheduler.h"
#include "engine/stop_matcher.h"
#include "kv/block_table.h"
#include "kv/prefix_tree.h"
#include "model/batch.h"

namespace facet {

/// What holds for every sequence.
struct SequenceLimits {
  int n_context = 0;  ///< most tokens, prompt and reply together
  int window = 0;  ///< of the sliding layers; 0: there are none, and no blocks are taken for them
};

/// Holds blocks of both pools while it runs. The pools must outlive it.
class Sequence {
 public:
  /// The request has passed CheckRequest.
  Sequence(Request request, const SequenceLimits& limits, BlockPool* sliding, BlockPool* full);

  [[nodiscard]] uint64_t id() const { return request_.id; }
  [[nodiscard]] std::span<const int32_t> tokens() const { return tokens_; }
  /// What the prefix tree knows the tokens by.
  [[nodiscard]] std::span<const PrefixUnit> units() const { return units_; }
  [[nodiscard]] std::span<const int32_t> reply() const;
  [[nodiscard]] int n_prompt() const { return static_cast<int>(request_.prompt.size()); }
  [[nodiscard]] int n_generated() const { return static_cast<int>(tokens_.size()) - n_prompt(); }
  [[nodiscard]] SequenceState state() const;
  /// The pictures among the prompt's media.
  [[nodiscard]] std::span<const RowSpan> spans() const { return spans_; }
  [[nodiscard]] const Request& request() const { return request_; }
  [[nodiscard]] int n_thought() const { return n_thought_; }
  [[nodiscard]] bool thought_was_cut() const { return thought_was_cut_; }

  /// It begins with `n_positions` that were computed for others, whose blocks the caller puts into
  /// the tables; it has none of its own yet.
  void Resume(int n_positions);
  [[nodiscard]] BlockTable& table(KvGroup group) {
    return group == KvGroup::kFull ? full_ : sliding_;
  }

  /// Takes blocks for the next `n_rows` positions. The plan made sure that they are there.
  void Reserve(int n_rows);
  /// The next `n_rows` positions have K/V now, of tokens that are the sequence's; blocks reserved
  /// for more are given back.
  void Advance(int n_rows);
  /// Gives back blocks that the window has left.
  void DropPassed();
  /// Gives all blocks back; everything is computed again when it is resumed.
  void Preempt();
  [[nodiscard]] SequenceBlocks blocks() const { return {sliding_.blocks(), full_.blocks()}; }

  /// The token after the last one. An Error concerns this sequence alone.
  Result<int32_t> Draw(std::span<const float> logits);
  /// The log probabilities of the next token that is released (n_top_logprobs was not -1).
  TokenLogprobs TakeLogprobs();
  /// Appends a drawn token, `bytes` being what it adds to the text; tokens that may be told go to
  /// `released`. The reason when the reply ends with it; then all that belongs to the text has been
  /// released.
  std::optional<FinishReason> Accept(int32_t token, std::string_view bytes,
                                     std::vector<TextPiece>& released);
  /// The reply ends for a reason outside: releases what was held for a stop text.
  void Flush(std::vector<TextPiece>& released) { stop_matcher_.Flush(released); }

 private:
  [[nodiscard]] std::optional<FinishReason> LimitReached();
  void CountThought(int32_t token);

  Request request_;
  std::vector<int32_t> tokens_;    ///< prompt and reply
  std::vector<PrefixUnit> units_;  ///< of tokens_
  std::vector<RowSpan> spans_;
  SequenceLimits limits_;
  int n_computed_ = 0;  ///< positions with K/V
  BlockTable sliding_;
  BlockTable full_;
  Sampler sampler_;
  StopMatcher stop_matcher_;
  RepetitionGuard guard_;
  std::deque<TokenLogprobs> logprobs_;  ///< of drawn tokens that have not been released
  bool is_thinking_;
  int n_thought_ = 0;
  bool thought_was_cut_ = false;
};

}  // namespace facet
