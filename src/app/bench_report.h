// SPDX-License-Identifier: Apache-2.0
// What `facet bench` found: a table for people, of which each row can be printed as soon as it is
// measured, and JSON for programs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/bench_plan.h"
#include "app/bench_work.h"
#include "app/terminal.h"
#include "base/json.h"

namespace facet {

/// Where, on what and how it was measured.
struct BenchSetting {
  std::string cpu;  ///< its name
  int n_cores = 0;  ///< physical ones that the process may use
  int64_t memory_bytes = 0;
  std::string isa;
  int n_threads = 0;
  std::string kv_type;
  bool is_packed = false;
  MachineRates rates;

  std::string model;  ///< its name
  std::string file;
  uint64_t file_bytes = 0;
  double bytes_per_token = 0;
  double load_s = 0;
  std::string drafter_file;  ///< empty: none
  uint64_t drafter_bytes = 0;
};

/// A case and the seconds of each repetition, at least one.
struct BenchResult {
  BenchCase bench;
  BenchWork work;  ///< of one repetition
  std::vector<double> seconds;
};

struct Spread {
  double median = 0;  ///< of an even number, the mean of the middle two
  double min = 0;
  double max = 0;
};
/// `values` is not empty.
Spread SpreadOf(std::span<const double> values);

/// The name that /proc/cpuinfo gives the first processor; "unknown" where it gives none (Arm).
std::string CpuName(std::string_view cpuinfo);

/// The setting, some lines; the head of the table of rows; and its rows.
std::string BenchHead(const BenchSetting& setting);
std::string BenchColumns(const Style& style);
std::string BenchRow(const BenchSetting& setting, const BenchResult& result, const Style& style);

/// `is_complete`: nothing that was planned is missing.
Json BenchJson(const BenchSetting& setting, std::span<const BenchResult> results, bool is_complete);

}  // namespace facet
