// SPDX-License-Identifier: Apache-2.0
// The numbers contract checked on a user's own model and machine, within a number of seconds: how
// the time is shared out, and what was found. docs/numbers.md says what it proves.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/bits_program.h"
#include "app/bits_run.h"
#include "base/status.h"
#include "model/checkpoint.h"

namespace facet::bits {

struct CheckOptions {
  uint64_t seed = 0;
  double seconds = 20;  ///< aimed at; the reference and one setting always run
  KvType kv_type = KvType::kF16;
  int n_threads = 0;            ///< 0: 1, 2, 3 and DefaultThreads()
  std::optional<Isa> isa = {};  ///< empty: all of this processor
  bool may_pack = true;
  int64_t memory_bytes = INT64_MAX;  ///< a packed copy of the weights may take
  /// Told what is being done, some times a second at most; may be empty.
  std::function<void(std::string_view what)> on_progress = {};
};

struct CheckedSettings {
  Settings settings;
  int n_programs = 0;
  int64_t n_compared = 0;
};

struct Finding {
  Settings settings;
  Program program;  ///< as short as it became in time
  Difference difference;
};

struct CheckReport {
  Settings reference;
  std::vector<int> n_positions;  ///< of the prompts that are compared
  std::vector<CheckedSettings> checked;
  size_t n_left_out = 0;  ///< settings that the time did not suffice for
  bool is_too_large_to_pack = false;
  std::optional<Finding> finding;

  [[nodiscard]] int64_t n_compared() const;
};

/// The settings to be compared, the one that `facet run` would use first, the others in drawn
/// order; the scalar set not among them unless `isa` asks for it.
std::vector<Settings> SettingsToCheck(const CheckOptions& options, bool may_pack, Dice* dice);

/// Ends at the first difference. One runner lives at a time: the model's file is mapped once, and
/// beside it there is at most one packed copy of its weights, for which memory_bytes must suffice.
Result<CheckReport> CheckBits(const Checkpoint& checkpoint, const CheckOptions& options);

}  // namespace facet::bits
