// SPDX-License-Identifier: Apache-2.0
// Runs a program of bits_program.h on a model and compares logits bit for bit with those of each
// prompt computed alone. Stands in for the engine: it gives rows their blocks, so that it can place
// them worse than the engine ever would.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "app/bits_program.h"
#include "base/status.h"
#include "model/model.h"
#include "model/runner.h"

namespace facet::bits {

/// What must not change a result, the KV type excepted.
struct Settings {
  Isa isa = Isa::kScalar;
  int n_threads = 1;
  bool is_packed = false;
  KvType kv_type = KvType::kF32;

  bool operator==(const Settings&) const = default;
};

/// "avx2, 2 threads, packed, KV f16"
std::string ToText(const Settings& settings);

/// With KV memory for every program, however it places its blocks.
RunnerOptions ToRunnerOptions(const Settings& settings);

/// The logits of each position of a prompt, [n_vocab] each.
using PromptLogits = std::vector<std::vector<float>>;

/// One row at a time (a span at once), blocks in order, nobody beside it: at most the rows before
/// `end`; no span may be cut there.
Result<PromptLogits> RunAlone(Runner* runner, const Prompt& prompt, int end = kMaxPositions);

/// The first logit that differs.
struct Difference {
  size_t batch = 0;  ///< of the program
  int sequence = 0;
  int pos = 0;
  int n_rows = 0;    ///< of the whole batch
  int token = 0;     ///< whose logit it is
  int n_tokens = 0;  ///< of the row whose logits differ
  float found = 0;
  float wanted = 0;
};

/// "batch 3 of 17 rows, sequence 1, position 40: logit of token 7 is 1.5 (0x3fc00000), wanted …"
std::string ToText(const Difference& difference);

struct Outcome {
  int64_t n_compared = 0;  ///< rows
  int64_t n_taken = 0;     ///< positions that were not computed but taken from another sequence
  std::optional<Difference> difference;
};

/// Runs the program until a row differs. `alone` are the logits of each prompt; of noise none.
Result<Outcome> RunAndCompare(Runner* runner, std::span<const Prompt> prompts,
                              const std::vector<PromptLogits>& alone, const Program& program);

}  // namespace facet::bits
