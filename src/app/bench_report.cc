// SPDX-License-Identifier: Apache-2.0
#include "app/bench_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/progress.h"
#include "app/text_width.h"
#include "base/check.h"
#include "base/utf8.h"

namespace facet {
namespace {

/// Three digits, as many decimals as they leave: "12.3", "1234".
std::string Digits(double value) {
  const int n_decimals = value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f}", value, n_decimals);
}

/// In billions, or a dash for nothing.
std::string Billions(double value) { return value > 0 ? Digits(value * 1e-9) : "-"; }

Spread RatesOf(const BenchResult& result) {
  std::vector<double> rates;
  rates.reserve(result.seconds.size());
  for (const double seconds : result.seconds) {
    rates.push_back(result.bench.n_tokens() / seconds);
  }
  return SpreadOf(rates);
}

Json JsonOf(const Spread& spread) {
  return Json::MakeObject({{"median", spread.median}, {"min", spread.min}, {"max", spread.max}});
}

Json JsonOf(const BenchSetting& setting, const BenchResult& result) {
  const Spread seconds = SpreadOf(result.seconds);
  const BenchLimit limit = LimitOf(result.work, setting.rates, seconds.median);
  const BenchCase& bench = result.bench;
  Json json =
      Json::MakeObject({{"name", NameOf(bench)},
                        {"kind", bench.is_prefill() ? "prefill" : "decode"},
                        {"n_prompt", bench.n_prompt},
                        {"n_gen", bench.n_gen},
                        {"n_depth", bench.n_depth},
                        {"parallel", bench.n_sequences},
                        {"tokens", bench.n_tokens()},
                        {"seconds", JsonOf(seconds)},
                        {"tokens_per_second", JsonOf(RatesOf(result))},
                        {"operations_per_second", result.work.operations / seconds.median}});
  if (result.work.bytes > 0) {
    json.Set("bytes_per_second", result.work.bytes / seconds.median);
  }
  json.Set("limit", limit.is_memory ? "memory" : "arithmetic");
  json.Set("share_of_limit", limit.share);
  Json all;
  for (const double value : result.seconds) {
    all.Append(value);
  }
  json.Set("repetitions", std::move(all));
  return json;
}

}  // namespace

Spread SpreadOf(std::span<const double> values) {
  FACET_CHECK(!values.empty());
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const size_t n = sorted.size();
  return {(sorted[(n - 1) / 2] + sorted[n / 2]) / 2, sorted.front(), sorted.back()};
}

std::string CpuName(std::string_view cpuinfo) {
  constexpr std::string_view kKey = "model name";
  const size_t key = cpuinfo.starts_with(kKey) ? 0 : cpuinfo.find(std::string("\n") + kKey.data());
  const size_t colon = key == std::string_view::npos ? key : cpuinfo.find(": ", key);
  if (colon == std::string_view::npos) {
    return "unknown";
  }
  const std::string_view rest = cpuinfo.substr(colon + 2);
  const std::string_view name = rest.substr(0, rest.find('\n'));
  return IsValidUtf8(name) && !name.empty() ? std::string(name) : "unknown";
}

std::string BenchHead(const BenchSetting& setting) {
  const auto plural = [](int n) { return n == 1 ? "" : "s"; };
  const std::string drafter =
      setting.drafter_file.empty()
          ? ""
          : fmt::format("drafter  {}: {}\n", ShownBytes(static_cast<double>(setting.drafter_bytes)),
                        ShownLine(setting.drafter_file));
  return fmt::format(
      "model    {}, {}: {}\n"
      "{}"
      "machine  {}, {} core{}, {} of memory\n"
      "compute  {}, {} thread{}, weights {}, keys and values {}\n"
      "limits   {}/s read, {} Gop/s multiplied\n",
      ShownLine(setting.model), ShownBytes(static_cast<double>(setting.file_bytes)),
      ShownLine(setting.file), drafter, ShownLine(setting.cpu), setting.n_cores,
      plural(setting.n_cores), ShownBytes(static_cast<double>(setting.memory_bytes)), setting.isa,
      setting.n_threads, plural(setting.n_threads), setting.is_packed ? "packed" : "as in the file",
      setting.kv_type, ShownBytes(setting.rates.read_bytes), Billions(setting.rates.operations));
}

std::string BenchColumns(const Style& style) {
  return fmt::format("\n{}{:<23}{:>9}{:>16}{:>7}{:>7}  {}{}\n", style.bold, "work", "tokens/s",
                     "min .. max", "GB/s", "Gop/s", "of the limit", style.reset);
}

std::string BenchRow(const BenchSetting& setting, const BenchResult& result, const Style& style) {
  const double seconds = SpreadOf(result.seconds).median;
  const Spread rates = RatesOf(result);
  const BenchLimit limit = LimitOf(result.work, setting.rates, seconds);
  return fmt::format("{:<23}{}{:>9}{}{}{:>16}{}{:>7}{:>7}  {:.0f}% {}\n", NameOf(result.bench),
                     style.bold, Digits(rates.median), style.reset, style.dim,
                     Digits(rates.min) + " .. " + Digits(rates.max), style.reset,
                     Billions(result.work.bytes / seconds),
                     Billions(result.work.operations / seconds), 100 * limit.share,
                     limit.is_memory ? "memory" : "arithmetic");
}

Json BenchJson(const BenchSetting& setting, std::span<const BenchResult> results,
               bool is_complete) {
  Json cases = Json(Json::Array());
  for (const BenchResult& result : results) {
    cases.Append(JsonOf(setting, result));
  }
  const Json drafter =
      setting.drafter_file.empty()
          ? Json()
          : Json::MakeObject({{"file", setting.drafter_file}, {"bytes", setting.drafter_bytes}});
  return Json::MakeObject(
      {{"machine", Json::MakeObject({{"cpu", setting.cpu},
                                     {"cores", setting.n_cores},
                                     {"memory_bytes", setting.memory_bytes},
                                     {"read_bytes_per_second", setting.rates.read_bytes},
                                     {"operations_per_second", setting.rates.operations}})},
       {"isa", setting.isa},
       {"threads", setting.n_threads},
       {"kv_type", setting.kv_type},
       {"packed", setting.is_packed},
       {"model", Json::MakeObject({{"name", setting.model},
                                   {"file", setting.file},
                                   {"bytes", setting.file_bytes},
                                   {"bytes_per_token", setting.bytes_per_token}})},
       {"drafter", drafter},
       {"load_seconds", setting.load_s},
       {"complete", is_complete},
       {"results", std::move(cases)}});
}

}  // namespace facet
