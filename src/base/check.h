// SPDX-License-Identifier: Apache-2.0
// Broken invariants of our own code. A failed check is a bug: it prints where and aborts. Bad input
// is never checked with these: that is a Result (status.h).
#pragma once

namespace facet {

/// Prints "CHECK failed: EXPRESSION at FILE:LINE" to stderr and aborts.
[[noreturn]] void CheckFailed(const char* expression, const char* file, int line);

}  // namespace facet

#define FACET_CHECK(condition)                              \
  do {                                                      \
    if (!(condition)) {                                     \
      ::facet::CheckFailed(#condition, __FILE__, __LINE__); \
    }                                                       \
  } while (false)
