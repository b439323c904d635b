// SPDX-License-Identifier: Apache-2.0
// `facet imatrix`: runs a text through a model and writes what met each column of its matrices.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "app/commands.h"
#include "app/loaded_model.h"
#include "app/measured_text.h"
#include "app/progress.h"
#include "app/terminal.h"
#include "app/text_width.h"
#include "app/window_runner.h"
#include "base/file.h"
#include "base/log.h"
#include "convert/imatrix.h"

namespace facet {
namespace {

using std::chrono::steady_clock;

constexpr int kDefaultWindow = 512;
/// Of the logits of one batch, which nobody reads: a row without them would skip the layers after
/// the last keys and values.
constexpr int64_t kMaxLogitBytes = int64_t{64} << 20;

struct Text {
  std::vector<int> frame;  ///< what each window begins with
  std::vector<int> tokens;
  size_t n_room = 0;  ///< tokens of the text in a window
  size_t n_windows = 0;
};

int WindowOf(const Options& options) { return options.ctx_size.value_or(kDefaultWindow); }

/// Control tokens in the text stay text. The last window may be shorter.
Result<Text> PrepareText(const Options& options, const LoadedModel& model) {
  FACET_ASSIGN(const std::string bytes, ReadMeasuredText(options.words[0]));
  Text text;
  FACET_ASSIGN(text.frame, MeasuredFrame(model, options.raw));
  text.tokens = model.tokenizer().Encode(bytes, false);
  const auto n_window = static_cast<size_t>(WindowOf(options));
  if (n_window <= text.frame.size()) {
    return Refuse("--ctx-size", fmt::format("{}", n_window),
                  fmt::format("at least {}: {} that each window begins with, and 1 of the text",
                              text.frame.size() + 1, text.frame.size()));
  }
  text.n_room = n_window - text.frame.size();
  text.n_windows = (text.tokens.size() + text.n_room - 1) / text.n_room;
  if (options.chunks.has_value()) {
    text.n_windows = std::min(text.n_windows, static_cast<size_t>(*options.chunks));
  }
  return text;
}

/// Runs all rows of a window so that each of them meets every matrix.
Status RunWindow(std::span<const int> tokens, size_t max_rows, WindowRunner* runner) {
  runner->Begin();
  for (size_t begin = 0; begin < tokens.size(); begin += max_rows) {
    const auto rows = tokens.subspan(begin, std::min(max_rows, tokens.size() - begin));
    FACET_RETURN_IF_ERROR(runner->Run(rows, static_cast<int>(rows.size())));
  }
  return {};
}

Status RunText(const Text& text, const RunnerOptions& options, WindowRunner* runner) {
  const auto start = steady_clock::now();
  const auto max_rows = static_cast<size_t>(
      std::clamp<int64_t>(kMaxLogitBytes / (int64_t{4} * runner->n_vocab()), 1, options.max_rows));
  ProgressLine progress("imatrix");
  for (size_t w = 0; w < text.n_windows; ++w) {
    const double left_s = w == 0 ? 0
                                 : SecondsSince(start) / static_cast<double>(w) *
                                       static_cast<double>(text.n_windows - w);
    progress.Show(fmt::format("window {} of {}  {:.0f} s left", w + 1, text.n_windows, left_s));
    const auto begin = text.tokens.begin() + static_cast<std::ptrdiff_t>(w * text.n_room);
    const auto n = std::min(text.n_room, text.tokens.size() - w * text.n_room);
    std::vector<int> tokens = text.frame;
    tokens.insert(tokens.end(), begin, begin + static_cast<std::ptrdiff_t>(n));
    FACET_RETURN_IF_ERROR(RunWindow(tokens, max_rows, runner));
  }
  return {};
}

/// Experts that no row chose are quantised as if all their inputs mattered alike.
void WarnOfUnmet(const std::string& out, const Imatrix& imatrix) {
  int64_t n_matrices = 0;
  int64_t n_unmet = 0;
  for (const ImatrixEntry& entry : imatrix.entries) {
    n_matrices += static_cast<int64_t>(entry.counts.size());
    n_unmet += std::count(entry.counts.begin(), entry.counts.end(), 0.0F);
  }
  if (n_unmet > 0) {
    Warn(fmt::format("{}: no row of the text met {} of {} matrices; a longer text may", out,
                     n_unmet, n_matrices));
  }
}

Status MakeImatrix(const Options& options, const LoadedModel& model) {
  const auto start = steady_clock::now();
  FACET_ASSIGN(const Text text, PrepareText(options, model));
  ImatrixCollector collector(model.checkpoint());
  const MatMulObserver observer = [&collector](const WeightMatrix& w, const float* x,
                                               int64_t n_rows) { collector.Observe(w, x, n_rows); };
  Options with_window = options;
  with_window.ctx_size = WindowOf(options);
  FACET_ASSIGN(RunnerOptions runner_options,
               RunnerOptionsFrom(with_window, model.checkpoint().config()));
  runner_options.observer = &observer;
  FACET_ASSIGN(WindowRunner runner, WindowRunner::Create(model.checkpoint(), runner_options));
  FACET_RETURN_IF_ERROR(RunText(text, runner_options, &runner));
  FACET_ASSIGN(Imatrix imatrix, collector.Finish());
  imatrix.datasets = {options.words[0]};
  imatrix.n_chunks = static_cast<uint32_t>(text.n_windows);
  imatrix.chunk_size = static_cast<uint32_t>(WindowOf(options));
  WarnOfUnmet(options.words[1], imatrix);
  FACET_RETURN_IF_ERROR(WriteImatrix(options.words[1], imatrix));
  Note(fmt::format("{}: {} tensors, {} windows of {} tokens, in {:.1f} s",
                   ShownText(options.words[1]), imatrix.entries.size(), imatrix.n_chunks,
                   imatrix.chunk_size, SecondsSince(start)));
  return {};
}

}  // namespace

int RunImatrix(const Options& options) {
  const std::string& out = options.words[1];
  if (const Status named = CheckGgufName(options.command, out); !named.ok()) {
    return Fail(named.error(), kExitFailed);
  }
  if (IsDirectory(out)) {
    return Fail(Refuse(out, "a directory", "the name of a file"), kExitFailed);
  }
  auto spinner = std::make_optional<Spinner>("loading " + options.model);
  const auto model = LoadedModel::Load(options.model);
  spinner.reset();
  if (!model.ok()) {
    return Fail(model.error(), kExitModelRefused);
  }
  RemoveOnInterrupt(out + ".part");  // where base/file.h writes what is not complete
  const Status status = MakeImatrix(options, **model);
  RemoveOnInterrupt("");
  return status.ok() ? kExitDone : Fail(status.error(), kExitFailed);
}

}  // namespace facet
