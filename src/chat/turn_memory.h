// SPDX-License-Identifier: Apache-2.0
// The tokens that replies were made of. A client sends a conversation back as text, and a text can
// be divided into tokens in many ways; the model drew one of them. A prompt that begins with a turn
// remembered here gets the very tokens back, so that its keys and values are found again
// (kv/prefix_tree.h). An edited turn is not found and is tokenised as any text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "text/vocab.h"

namespace facet {

/// May be used by several threads.
class TurnMemory {
 public:
  /// Forgets what was not used for the longest time when it holds more than `max_bytes`. The
  /// vocabulary must outlive it.
  TurnMemory(const Vocab* vocab, size_t max_bytes);
  ~TurnMemory();
  TurnMemory(const TurnMemory&) = delete;
  TurnMemory& operator=(const TurnMemory&) = delete;

  /// `reply` holds all tokens drawn after `prompt`, the end token too. Only prompts of the same
  /// salt get them back.
  void Remember(std::span<const int32_t> prompt, std::span<const int32_t> reply,
                std::string_view salt = {});

  /// The prompt with its longest remembered beginning in the tokens remembered; the text that the
  /// tokens spell, and which of it are control tokens, stays the same.
  [[nodiscard]] std::vector<int32_t> Restore(std::vector<int32_t> prompt,
                                             std::string_view salt = {}) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace facet
