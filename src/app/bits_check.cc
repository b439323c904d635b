// SPDX-License-Identifier: Apache-2.0
#include "app/bits_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <set>
#include <utility>

#include "app/progress.h"
#include "base/random.h"

namespace facet::bits {
namespace {

using std::chrono::steady_clock;

// The longest prompt, by the speed of the model. Only two lengths, so that a seed says what is
// drawn.
constexpr int kShortLength = 36;  // reaches into a second block
constexpr int kFullLength = 96;
constexpr double kReferenceShare = 0.25;
constexpr double kScalarShare = 0.15;
constexpr double kShrinkSeconds = 15;
constexpr int kMaxTries = 300;

/// A stream of its own for each thing that is drawn: how far the time reaches changes none of them.
Dice StreamOf(uint64_t seed, uint64_t number) { return Dice(RandomBits(seed, number)); }
constexpr uint64_t kPromptStream = 0;
constexpr uint64_t kSettingsStream = 1;
constexpr uint64_t kProgramStreams = uint64_t{1} << 32;  // times 1 and more: one for each setting

class Checker {
 public:
  Checker(const Checkpoint& checkpoint, const CheckOptions& options)
      : checkpoint_(checkpoint), options_(options), start_(steady_clock::now()) {
    report_.reference = {.isa = options.isa.value_or(BestIsa()),
                         .n_threads = options.n_threads > 0 ? options.n_threads : DefaultThreads(),
                         .is_packed = false,
                         .kv_type = options.kv_type};
  }

  Result<CheckReport> Run() {
    FACET_RETURN_IF_ERROR(ComputeReference());
    if (report_.reference.isa != Isa::kScalar) {
      FACET_RETURN_IF_ERROR(CompareWithScalar());
    }
    const auto n_bytes = static_cast<int64_t>(checkpoint_.n_bytes());
    report_.is_too_large_to_pack = options_.may_pack && n_bytes > options_.memory_bytes;
    const bool may_pack = options_.may_pack && !report_.is_too_large_to_pack;
    Dice dice = StreamOf(options_.seed, kSettingsStream);
    const std::vector<Settings> all = SettingsToCheck(options_, may_pack, &dice);
    for (size_t i = 0; i < all.size() && !report_.finding; ++i) {
      if (i > 0 && SecondsSince(start_) >= options_.seconds) {
        report_.n_left_out = all.size() - i;
        break;
      }
      const double left_s = options_.seconds - SecondsSince(start_);
      Dice programs = StreamOf(options_.seed, kProgramStreams * (i + 1));
      FACET_RETURN_IF_ERROR(
          CheckSettings(all[i], left_s / static_cast<double>(all.size() - i), &programs));
    }
    return std::move(report_);
  }

 private:
  /// What a row takes is measured once the weights have been read.
  Status ComputeReference() {
    Tell("reference");
    FACET_ASSIGN(const auto runner, Make(report_.reference));
    Draw(kShortLength);
    FACET_RETURN_IF_ERROR(RunAlone(runner.get(), prompts_[0], 1));
    const auto begin = steady_clock::now();
    FACET_RETURN_IF_ERROR(RunAlone(runner.get(), prompts_[0], 2));
    const double rows_in_time = kReferenceShare * options_.seconds * 2 / SecondsSince(begin);
    if (rows_in_time > 2.0 * kFullLength) {
      Draw(kFullLength);
    }
    for (const Prompt& prompt : prompts_) {
      alone_.emplace_back();
      if (!prompt.is_noise) {
        FACET_ASSIGN(alone_.back(), RunAlone(runner.get(), prompt));
        report_.n_positions.push_back(prompt.n_positions());
      }
    }
    return {};
  }

  void Draw(int n_positions) {
    Dice dice = StreamOf(options_.seed, kPromptStream);
    prompts_ = DrawPrompts({.n_vocab = checkpoint_.config().n_vocab,
                            .n_embd = checkpoint_.config().n_embd,
                            .n_positions = n_positions},
                           &dice);
  }

  /// The definition itself is slow: as many rows of the first prompt as a share of the time allows,
  /// two at least.
  Status CompareWithScalar() {
    Settings scalar = report_.reference;
    scalar.isa = Isa::kScalar;
    FACET_ASSIGN(const auto runner, Make(scalar));
    const auto begin = steady_clock::now();
    CheckedSettings checked = {.settings = scalar};
    FACET_RETURN_IF_ERROR(Try(runner.get(), OneByOne(2), &checked));
    const double rows = kScalarShare * options_.seconds * 2 / SecondsSince(begin);
    const int n = static_cast<int>(std::min<double>(rows, prompts_[0].n_positions()));
    if (n > 2 && !report_.finding) {
      FACET_RETURN_IF_ERROR(Try(runner.get(), OneByOne(n), &checked));
    }
    report_.checked.push_back(checked);
    return {};
  }

