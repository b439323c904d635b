// SPDX-License-Identifier: Apache-2.0
#include "app/report.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>

#include "app/drafting.h"
#include "app/progress.h"
#include "app/prompt_maker.h"
#include "app/terminal.h"
#include "app/text_width.h"
#include "app/trace.h"

namespace facet {

void NoteSettings(const Options& options, const LoadedModel& model, const Request& request,
                  double load_s, int n_context) {
  const Checkpoint& checkpoint = model.checkpoint();
  const SamplingParams& sampling = request.sampling;
  Note(fmt::format("model     {}, {}, loaded in {:.2f} s", ShownText(checkpoint.config().name),
                   ShownBytes(static_cast<double>(checkpoint.n_bytes())), load_s));
  const Result<RunnerOptions> runner = RunnerOptionsFrom(options, checkpoint.config());
  if (runner.ok()) {
    const Result<KvPoolPlan> plan = PlanKv(checkpoint.config(), *runner);
    const int n_threads = runner->n_threads > 0 ? runner->n_threads : DefaultThreads();
    Note(fmt::format("context   {} positions, {} of keys and values ({})", n_context,
                     plan.ok() ? ShownBytes(static_cast<double>(plan->bytes)) : "?",
                     options.kv_type));
    Note(fmt::format("compute   {}, {} thread{}", NameOf(runner->isa.value_or(BestIsa())),
                     n_threads, n_threads == 1 ? "" : "s"));
  }
  Note(fmt::format("drafting  {}", DraftingText(options, model.drafter())));
  for (const PlacedMedia& placed : request.media) {
    Note(fmt::format("media     {}", MediaText(*placed.item)));
  }
  Note(fmt::format("sampling  temperature {}, top-k {}, top-p {}, min-p {}, seed {}",
                   sampling.temperature, sampling.top_k, sampling.top_p, sampling.min_p,
                   sampling.seed));
}

std::string SpeedText(const RequestStats& stats, double bytes_per_token) {
  const double rate = DecodeRate(stats);
  // A draft that is accepted is a token without a step of its own.
  const double step_rate = rate > 0 ? std::max(0.0, rate - stats.n_accepted / stats.decode_s) : 0;
  const std::string reused =
      stats.n_cached == 0 ? "" : fmt::format(", {} of them computed before,", stats.n_cached);
  const std::string encoding =
      stats.encode_s > 0 ? fmt::format(" ({:.3f} s in encoders)", stats.encode_s) : "";
  std::string text = fmt::format(
      "prompt    {} tokens{} in {:.3f} s{}, {:.1f} tokens/s\n"
      "reply     {} tokens in {:.3f} s, {:.1f} tokens/s, {}/s of weights",
      stats.n_prompt, reused, stats.prefill_s, encoding, PrefillRate(stats), stats.n_generated,
      stats.decode_s, rate, ShownBytes(step_rate * bytes_per_token));
  if (stats.n_draft_rounds > 0) {
    text += fmt::format(
        "\ndrafts    {} round{}, {} drafted, {} accepted ({:.1f}%), {:.2f} tokens a round",
        stats.n_draft_rounds, stats.n_draft_rounds == 1 ? "" : "s", stats.n_drafted,
        stats.n_accepted, 100.0 * stats.n_accepted / stats.n_drafted,
        1 + static_cast<double>(stats.n_accepted) / stats.n_draft_rounds);
  }
  return text;
}

void NoteSpeed(const RequestStats& stats, double bytes_per_token) {
  Note(SpeedText(stats, bytes_per_token));
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  Note(fmt::format("memory    {} at most",
                   ShownBytes(1024.0 * static_cast<double>(usage.ru_maxrss))));
}

}  // namespace facet
