// SPDX-License-Identifier: Apache-2.0
// `facet perplexity`: how well a model predicts a text, and with --against how far its predictions
// are from those of another model. The text goes through in windows; of the logits never more than
// one chunk of rows is in memory.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include "app/commands.h"
#include "app/loaded_model.h"
#include "app/measured_text.h"
#include "app/perplexity.h"
#include "app/progress.h"
#include "app/terminal.h"
#include "app/text_width.h"
#include "app/window_runner.h"

namespace facet {
namespace {

using std::chrono::steady_clock;

constexpr int kDefaultWindow = 512;
/// Of the logits of one chunk of rows.
constexpr int64_t kMaxLogitBytes = int64_t{256} << 20;

/// A model that scores, with memory for one window.
struct Scorer {
  std::string path;
  std::unique_ptr<LoadedModel> model;
  std::optional<WindowRunner> runner;
};

struct Text {
  std::vector<int> frame;  ///< what each window begins with
  std::vector<int> tokens;
  std::vector<TextWindow> windows;
  int n_window = 0;  ///< positions
  int stride = 0;
};

struct Scores {
  MeanEstimate nll;
  ComparisonStats against;
  double elapsed_s = 0;
};

// --- what is scored ------------------------------------------------------------------------------

Status CheckLayout(const Options& options, const Text& text, int n_room) {
  if (n_room < 2) {
    return Refuse("--ctx-size", fmt::format("{}", text.n_window),
                  fmt::format("at least {}: {} that each window begins with, and 2 of the text",
                              text.frame.size() + 2, text.frame.size()));
  }
  if (text.stride > text.n_window) {
    return Refuse("--stride", fmt::format("{}", text.stride),
                  fmt::format("at most a window, {}", text.n_window));
  }
  if (options.skip >= n_room) {
    return Refuse("--skip", fmt::format("{}", options.skip),
                  fmt::format("less than the {} tokens of text in a window", n_room));
  }
  if (text.tokens.size() < static_cast<size_t>(n_room)) {
    return Refuse(options.words[0], fmt::format("{} tokens", text.tokens.size()),
                  fmt::format("at least the {} of a window of {} (-c)", n_room, text.n_window));
  }
  return {};
}

/// Control tokens in the text stay text.
Result<Text> PrepareText(const Options& options, const LoadedModel& model,
                         const std::string& bytes) {
  Text text;
  FACET_ASSIGN(text.frame, MeasuredFrame(model, options.raw));
  text.tokens = model.tokenizer().Encode(bytes, false);
  text.n_window = options.ctx_size.value_or(kDefaultWindow);
  const int n_room = text.n_window - static_cast<int>(text.frame.size());
  text.stride = options.stride.value_or(std::clamp(text.n_window / 2, 1, std::max(n_room, 1)));
  FACET_RETURN_IF_ERROR(CheckLayout(options, text, n_room));
  text.windows = PlanWindows({.n_tokens = static_cast<int>(text.tokens.size()),
                              .n_room = n_room,
                              .stride = text.stride,
                              .n_skipped = options.skip});
  const auto n_most = static_cast<size_t>(options.chunks.value_or(INT32_MAX));
  text.windows.resize(std::min(text.windows.size(), n_most));
  return text;
}

// --- scoring -------------------------------------------------------------------------------------

/// Runs a text's windows through one model, or through two side by side.
class TextScorer {
 public:
  /// `base` may be null.
  TextScorer(const Text& text, const RunnerOptions& options, Scorer* scorer, Scorer* base)
      : text_(text),
        scorer_(scorer),
        base_(base),
        max_rows_(options.max_rows),
        max_logit_rows_(static_cast<int>(std::clamp<int64_t>(
            kMaxLogitBytes / (int64_t{4} * scorer->runner->n_vocab()), 1, options.max_rows))) {}

  Result<Scores> Run() {
    const auto start = steady_clock::now();
    ProgressLine progress("perplexity");
    size_t n_done = 0;
    for (const TextWindow& window : text_.windows) {
      FACET_RETURN_IF_ERROR(RunWindow(window));
      ++n_done;
      const double left_s = SecondsSince(start) / static_cast<double>(n_done) *
                            static_cast<double>(text_.windows.size() - n_done);
      progress.Show(fmt::format("{:.4f}  window {} of {}  {:.0f} s left", ExpOf(scores_.nll).value,
                                n_done, text_.windows.size(), left_s));
    }
    scores_.elapsed_s = SecondsSince(start);
    return std::move(scores_);
  }

 private:
  /// The row before each scored token has the logits for it; the window's last token needs no row.
  Status RunWindow(const TextWindow& window) {
    std::vector<int> tokens = text_.frame;
    tokens.insert(tokens.end(), text_.tokens.begin() + window.begin,
                  text_.tokens.begin() + window.end);
    // Without a first token of the vocabulary's own, nothing predicts the first of the text.
    const int first_target =
        std::max(1, static_cast<int>(text_.frame.size()) + window.first_scored - window.begin);
    const int n_rows = static_cast<int>(tokens.size()) - 1;
    scorer_->runner->Begin();
    if (base_ != nullptr) {
      base_->runner->Begin();
    }
    for (int row = 0; row < n_rows;) {
      const bool is_scored = row >= first_target - 1;
      const int end = is_scored ? std::min(row + max_logit_rows_, n_rows)
                                : std::min(row + max_rows_, first_target - 1);
      FACET_RETURN_IF_ERROR(RunRows(tokens, row, end, is_scored));
      row = end;
    }
    return {};
  }

