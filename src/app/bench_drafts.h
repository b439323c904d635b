// SPDX-License-Identifier: Apache-2.0
// What `facet bench --drafting` found: how long steps with rows to verify and chains of drafts
// take, and so how many drafts must be accepted to gain time. A drafter of random weights has no
// acceptance of its own, but costs what a trained one does.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "app/terminal.h"
#include "base/json.h"

namespace facet {

/// Of sequences that generate together, at one depth.
struct DraftCosts {
  int n_sequences = 1;
  int n_depth = 0;
  std::vector<double> verify_s;  ///< [n]: a step with n + 1 rows of each; not empty
  std::vector<double> draft_s;   ///< [n]: n + 1 drafts for each; empty: without a drafter
};

struct DraftGain {
  double break_even = 0;  ///< share of the drafts to be accepted for the time per token without any
  double speed_up = 0;    ///< tokens per second against those without, if all are accepted
};
/// Of steps with so many drafts for each sequence, at least 1, whose times are known. Where there
/// is no drafter, drafts are taken to cost nothing, as those from the text's own repetition.
DraftGain GainOf(const DraftCosts& costs, int n_drafts);

/// A table, with its head.
std::string DraftTable(const DraftCosts& costs, const Style& style);
Json DraftJson(std::span<const DraftCosts> all);

}  // namespace facet
