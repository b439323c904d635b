// SPDX-License-Identifier: Apache-2.0
// What a request must fulfil before it is queued. Everything behind this check may rely on it:
// tokens lie in the vocabulary, numbers are finite and in range, the prompt fits.
#pragma once

#include "base/status.h"
#include "engine/request.h"
#include "model/runner.h"

namespace facet {

inline constexpr size_t kMaxStopTexts = 64;
inline constexpr size_t kMaxStopBytes = 4096;
inline constexpr size_t kMaxSaltBytes = 512;

/// `info.n_context`: most positions of one sequence, prompt and reply together. The Error names the
/// field, what it holds and what it may hold.
Status CheckRequest(const Request& request, const RunnerInfo& info);

}  // namespace facet