  static Program OneByOne(int n_rows) {
    Program program = {.prompts = {0}, .donors = {-1}};
    program.batches.assign(static_cast<size_t>(n_rows), {Part{}});
    return program;
  }

  /// Programs until the time is over; one at least.
  Status CheckSettings(const Settings& settings, double seconds, Dice* dice) {
    const auto begin = steady_clock::now();
    Tell(ToText(settings));
    FACET_ASSIGN(const auto runner, Make(settings));
    CheckedSettings checked = {.settings = settings};
    do {
      FACET_RETURN_IF_ERROR(Try(runner.get(), DrawProgram(prompts_, dice), &checked));
      Tell(fmt::format("{}: {} rows equal", ToText(settings), checked.n_compared));
    } while (SecondsSince(begin) < seconds && !report_.finding);
    report_.checked.push_back(checked);
    return {};
  }

  Status Try(Runner* runner, const Program& program, CheckedSettings* checked) {
    const auto begin = steady_clock::now();
    FACET_ASSIGN(const Outcome outcome, RunAndCompare(runner, prompts_, alone_, program));
    ++checked->n_programs;
    checked->n_compared += outcome.n_compared;
    if (outcome.difference) {
      const double tries = kShrinkSeconds / std::max(SecondsSince(begin), 0.001);
      report_.finding = {checked->settings, program, *outcome.difference};
      Shorten(runner, static_cast<int>(std::min<double>(tries, kMaxTries)));
    }
    return {};
  }

  /// Of the finding. An Error of the runner counts as no difference: it is not what was found.
  void Shorten(Runner* runner, int max_tries) {
    Tell("a difference: looking for the shortest program that shows it");
    Finding& finding = *report_.finding;
    const Program longest = finding.program;
    Shrink(longest, max_tries, [&](const Program& candidate) {
      const Result<Outcome> outcome = RunAndCompare(runner, prompts_, alone_, candidate);
      if (!outcome.ok() || !outcome->difference) {
        return false;
      }
      finding.program = candidate;
      finding.difference = *outcome->difference;
      return true;
    });
  }

  [[nodiscard]] Result<std::unique_ptr<Runner>> Make(const Settings& settings) const {
    RunnerOptions runner_options = ToRunnerOptions(settings);
    runner_options.on_packed = [this, &settings](int64_t done, int64_t total) {
      Tell(fmt::format("{}: {} of {} packed", ToText(settings),
                       ShownBytes(static_cast<double>(done)),
                       ShownBytes(static_cast<double>(total))));
    };
    return MakeRunner(checkpoint_, runner_options);
  }

  void Tell(std::string_view what) const {
    if (options_.on_progress) {
      options_.on_progress(what);
    }
  }

  const Checkpoint& checkpoint_;
  const CheckOptions& options_;
  steady_clock::time_point start_;
  std::vector<Prompt> prompts_;
  std::vector<PromptLogits> alone_;
  CheckReport report_;
};

}  // namespace

int64_t CheckReport::n_compared() const {
  int64_t n = 0;
  for (const CheckedSettings& one : checked) {
    n += one.n_compared;
  }
  return n;
}

std::vector<Settings> SettingsToCheck(const CheckOptions& options, bool may_pack, Dice* dice) {
  const int own_threads = options.n_threads > 0 ? options.n_threads : DefaultThreads();
  std::set<int> threads = {own_threads};
  if (options.n_threads == 0) {
    threads.insert({1, 2, 3});
  }
  std::vector<Isa> isas = SupportedIsas();
  if (options.isa) {
    isas = {*options.isa};
  } else if (isas.size() > 1) {
    isas.erase(isas.begin());
  }
  std::vector<Settings> all;
  for (const Isa isa : isas) {
    for (const int n_threads : threads) {
      all.push_back({isa, n_threads, false, options.kv_type});
      if (may_pack) {
        all.push_back({isa, n_threads, true, options.kv_type});
      }
    }
  }
  for (size_t i = all.size(); i > 1; --i) {
    std::swap(all[i - 1], all[static_cast<size_t>(dice->Between(0, static_cast<int>(i) - 1))]);
  }
  const Settings own = {isas.back(), own_threads, may_pack, options.kv_type};
  std::swap(all.front(), *std::find(all.begin(), all.end(), own));
  return all;
}

Result<CheckReport> CheckBits(const Checkpoint& checkpoint, const CheckOptions& options) {
  return Checker(checkpoint, options).Run();
}

}  // namespace facet::bits
