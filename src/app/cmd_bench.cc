// SPDX-License-Identifier: Apache-2.0
// `facet bench`: how fast this machine runs a model, and how close that is to what it can do.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "app/bench_drafts.h"
#include "app/bench_plan.h"
#include "app/bench_report.h"
#include "app/bench_run.h"
#include "app/bench_work.h"
#include "app/commands.h"
#include "app/drafting.h"
#include "app/embedded_model.h"
#include "app/loaded_model.h"
#include "app/model_source.h"
#include "app/progress.h"
#include "app/terminal.h"
#include "base/file.h"
#include "compute/probe.h"
#include "compute/thread_pool.h"
#include "convert/shapes.h"
#include "convert/synth.h"
#include "format/gguf.h"
#include "model/packing.h"
#include "model/weights.h"

namespace facet {
namespace {

constexpr double kProbeSeconds = 0.3;
constexpr double kDraftingSeconds = 0.05;  ///< of each measured step; shorter ones are repeated

/// What is refused before anything is read or made.
Status CheckOptions(const Options& options) {
  if (options.synth.empty() && !options.type.empty()) {
    return Refuse("--type", "given without --synth", "a shape to be made");
  }
  FACET_RETURN_IF_ERROR(PlanBench(options, INT32_MAX));
  return {};
}

/// Before a large model is made for it.
Status CheckNamedDrafter(const Options& options) {
  if (!options.synth.empty() && !options.draft.empty() && WantsDrafter(options)) {
    FACET_RETURN_IF_ERROR(DrafterCheckpoint::Open(options.draft));
  }
  return {};
}

// --- the model -----------------------------------------------------------------------------------

/// Shape and type become part of a file's name.
Status CheckNames(const SynthOptions& synth) {
  if (const Result<ShapeRequest> shape = ParseShape(synth.shape); !shape.ok()) {
    return Refuse("--synth", shape.error().found, shape.error().wanted);
  }
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyz0123456789_";
  return synth.type.find_first_not_of(kAllowed) == std::string::npos
             ? Status()
             : Refuse("--type", "\"" + synth.type + "\"", "a type that facet synth knows");
}

Status MakeSynthetic(const SynthOptions& wanted) {
  FACET_ASSIGN(const gguf::File vocab, gguf::File::FromBytes(EmbeddedModel(), "embedded model"));
  SynthOptions synth = wanted;
  synth.tokenizer = vocab.metadata();
  synth.tokenizer_name = "embedded model";
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(synth.out).parent_path(), error);
  if (error) {
    return Refuse(synth.out, "cannot make its folder: " + error.message());
  }
  Note("making " + synth.out);
  ProgressLine progress("writing");
  synth.on_progress = [&progress](uint64_t done, uint64_t total) { progress.Update(done, total); };
  RemoveOnInterrupt(synth.out + ".part");  // where base/file.h writes what is not complete
  Status status = WriteSynthetic(synth);
  RemoveOnInterrupt("");
  return status;
}

/// The path of the model that is measured, made if need be; empty: the embedded one.
Result<std::string> FindModel(const Options& options, const Environment& environment) {
  if (options.synth.empty()) {
    return options.model;
  }
  SynthOptions synth;
  synth.shape = options.synth;
  synth.type = options.type.empty() ? synth.type : options.type;
  FACET_ASSIGN(const std::string cache, ReadCacheDir(options, environment));
  FACET_RETURN_IF_ERROR(CheckNames(synth));
  std::string name = synth.shape + "-" + synth.type;
  std::replace(name.begin(), name.end(), ':', '-');
  synth.out = fmt::format("{}/synthetic/{}.gguf", cache, name);
  if (!FileExists(synth.out)) {
    FACET_RETURN_IF_ERROR(MakeSynthetic(synth));
  }
  return synth.out;
}

// --- measuring -----------------------------------------------------------------------------------

Result<BenchSetting> SettingOf(const Options& options, const RunnerOptions& runner,
                               const Checkpoint& checkpoint) {
  constexpr uint64_t kMaxBytes = uint64_t{64} << 20;
  const Result<std::string> cpuinfo = ReadFile("/proc/cpuinfo", kMaxBytes);
  BenchSetting setting;
  setting.cpu = CpuName(cpuinfo.ok() ? *cpuinfo : "");
  setting.n_cores = DefaultThreads();
  setting.memory_bytes = int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE);
  const Isa isa = runner.isa.value_or(BestIsa());
  setting.isa = NameOf(isa);
  setting.n_threads = runner.n_threads > 0 ? runner.n_threads : DefaultThreads();
  setting.kv_type = options.kv_type;
  FACET_ASSIGN(const Weights weights, BindWeights(checkpoint));
  setting.is_packed = runner.pack && PlanPacking(weights, KernelsFor(isa)).n_matrices > 0;
  setting.model = checkpoint.config().name;
  setting.file = checkpoint.path();
  setting.file_bytes = checkpoint.n_bytes();
  setting.bytes_per_token = BytesPerToken(checkpoint);
  if (runner.drafter != nullptr) {
    setting.drafter_file = runner.drafter->path();
    setting.drafter_bytes = runner.drafter->n_bytes();
  }
  return setting;
}

