// SPDX-License-Identifier: Apache-2.0
// What `facet bench` measures: the lists of its options become cases, checked against the model.
// The options are named as those of llama-bench, and mean the same.
#pragma once

#include <string>
#include <vector>

#include "app/options.h"
#include "base/status.h"

namespace facet {

/// One thing to be measured, of `n_sequences` that run together. Either a prompt of `n_prompt`
/// tokens, of which the last one's logits are wanted; or `n_gen` tokens one after the other for
/// each sequence, with the logits of each, after `n_depth` tokens that are not timed. Generated
/// tokens may come several at a time, as those that are verified.
struct BenchCase {
  int n_prompt = 0;
  int n_gen = 0;
  int n_depth = 0;
  int n_sequences = 1;
  int n_rows = 1;  ///< of each sequence in a step of generation

  [[nodiscard]] bool is_prefill() const { return n_prompt > 0; }
  /// Tokens that are timed.
  [[nodiscard]] int n_tokens() const { return is_prefill() ? n_prompt : n_gen * n_sequences; }
  /// That each sequence has at its end.
  [[nodiscard]] int n_positions() const { return is_prefill() ? n_prompt : n_depth + n_gen; }
};

/// "prefill 512", "decode 32 at 4096", "decode 8 x 32" (eight sequences), "verify 4 x 5 rows at
/// 512".
std::string NameOf(const BenchCase& bench);

/// Steps that are timed of a case of --drafting.
inline constexpr int kVerifySteps = 2;

struct BenchPlan {
  std::vector<BenchCase> cases;  ///< prompts, then one sequence at every depth, then several
  /// With --drafting: steps of 1 to kMaxDrafts rows of one sequence, then of several.
  std::vector<BenchCase> verify_cases;
  std::vector<BenchCase> left_out;  ///< of the defaults: longer than the model's context
  int n_repetitions = 0;
  int n_context = 0;  ///< positions of the longest case
};

/// Several sequences are measured at the first depth only. Refused: lists that are no lists,
/// nothing to measure, and a case that was asked for and is longer than the model's context.
Result<BenchPlan> PlanBench(const Options& options, int n_model_context);

}  // namespace facet
