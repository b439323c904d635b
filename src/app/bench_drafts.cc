// SPDX-License-Identifier: Apache-2.0
#include "app/bench_drafts.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"

namespace facet {
namespace {

std::string_view Plural(int n) { return n == 1 ? "" : "s"; }

std::string Milliseconds(double seconds) { return fmt::format("{:.2f} ms", seconds * 1e3); }

/// How many drafts a round may have for its gain to be known.
int MostDrafts(const DraftCosts& costs) {
  const size_t n_verified = costs.verify_s.size() - 1;
  return static_cast<int>(costs.draft_s.empty() ? n_verified
                                                : std::min(n_verified, costs.draft_s.size()));
}

/// "never": not even if all drafts are accepted.
std::string BreakEvenText(double share) {
  if (share > 1) {
    return "never";
  }
  return share <= 0 ? "0%" : fmt::format("{:.1f}%", 100 * share);
}

std::string TableRow(const DraftCosts& costs, int n_drafts) {
  const double seconds = costs.verify_s[static_cast<size_t>(n_drafts)];
  const std::string name =
      n_drafts == 0 ? "1 row"
                    : fmt::format("{} rows, {} draft{}", n_drafts + 1, n_drafts, Plural(n_drafts));
  std::string row = fmt::format("{:<23}{:>12}{:>12.2f}", name, Milliseconds(seconds),
                                seconds / costs.verify_s[0]);
  if (n_drafts > 0 && n_drafts <= MostDrafts(costs)) {
    const DraftGain gain = GainOf(costs, n_drafts);
    row += fmt::format("{:>12}{:>12}{:>13.2f}x",
                       costs.draft_s.empty()
                           ? "-"
                           : Milliseconds(costs.draft_s[static_cast<size_t>(n_drafts) - 1]),
                       BreakEvenText(gain.break_even), gain.speed_up);
  }
  return row + "\n";
}

Json ListOf(std::span<const double> values) {
  Json::Array items;
  items.reserve(values.size());
  for (const double value : values) {
    items.emplace_back(value);
  }
  return items;
}

}  // namespace

DraftGain GainOf(const DraftCosts& costs, int n_drafts) {
  const auto n = static_cast<size_t>(n_drafts);
  FACET_CHECK(n_drafts > 0 && n_drafts <= MostDrafts(costs));
  const double plain_s = costs.verify_s[0];
  const double round_s = costs.verify_s[n] + (costs.draft_s.empty() ? 0 : costs.draft_s[n - 1]);
  return {.break_even = (round_s / plain_s - 1) / n_drafts,
          .speed_up = (1 + n_drafts) * plain_s / round_s};
}

std::string DraftTable(const DraftCosts& costs, const Style& style) {
  const std::string title = fmt::format("{} sequence{} at {}", costs.n_sequences,
                                        Plural(costs.n_sequences), costs.n_depth);
  std::string text =
      fmt::format("\n{}{:<23}{:>12}{:>12}{:>12}{:>12}{:>14}{}\n", style.bold, title, "verify",
                  "of one row", "draft", "break-even", "all accepted", style.reset);
  for (int n_drafts = 0; n_drafts < static_cast<int>(costs.verify_s.size()); ++n_drafts) {
    text += TableRow(costs, n_drafts);
  }
  return text;
}

Json DraftJson(std::span<const DraftCosts> all) {
  Json list = Json(Json::Array());
  for (const DraftCosts& costs : all) {
    Json gains = Json(Json::Array());
    for (int n_drafts = 1; n_drafts <= MostDrafts(costs); ++n_drafts) {
      const DraftGain gain = GainOf(costs, n_drafts);
      gains.Append(Json::MakeObject({{"drafts", n_drafts},
                                     {"break_even_acceptance", gain.break_even},
                                     {"speed_up_all_accepted", gain.speed_up}}));
    }
    list.Append(Json::MakeObject({{"parallel", costs.n_sequences},
                                  {"n_depth", costs.n_depth},
                                  {"verify_seconds", ListOf(costs.verify_s)},
                                  {"draft_seconds", ListOf(costs.draft_s)},
                                  {"gains", std::move(gains)}}));
  }
  return list;
}

}  // namespace facet