/// With the threads and kernels of the run, on memory of its own that is free again afterwards.
Result<MachineRates> MeasureMachine(const RunnerOptions& options, int n_threads) {
  const Spinner spinner("measuring the machine");
  ThreadPool pool(n_threads);
  const ComputeContext context = {&KernelsFor(options.isa.value_or(BestIsa())), &pool};
  MachineRates rates;
  FACET_ASSIGN(rates.read_bytes, MeasureReadRate(&pool, ProbeBytes(), kProbeSeconds));
  rates.operations = MeasureMultiplyRate(context, options.pack, kProbeSeconds);
  return rates;
}

/// Everything that is measured, row by row.
class Measurement {
 public:
  Measurement(const Options& options, const BenchPlan& plan, const Checkpoint& checkpoint)
      : options_(options),
        plan_(plan),
        checkpoint_(checkpoint),
        style_(StyleOf(STDOUT_FILENO, options.no_color)) {}

  /// Whether all was measured; Ctrl-C ends it before, and what is there is printed.
  Result<bool> Run(const RunnerOptions& runner_options) {
    FACET_ASSIGN(setting_, SettingOf(options_, runner_options, checkpoint_));
    FACET_ASSIGN(setting_.rates, MeasureMachine(runner_options, setting_.n_threads));
    const auto start = std::chrono::steady_clock::now();
    FACET_ASSIGN(std::unique_ptr<Runner> runner, MakeRunner(checkpoint_, runner_options));
    setting_.load_s = SecondsSince(start);
    const InterruptGuard guard;
    progress_.emplace("measuring");
    BenchRunner bench(std::move(runner),
                      {.is_interrupted = [&guard] { return guard.is_interrupted(); },
                       .on_progress = [this](int repetition, int n_done,
                                             int n_total) { Show(repetition, n_done, n_total); }});
    FACET_RETURN_IF_ERROR(Print(options_.json ? "" : BenchHead(setting_)));
    FACET_RETURN_IF_ERROR(Print(options_.json || plan_.cases.empty() ? "" : BenchColumns(style_)));
    for (const BenchCase& wanted : plan_.cases) {
      present_ = &wanted;
      FACET_ASSIGN(const std::vector<double> seconds, bench.Measure(wanted, plan_.n_repetitions));
      progress_->Erase();
      FACET_RETURN_IF_ERROR(Add(wanted, runner_options.kv_type, seconds));
    }
    FACET_RETURN_IF_ERROR(MeasureDrafting(&bench));
    progress_.reset();
    const bool is_complete = !guard.is_interrupted();
    FACET_RETURN_IF_ERROR(Print(options_.json ? ResultJson(is_complete).Dump(2) + "\n" : ""));
    return is_complete;
  }

 private:
  /// --drafting: for each number of sequences the steps, then the chains of drafts. What is not
  /// whole when the user ends it is dropped.
  Status MeasureDrafting(BenchRunner* bench) {
    DraftCosts costs;
    for (const BenchCase& verify : plan_.verify_cases) {
      costs.n_sequences = verify.n_sequences;
      costs.n_depth = verify.n_depth;
      present_ = &verify;
      FACET_ASSIGN(const std::vector<double> seconds,
                   bench->Measure(verify, plan_.n_repetitions, kDraftingSeconds));
      if (seconds.empty()) {
        return {};
      }
      costs.verify_s.push_back(SpreadOf(seconds).median / kVerifySteps);
      if (verify.n_rows < kMaxDrafts) {
        continue;
      }
      FACET_ASSIGN(costs.draft_s, MeasureChains(verify, bench));
      if (bench->has_drafter() && costs.draft_s.empty()) {
        return {};
      }
      progress_->Erase();
      FACET_RETURN_IF_ERROR(Print(options_.json ? "" : DraftTable(costs, style_)));
      drafting_.push_back(std::exchange(costs, {}));
    }
    return {};
  }