  /// Rows [begin, end) of the window.
  Status RunRows(std::span<const int> tokens, int begin, int end, bool is_scored) {
    const int n_logits = is_scored ? end - begin : 0;
    const auto rows = tokens.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
    FACET_ASSIGN(const std::span<const float> logits, scorer_->runner->Run(rows, n_logits));
    std::span<const float> base_logits;
    if (base_ != nullptr) {
      FACET_ASSIGN(base_logits, base_->runner->Run(rows, n_logits));
    }
    const auto n_vocab = static_cast<size_t>(scorer_->runner->n_vocab());
    for (int n = 0; n < n_logits; ++n) {
      const int token = tokens[static_cast<size_t>(begin) + static_cast<size_t>(n) + 1];
      const size_t at = static_cast<size_t>(n) * n_vocab;
      FACET_RETURN_IF_ERROR(Score(logits.subspan(at, n_vocab),
                                  base_ == nullptr ? base_logits : base_logits.subspan(at, n_vocab),
                                  token));
    }
    return {};
  }

  Status Score(std::span<const float> logits, std::span<const float> base_logits, int token) {
    if (base_ == nullptr) {
      const double nll = NegativeLogLikelihood(logits, token);
      scores_.nll.Add(nll);
      return CheckFinite(nll, *scorer_);
    }
    const RowComparison row = CompareRow(base_logits, logits, token);
    scores_.nll.Add(row.nll);
    scores_.against.Add(row);
    FACET_RETURN_IF_ERROR(CheckFinite(row.nll, *scorer_));
    return CheckFinite(row.base_nll, *base_);
  }

  static Status CheckFinite(double nll, const Scorer& scorer) {
    return std::isfinite(nll) ? Status()
                              : Refuse(scorer.path, "logits that are not finite", "a sound model");
  }

