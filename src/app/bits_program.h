// SPDX-License-Identifier: Apache-2.0
// What the proof of the numbers contract draws: prompts, and programs, which are ways to compute
// them (chunks, neighbours, drafts that are rejected, beginnings that are shared, blocks in any
// order). A program is plain data, and every list of parts is a valid one, so that a failing
// program can be made shorter until nothing can be left out. Runs nothing (bits_run.h does).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace facet::bits {

inline constexpr int kMaxPositions = 128;  ///< of a prompt
inline constexpr int kMaxDraft = 8;        ///< rows of a draft
inline constexpr int kMaxSequences = 6;    ///< of a program

/// Draws that are the same on every machine.
class Dice {
 public:
  explicit Dice(uint64_t seed) : seed_(seed) {}
  uint64_t Bits();
  /// Uniform in [low, high].
  int Between(int low, int high);
  bool OneIn(int n) { return Between(1, n) == 1; }

 private:
  uint64_t seed_;
  uint64_t n_drawn_ = 0;
};

struct Prompt {
  std::vector<int32_t> tokens;
  std::vector<int32_t> span_end;  ///< of each position: one past the end of its span; -1: text
  std::vector<float> soft = {};   ///< [positions in spans, n_embd]
  int n_embd = 0;
  bool is_noise = false;  ///< runs beside others, and its logits are never compared

  [[nodiscard]] int n_positions() const { return static_cast<int>(tokens.size()); }
  /// Whether the rows before and at `pos` belong to one span, so that no batch may begin there.
  [[nodiscard]] bool IsInsideSpan(int pos) const;
};

struct PromptChoice {
  int n_vocab = 0;
  int n_embd = 0;
  int n_positions = kMaxPositions;  ///< of the longest prompt, at least 1 and at most kMaxPositions
  bool has_soft = false;  ///< also rows that are no tokens, among noise also NaN and infinity
};

/// Three prompts to be compared: a long one, one that begins like it, a short one. Then noise.
std::vector<Prompt> DrawPrompts(const PromptChoice& choice, Dice* dice);

enum class WantedLogits { kNone, kLast, kAll };

/// The next rows of a sequence, in one batch. What does not fit is cut: a sequence that is at its
/// end takes no part, rows end with the prompt, and a span is never cut.
struct Part {
  int sequence = 0;
  int n_rows = 1;
  WantedLogits wanted = WantedLogits::kLast;
  /// Positions that are forgotten before and computed again; all, where fewer cannot be (their
  /// sliding blocks are gone, or they are shared).
  int n_back = 0;
  /// Rows after the first carry other tokens and are forgotten after the batch, as drafts that were
  /// rejected are.
  bool is_draft = false;

  bool operator==(const Part&) const = default;
};

struct Program {
  std::vector<int> prompts;  ///< of each sequence
  /// Of each sequence: the one whose blocks it takes for what both begin with; -1: none. Who gives
  /// keeps blocks to the end; others give them back when done, to be used again as they are.
  std::vector<int> donors;
  bool is_scattered = false;  ///< blocks are taken in drawn order
  uint64_t seed = 0;          ///< of the tokens of drafts and the order of blocks
  std::vector<std::vector<Part>> batches = {};

  bool operator==(const Program&) const = default;
};

/// A program in which every sequence reaches its end. `prompts` are those of DrawPrompts.
Program DrawProgram(std::span<const Prompt> prompts, Dice* dice);

/// A program that fails and of which nothing can be left out so that it still does; `program`
/// itself fails. Stops after `max_tries` calls of `fails`.
Program Shrink(Program program, int max_tries, const std::function<bool(const Program&)>& fails);

/// A line for each sequence that takes part and for each batch.
std::string ToText(const Program& program);

}  // namespace facet::bits