  /// Seconds of 1, 2, ... --spec-max drafts, as far as they were measured and a step can verify
  /// them all.
  [[nodiscard]] Result<std::vector<double>> MeasureChains(const BenchCase& verify,
                                                          BenchRunner* bench) const {
    std::vector<double> chains;
    const int n_most = bench->has_drafter() ? std::min(options_.spec_max, kMaxDrafts - 1) : 0;
    chains.reserve(kMaxDrafts);
    for (int n = 1; n <= n_most; ++n) {
      FACET_ASSIGN(const std::vector<double> seconds,
                   bench->MeasureDrafts(verify, n, plan_.n_repetitions, kDraftingSeconds));
      if (seconds.empty()) {
        break;
      }
      chains.push_back(SpreadOf(seconds).median);
    }
    return chains;
  }

  [[nodiscard]] Json ResultJson(bool is_complete) const {
    Json json = BenchJson(setting_, results_, is_complete);
    if (!plan_.verify_cases.empty()) {
      json.Set("drafting", DraftJson(drafting_));
    }
    return json;
  }

  void Show(int repetition, int n_done, int n_total) {
    const std::string part =
        repetition == 0 ? "preparation" : fmt::format("{} of {}", repetition, plan_.n_repetitions);
    progress_->Show(
        fmt::format("{}: {}, {} of {} tokens", NameOf(*present_), part, n_done, n_total));
  }

  Status Add(const BenchCase& bench, KvType kv_type, const std::vector<double>& seconds) {
    if (seconds.empty()) {
      return {};
    }
    const double step_bytes = BytesPerStep(checkpoint_, bench.n_sequences);
    results_.push_back({bench, WorkOf(bench, checkpoint_.config(), kv_type, step_bytes), seconds});
    return Print(options_.json ? "" : BenchRow(setting_, results_.back(), style_));
  }

  static Status Print(const std::string& text) {
    return WriteAll(STDOUT_FILENO, text, "standard output");
  }

  const Options& options_;
  const BenchPlan& plan_;
  const Checkpoint& checkpoint_;
  const Style style_;
  BenchSetting setting_;
  std::vector<BenchResult> results_;
  std::vector<DraftCosts> drafting_;
  const BenchCase* present_ = nullptr;
  std::optional<ProgressLine> progress_;
};

/// Whether all was measured. `drafter` may be null.
Result<bool> Measure(const Options& options, const Checkpoint& checkpoint,
                     const DrafterCheckpoint* drafter) {
  FACET_ASSIGN(const BenchPlan plan, PlanBench(options, checkpoint.config().n_context));
  Options with_context = options;
  with_context.ctx_size = plan.n_context;
  FACET_ASSIGN(const RunnerOptions wanted, RunnerOptionsFrom(with_context, checkpoint.config()));
  std::vector<BenchCase> all = plan.cases;
  all.insert(all.end(), plan.verify_cases.begin(), plan.verify_cases.end());
  FACET_ASSIGN(RunnerOptions fitted, FitRunner(checkpoint.config(), wanted, all));
  fitted.drafter = drafter;
  for (const BenchCase& bench : plan.left_out) {
    Note(fmt::format("left out: {}, longer than the model's context of {}", NameOf(bench),
                     checkpoint.config().n_context));
  }
  return Measurement(options, plan, checkpoint).Run(fitted);
}

}  // namespace

int RunBench(const Options& options, const Environment& environment) {
  if (const Status usable = CheckOptions(options); !usable.ok()) {
    return Fail(usable.error(), kExitFailed);
  }
  if (const Status usable = CheckNamedDrafter(options); !usable.ok()) {
    return Fail(usable.error(), kExitModelRefused);
  }
  const Result<std::string> path = FindModel(options, environment);
  if (!path.ok()) {
    return Fail(path.error(), kExitFailed);
  }
  const Result<Checkpoint> checkpoint = OpenCheckpoint(*path);
  if (!checkpoint.ok()) {
    return Fail(checkpoint.error(), kExitModelRefused);
  }
  Options with_model = options;
  with_model.model = *path;  // one that was made has no drafter of its own
  const auto drafter = OpenDrafter(with_model, *checkpoint);
  if (!drafter.ok()) {
    return Fail(drafter.error(), kExitModelRefused);
  }
  const Result<bool> is_complete = Measure(options, *checkpoint, *drafter ? &**drafter : nullptr);
  if (!is_complete.ok()) {
    return Fail(is_complete.error(), kExitFailed);
  }
  return *is_complete ? kExitDone : kExitInterrupted;
}

}  // namespace facet
