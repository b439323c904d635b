// SPDX-License-Identifier: Apache-2.0
// What a template may cost. Templates come out of model files that nobody has checked, so every
// loop, every recursion and every value made is counted, and the count is checked before the work
// or the allocation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/status.h"

namespace facet::jinja {

struct Limits {
  int64_t max_steps = 10'000'000;  ///< nodes evaluated, plus the work inside filters
  /// Nesting of expressions and statements in the text, and of calls when rendering. The default
  /// takes at most half of a thread's stack of 1 MiB (limits_test.cc).
  int max_depth = 100;
  size_t max_output_bytes = size_t{64} << 20;
  size_t max_template_bytes = size_t{1} << 20;
  size_t max_value_bytes = size_t{512}
                           << 20;  ///< all strings and lists made by one rendering, together
};

/// Something found when compiling that need not be an error when rendering (a call of an unknown
/// function in a branch).
struct Finding {
  int line;
  int column;
  std::string text;
};

/// Lists and dicts may nest this deep: more than data can (base/json.h allows 200), few enough for
/// recursion.
inline constexpr int kMaxNesting = 400;

/// What is left of the limits during one rendering. Errors have no place yet; the evaluator adds
/// it.
class Budget {
 public:
  explicit Budget(const Limits& limits) : limits_(limits), steps_left_(limits.max_steps) {}

  [[nodiscard]] const Limits& limits() const { return limits_; }

  Status Step(uint64_t n = 1) {
    if (n > static_cast<uint64_t>(steps_left_)) {
      return TooManySteps();
    }
    steps_left_ -= static_cast<int64_t>(n);
    return {};
  }
  /// Before reading `bytes` of text.
  Status Scan(size_t bytes) { return Step(bytes / 1024); }
  /// Before making a value of `bytes`; also pays for the time to fill it.
  Status Make(size_t bytes) {
    if (bytes > limits_.max_value_bytes - bytes_made_) {
      return TooManyBytes();
    }
    bytes_made_ += bytes;
    return Scan(bytes);
  }

 private:
  [[nodiscard]] Error TooManySteps() const;
  [[nodiscard]] Error TooManyBytes() const;

  Limits limits_;
  int64_t steps_left_;
  size_t bytes_made_ = 0;
};

}  // namespace facet::jinja
