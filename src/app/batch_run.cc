// SPDX-License-Identifier: Apache-2.0
#include "app/batch_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <ctime>
#include <filesystem>
#include <optional>
#include <utility>

#include "app/commands.h"
#include "app/drafting.h"
#include "app/generator.h"
#include "app/progress.h"
#include "app/terminal.h"
#include "app/text_width.h"
#include "base/log.h"
#include "base/random.h"
#include "model/model.h"

namespace facet {
namespace {

using std::chrono::steady_clock;

constexpr int kPollMs = 20;
constexpr int kDefaultLines = 8;  ///< at a time

/// Keys and values of all lines together stay below this, unless a single one needs more. With less
/// than whole contexts for all, the engine lets lines wait or computes one again.
constexpr int64_t kKvBudgetBytes = int64_t{4} << 30;

/// The most sequences, up to `n_most`, whose whole contexts fit the budget; at least 1.
int SequencesWithin(const Config& config, RunnerOptions options, int n_most) {
  for (options.n_sequences = n_most; options.n_sequences > 1; --options.n_sequences) {
    const Result<KvPoolPlan> plan = PlanKv(config, options);
    if (plan.ok() && plan->bytes <= kKvBudgetBytes) {
      break;
    }
  }
  return options.n_sequences;
}

Status CheckOptions(const Options& options) {
  const bool has_text = !options.words.empty() || !options.prompt.empty() || !options.file.empty();
  for (const auto& [name, is_given] :
       {std::pair("a prompt", has_text), std::pair("files of media", !options.media.empty()),
        std::pair("--raw", options.raw), std::pair("--trace", !options.trace.empty())}) {
    if (is_given) {
      return Refuse("--batch", fmt::format("given with {}", name), "one of them");
    }
  }
  if (options.resume && options.output.empty()) {
    return Refuse("--resume", "given without --output", "the file of results to go on with");
  }
  return {};
}

bool IsBlank(std::string_view text) {
  return text.find_first_not_of(" \t\r") == std::string_view::npos;
}

}  // namespace

std::string SummaryText(const BatchCounts& counts, double elapsed_s) {
  const std::string text = fmt::format(
      "answered {}, failed {}, skipped {} in {:.1f} s; {} prompt tokens, {} of replies, "
      "{:.1f} tokens/s",
      counts.n_answered, counts.n_failed, counts.n_skipped, elapsed_s, counts.n_prompt,
      counts.n_reply, elapsed_s > 0 ? static_cast<double>(counts.n_reply) / elapsed_s : 0);
  return counts.n_drafted == 0 ? text
                               : text + fmt::format("; {} of {} drafted tokens accepted",
                                                    counts.n_accepted, counts.n_drafted);
}

BatchRun::BatchRun(const Options& options, const LoadedModel& model, LineReader* lines,
                   ResultFile* results)
    : options_(options),
      model_(model),
      prompts_(options, model, std::filesystem::path(options.batch).parent_path().string()),
      lines_(lines),
      results_(results),
      base_seed_(ChooseSeed(options)),
      n_lines_(options.parallel.value_or(kDefaultLines)),
      n_most_(static_cast<size_t>(n_lines_ + n_lines_ / 4 + 1)) {}

Status BatchRun::Start(const RunnerOptions& runner_options) {
  RunnerOptions with_sequences = runner_options;
  with_sequences.media = model_.media();
  with_sequences.drafter = model_.drafter();
  with_sequences.n_sequences =
      SequencesWithin(model_.checkpoint().config(), runner_options, n_lines_);
  FACET_ASSIGN(std::unique_ptr<Runner> runner, MakeRunner(model_.checkpoint(), with_sequences));
  EngineOptions engine_options;
  engine_options.max_rows = with_sequences.max_rows;
  engine_options.max_sequences = n_lines_;
  engine_options.reuses_prefixes = true;  // lines often begin with the same instructions
  engine_options.token_bytes = [&vocab = model_.vocab()](int32_t token) {
    return vocab.bytes(token);
  };
  SetDrafting(options_, &engine_options);
  engine_ = std::make_unique<Engine>(std::move(runner), std::move(engine_options));
  return {};
}

Status BatchRun::Run() {
  const InterruptGuard guard;
  if (!options_.output.empty() || !IsTerminal(STDOUT_FILENO)) {
    progress_.emplace("batch");
  }
  while (!is_at_end_ || !running_.empty()) {
    if (guard.is_interrupted() && !is_interrupted_) {
      CancelAll();
    }
    FACET_RETURN_IF_ERROR(Feed(guard));
    if (running_.empty()) {
      continue;
    }
    if (const std::optional<Event> event = events_.Pop()) {
      FACET_RETURN_IF_ERROR(TakeEvent(*event));
    }
    if (progress_) {
      progress_->Show(fmt::format("{} answered  {} failed  {} in work", counts_.n_answered,
                                  counts_.n_failed, running_.size()));
    }
  }
  progress_.reset();
  return {};
}

void BatchRun::CancelAll() {
  is_interrupted_ = true;
  is_at_end_ = true;
  for (const auto& [id, running] : running_) {
    engine_->Cancel(id);
  }
}

/// Reads lines until the engine has enough, or until none is there. Waits only when there is
/// nothing else to wait for.
Status BatchRun::Feed(const InterruptGuard& guard) {
  while (!is_at_end_ && running_.size() < n_most_ && !guard.is_interrupted()) {
    FACET_ASSIGN(const LineReader::Line line, lines_->Next(running_.empty() ? kPollMs : 0));
    if (line.kind == LineReader::Line::Kind::kWaiting) {
      return {};
    }
    if (line.kind == LineReader::Line::Kind::kEnd) {
      is_at_end_ = true;
      return {};
    }
    FACET_RETURN_IF_ERROR(TakeLine(line));
  }
  return {};
}

Status BatchRun::TakeLine(const LineReader::Line& line) {
  BatchKey key;
  key.line = line.number;
  if (line.kind == LineReader::Line::Kind::kTooLong) {
    return WriteError(
        key, BatchFault::kRequest,
        Refuse("line", "too long", fmt::format("at most {} bytes", LineReader::kMaxLineBytes))
            .Message());
  }
  if (IsBlank(line.text)) {
    return {};
  }
  const Result<Json> json = ParseJson(line.text, "text");
  const Status status = json.ok() ? ReadBatchKey(*json, line.number, &key) : json.error();
  if (!status.ok()) {
    return WriteError(key, BatchFault::kRequest, status.error().Message());
  }
  const std::string id = key.IdText();
  if (!ids_.insert(id).second) {
    return WriteError(key, BatchFault::kRequest,
                      Refuse("id", id + ", which an earlier line has", "a new one").Message());
  }
  if (results_->answered().contains(id)) {
    ++counts_.n_skipped;
    return {};
  }
  const Status submitted = Submit(*json, key);
  return submitted.ok() ? Status()
                        : WriteError(key, BatchFault::kRequest, submitted.error().Message());
}

/// An error is one of the line.
Status BatchRun::Submit(const Json& json, const BatchKey& key) {
  FACET_ASSIGN(const BatchRequest line, ReadBatchRequest(json, key, options_));
  FACET_ASSIGN(PromptInput input, PromptOf(line));
  for (const std::string& notice : input.notices) {
    Tell(key, notice);
  }
  // 32 bits, as those that are chosen for a single reply.
  const uint64_t seed = line.options.seed.value_or(
      RandomBits(base_seed_, static_cast<uint64_t>(key.line)) & 0xFFFFFFFF);
  Request request = MakeRequest(line.options, model_, std::move(input.tokens), seed);
  request.media = std::move(input.media);
  request.id = static_cast<uint64_t>(key.line);
  Running running{
      key, ReplyReader(model_.vocab(), request.prompt, line.tools, line.options.raw), {}};
  running.reply.seed = seed;
  running.reply.model = line.model.empty() ? model_.checkpoint().config().name : line.model;
  const uint64_t id = request.id;
  FACET_RETURN_IF_ERROR(
      engine_->Submit(std::move(request), [this](const Event& event) { events_.Push(event); }));
  running_.emplace(id, std::move(running));
  return {};
}

Result<PromptInput> BatchRun::PromptOf(const BatchRequest& request) const {
  if (request.options.raw) {
    return prompts_.FromText(request.prompt, {}, request.options);
  }
  const TemplateTraits& traits = model_.chat_template().traits();
  if (request.options.think && !options_.think && !traits.knows_thinking) {
    return Refuse("think", "true", "false (the model's chat template knows no thinking)");
  }
  if (!request.tools.is_null() && !traits.knows_tools) {
    return Refuse("tools", "an array", "none (the model's chat template knows no tools)");
  }
  return prompts_.FromMessages(
      {.messages = request.messages, .tools = request.tools, .thinking = request.options.think});
}

Status BatchRun::TakeEvent(const Event& event) {
  const auto it = running_.find(event.request_id);
  FACET_CHECK(it != running_.end());
  Running& running = it->second;
  const bool is_token = event.kind == Event::Kind::kToken;
  for (const ReplyDelta& delta : is_token ? running.reader.Push(event) : running.reader.Finish()) {
    running.reply.Add(delta);
  }
  if (is_token) {
    return {};
  }
  Running finished = std::move(running);
  running_.erase(it);
  if (event.reason == FinishReason::kCancelled) {
    return {};
  }
  if (event.reason == FinishReason::kError) {
    return WriteError(finished.key, BatchFault::kEngine, event.error);
  }
  finished.reply.reason = event.reason;
  finished.reply.stats = event.stats;
  ++counts_.n_answered;
  counts_.n_prompt += event.stats.n_prompt;
  counts_.n_reply += event.stats.n_generated;
  counts_.n_drafted += event.stats.n_drafted;
  counts_.n_accepted += event.stats.n_accepted;
  return results_->Write(
      ResultLine(finished.key, finished.reply, static_cast<int64_t>(std::time(nullptr))));
}

void BatchRun::Tell(const BatchKey& key, const std::string& text) {
  if (progress_) {
    progress_->Erase();
  }
  Note(fmt::format("facet: line {}: {}", key.line, ShownLine(text)));
}

Status BatchRun::WriteError(const BatchKey& key, BatchFault fault, const std::string& message) {
  ++counts_.n_failed;
  Tell(key, message);
  return results_->Write(ErrorLine(key, fault, message));
}

int RunBatch(Options options, const Environment& environment) {
  const Status usable = CheckOptions(options);
  if (!usable.ok()) {
    return Fail(usable.error(), kExitFailed);
  }
  Result<LineReader> lines = LineReader::Open(options.batch);
  if (!lines.ok()) {
    return Fail(lines.error(), kExitFailed);
  }
  if (const ExitCode code = ResolveModels(environment, &options); code != kExitDone) {
    return code;
  }
  std::optional<Spinner> spinner("loading " + options.model);
  const auto model = LoadedModel::LoadToGenerate(options, true);
  spinner.reset();
  if (!model.ok()) {
    return Fail(model.error(), kExitModelRefused);
  }
  const Result<RunnerOptions> runner_options =
      RunnerOptionsFrom(options, (*model)->checkpoint().config());
  if (!runner_options.ok()) {
    return Fail(runner_options.error(), kExitFailed);
  }
  if (options.think && !(*model)->chat_template().traits().knows_thinking) {
    Warn("--think: the model's chat template knows no thinking");
  }
  // Opened last: what fails before leaves no empty file of results.
  Result<ResultFile> results = ResultFile::Open(options.output, options.resume);
  if (!results.ok()) {
    return Fail(results.error(), kExitFailed);
  }
  BatchRun run(options, **model, &*lines, &*results);
  const Status started = run.Start(*runner_options);
  if (!started.ok()) {
    return Fail(started.error(), kExitModelRefused);
  }
  const auto start = steady_clock::now();
  const Status status = run.Run();
  Note(SummaryText(run.counts(), SecondsSince(start)));
  if (!status.ok()) {
    return Fail(status.error(), kExitFailed);
  }
  if (run.is_interrupted()) {
    return kExitInterrupted;
  }
  return run.counts().n_failed == 0 ? kExitDone : kExitFailed;
}

}  // namespace facet