  const Text& text_;
  Scorer* scorer_;
  Scorer* base_;
  int max_rows_;
  int max_logit_rows_;
  Scores scores_;
};

// --- results -------------------------------------------------------------------------------------

Json ToJson(const Estimate& estimate) {
  return Json::MakeObject({{"value", estimate.value}, {"error", estimate.error}});
}

std::string ResultJson(const Options& options, const Text& text, const Scores& scores,
                       const Scorer& scorer, const Scorer* base) {
  Json json = Json::MakeObject({{"model", scorer.path},
                                {"text", options.words[0]},
                                {"tokens", static_cast<int64_t>(text.tokens.size())},
                                {"frame_tokens", static_cast<int64_t>(text.frame.size())},
                                {"window", text.n_window},
                                {"stride", text.stride},
                                {"skip", options.skip},
                                {"windows", static_cast<int64_t>(text.windows.size())},
                                {"scored", scores.nll.count()},
                                {"seconds", scores.elapsed_s},
                                {"nll", ToJson(ToEstimate(scores.nll))},
                                {"perplexity", ToJson(ExpOf(scores.nll))}});
  if (base != nullptr) {
    const ComparisonStats& stats = scores.against;
    Json divergence = ToJson(ToEstimate(stats.divergence()));
    divergence.Set("median", stats.DivergenceQuantile(0.5));
    divergence.Set("p99", stats.DivergenceQuantile(0.99));
    divergence.Set("max", stats.DivergenceQuantile(1));
    json.Set("against",
             Json::MakeObject(
                 {{"model", base->path},
                  {"perplexity", ToJson(ExpOf(stats.base_nll()))},
                  {"perplexity_ratio", ToJson(ExpOf(stats.nll_difference()))},
                  {"kl_divergence", std::move(divergence)},
                  {"probability_difference", ToJson(ToEstimate(stats.probability_difference()))},
                  {"same_top", ToJson(ToEstimate(stats.same_top()))}}));
  }
  return json.Dump() + "\n";
}

std::string ResultText(const Text& text, const Scores& scores, const Scorer* base) {
  const Estimate perplexity = ExpOf(scores.nll);
  std::string lines =
      fmt::format("text        {} tokens, {} scored in {} windows of {}, stride {}, {:.1f} s\n",
                  text.tokens.size(), scores.nll.count(), text.windows.size(), text.n_window,
                  text.stride, scores.elapsed_s) +
      fmt::format("perplexity  {:.4f} ± {:.4f}\n", perplexity.value, perplexity.error);
  if (base == nullptr) {
    return lines;
  }
  const ComparisonStats& stats = scores.against;
  const Estimate base_perplexity = ExpOf(stats.base_nll());
  const Estimate ratio = ExpOf(stats.nll_difference());
  const Estimate divergence = ToEstimate(stats.divergence());
  const Estimate difference = ToEstimate(stats.probability_difference());
  const Estimate same_top = ToEstimate(stats.same_top());
  return lines +
         fmt::format("against     {:.4f} ± {:.4f}, {}\n", base_perplexity.value,
                     base_perplexity.error, ShownText(base->path)) +
         fmt::format("ratio       {:.5f} ± {:.5f}\n", ratio.value, ratio.error) +
         fmt::format("divergence  {:.6f} ± {:.6f}, median {:.6f}, 99% {:.6f}, most {:.6f}\n",
                     divergence.value, divergence.error, stats.DivergenceQuantile(0.5),
                     stats.DivergenceQuantile(0.99), stats.DivergenceQuantile(1)) +
         fmt::format("right token {:+.3f}% ± {:.3f}% of probability\n", 100 * difference.value,
                     100 * difference.error) +
         fmt::format("same top    {:.3f}% ± {:.3f}%\n", 100 * same_top.value, 100 * same_top.error);
}

// --- the command ---------------------------------------------------------------------------------

/// Tokens of one must mean the same to the other.
Status CheckSameTokens(const Scorer& scorer, const Scorer& base) {
  const Vocab& a = scorer.model->vocab();
  const Vocab& b = base.model->vocab();
  const std::string where = "--against: " + base.path;
  const int n_vocab = scorer.model->checkpoint().config().n_vocab;
  const int n_base = base.model->checkpoint().config().n_vocab;
  if (a.size() != b.size() || n_vocab != n_base) {
    return Refuse(
        where, fmt::format("{} tokens", std::max(b.size(), n_base)),
        fmt::format("the tokenizer of {} with {}", scorer.path, std::max(a.size(), n_vocab)));
  }
  for (int id = 0; id < a.size(); ++id) {
    if (a.text(id) != b.text(id) || a.kind(id) != b.kind(id)) {
      return Refuse(where, fmt::format("token {} is {}", id, Json(b.text(id)).Dump()),
                    fmt::format("{} as in {}", Json(a.text(id)).Dump(), scorer.path));
    }
  }
  const bool has_same_merges = std::equal(
      a.merges().begin(), a.merges().end(), b.merges().begin(), b.merges().end(),
      [](const Merge& x, const Merge& y) { return x.left == y.left && x.right == y.right; });
  return has_same_merges ? Status()
                         : Refuse(where, "other merges", "the tokenizer of " + scorer.path);
}

Result<Scorer> LoadScorer(const std::string& path) {
  const Spinner spinner("loading " + path);
  FACET_ASSIGN(std::unique_ptr<LoadedModel> model, LoadedModel::Load(path));
  const std::string name = model->checkpoint().path();
  return Scorer{name, std::move(model), std::nullopt};
}

Status MakeRunnerOf(const RunnerOptions& options, Scorer* scorer) {
  FACET_ASSIGN(scorer->runner, WindowRunner::Create(scorer->model->checkpoint(), options));
  return {};
}

Result<std::string> Measure(const Options& options, const std::string& bytes, Scorer* scorer,
                            Scorer* base) {
  Options with_window = options;
  with_window.ctx_size = options.ctx_size.value_or(kDefaultWindow);
  FACET_ASSIGN(const RunnerOptions runner_options,
               RunnerOptionsFrom(with_window, scorer->model->checkpoint().config()));
  FACET_ASSIGN(const Text text, PrepareText(options, *scorer->model, bytes));
  FACET_RETURN_IF_ERROR(MakeRunnerOf(runner_options, scorer));
  if (base != nullptr) {
    FACET_RETURN_IF_ERROR(CheckSameTokens(*scorer, *base));
    FACET_RETURN_IF_ERROR(MakeRunnerOf(runner_options, base));
  }
  FACET_ASSIGN(const Scores scores, TextScorer(text, runner_options, scorer, base).Run());
  return options.json ? ResultJson(options, text, scores, *scorer, base)
                      : ResultText(text, scores, base);
}

}  // namespace

int RunPerplexity(const Options& options) {
  const Result<std::string> bytes = ReadMeasuredText(options.words[0]);
  if (!bytes.ok()) {
    return Fail(bytes.error(), kExitFailed);
  }
  Result<Scorer> scorer = LoadScorer(options.model);
  if (!scorer.ok()) {
    return Fail(scorer.error(), kExitModelRefused);
  }
  std::optional<Scorer> base;
  if (!options.against.empty()) {
    Result<Scorer> loaded = LoadScorer(options.against);
    if (!loaded.ok()) {
      return Fail(loaded.error(), kExitModelRefused);
    }
    base.emplace(*std::move(loaded));
  }
  const Result<std::string> result = Measure(options, *bytes, &*scorer, base ? &*base : nullptr);
  if (!result.ok()) {
    return Fail(result.error(), kExitFailed);
  }
  const Status written = WriteAll(STDOUT_FILENO, *result, "standard output");
  return written.ok() ? kExitDone : Fail(written.error(), kExitFailed);
}

}  // namespace facet
