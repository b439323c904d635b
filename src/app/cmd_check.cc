// SPDX-License-Identifier: Apache-2.0
// `facet check`: whether this machine computes what it should.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <charconv>
#include <utility>

#include "app/bits_check.h"
#include "app/commands.h"
#include "app/generator.h"
#include "app/loaded_model.h"
#include "app/progress.h"
#include "app/terminal.h"
#include "base/file.h"
#include "base/json.h"

namespace facet {
namespace {

using bits::CheckedSettings;
using bits::CheckOptions;
using bits::CheckReport;
using bits::Finding;
using bits::Settings;

/// Memory that can be had without swapping; what the system does not tell counts as enough.
int64_t AvailableBytes() {
  constexpr std::string_view kKey = "MemAvailable:";
  const Result<std::string> info = ReadFile("/proc/meminfo", uint64_t{1} << 20);
  const size_t at = info.ok() ? info->find(kKey) : std::string::npos;
  if (at == std::string::npos) {
    return INT64_MAX;
  }
  const size_t digits = info->find_first_of("0123456789", at);
  int64_t n_kib = 0;
  if (digits != std::string::npos) {
    std::from_chars(info->data() + digits, info->data() + info->size(), n_kib);
  }
  return n_kib > 0 ? n_kib * 1024 : INT64_MAX;
}

std::string ResultText(const CheckReport& report, uint64_t seed) {
  std::string text = fmt::format("reference  {}, one row at a time, prompts of {} tokens\n",
                                 ToText(report.reference), fmt::join(report.n_positions, ", "));
  for (const CheckedSettings& one : report.checked) {
    text += fmt::format("{:<40} {:>5} rows in {} programs\n", ToText(one.settings), one.n_compared,
                        one.n_programs);
  }
  if (report.is_too_large_to_pack) {
    text += "packed weights were left out: not enough memory for a second copy\n";
  }
  if (report.n_left_out > 0) {
    text += fmt::format("{} settings were not reached (--seconds N for more)\n", report.n_left_out);
  }
  if (!report.finding) {
    return text + fmt::format("{} comparisons, all equal (seed {})\n", report.n_compared(), seed);
  }
  return text +
         fmt::format(
             "DIFFERENT (seed {}): with {}\n{}{}\n"
             "The same bits are promised: this is a fault of Facet or of this machine. "
             "Please report these lines, the model's name and the processor's (facet inspect "
             "tells both).\n",
             seed, ToText(report.finding->settings), ToText(report.finding->program),
             ToText(report.finding->difference));
}

Json SettingsJson(const Settings& settings) {
  return Json::MakeObject({{"isa", NameOf(settings.isa)},
                           {"threads", settings.n_threads},
                           {"packed", settings.is_packed},
                           {"kv_type", NameOf(settings.kv_type)}});
}

Json FindingJson(const Finding& finding) {
  Json json = SettingsJson(finding.settings);
  const bits::Difference& difference = finding.difference;
  json.Set("program", ToText(finding.program));
  json.Set("batch", static_cast<int64_t>(difference.batch));
  json.Set("rows", difference.n_rows);
  json.Set("sequence", difference.sequence);
  json.Set("position", difference.pos);
  json.Set("token", difference.token);
  json.Set("found", static_cast<double>(difference.found));
  json.Set("wanted", static_cast<double>(difference.wanted));
  return json;
}

std::string ResultJson(const CheckReport& report, const std::string& model, uint64_t seed) {
  Json json = Json::MakeObject({{"model", model},
                                {"seed", seed},
                                {"reference", SettingsJson(report.reference)},
                                {"comparisons", report.n_compared()},
                                {"equal", !report.finding.has_value()}});
  Json checked(Json::Array{});
  for (const CheckedSettings& one : report.checked) {
    Json item = SettingsJson(one.settings);
    item.Set("programs", one.n_programs);
    item.Set("rows", one.n_compared);
    checked.Append(std::move(item));
  }
  json.Set("checked", std::move(checked));
  json.Set("settings_left_out", static_cast<int64_t>(report.n_left_out));
  json.Set("too_large_to_pack", report.is_too_large_to_pack);
  json.Set("difference", report.finding ? FindingJson(*report.finding) : Json());
  return json.Dump(2) + "\n";
}

Result<CheckReport> Check(const Options& options, const Checkpoint& checkpoint, uint64_t seed) {
  FACET_ASSIGN(const RunnerOptions runner, RunnerOptionsFrom(options, checkpoint.config()));
  ProgressLine progress("checking");
  return bits::CheckBits(checkpoint,
                         {.seed = seed,
                          .seconds = static_cast<double>(options.check_seconds),
                          .kv_type = runner.kv_type,
                          .n_threads = runner.n_threads,
                          .isa = runner.isa,
                          .may_pack = !options.no_pack,
                          .memory_bytes = AvailableBytes(),
                          .on_progress = [&progress](auto what) { progress.Show(what); }});
}

}  // namespace

int RunCheck(const Options& options) {
  if (!options.bits) {
    return Fail(Refuse("facet check", "nothing to check", "--bits"), kExitFailed);
  }
  const Result<Checkpoint> checkpoint = OpenCheckpoint(options.model);
  if (!checkpoint.ok()) {
    return Fail(checkpoint.error(), kExitModelRefused);
  }
  const uint64_t seed = ChooseSeed(options);
  const Result<CheckReport> report = Check(options, *checkpoint, seed);
  if (!report.ok()) {
    return Fail(report.error(), kExitFailed);
  }
  const Status written = WriteAll(
      STDOUT_FILENO,
      options.json ? ResultJson(*report, checkpoint->path(), seed) : ResultText(*report, seed),
      "standard output");
  if (!written.ok()) {
    return Fail(written.error(), kExitFailed);
  }
  return report->finding ? kExitFailed : kExitDone;
}

}  // namespace facet
