// SPDX-License-Identifier: Apache-2.0
// `facet run`: the way of a prompt from the command line to words on the screen. Start reading
// Facet here.
//
//   text -> ChatTemplate::Render -> runs of text   (chat/: which parts may be control tokens)
//        -> ExpandMedia -> places of soft tokens   (chat/: pictures and sound, made ready by
//        media/)
//        -> TokenizePrompt -> token ids            (text/: byte-pair merges)
//        -> Engine::Submit -> events               (engine/: rows of a batch, drawing of tokens)
//        -> ReplySplitter -> content and thoughts  (chat/: what is markup and what is the answer)
//        -> TextPrinter or JsonPrinter             (app/: screen, pipe, another program)
#include <unistd.h>

#include <chrono>
#include <optional>
#include <utility>

#include "app/batch_run.h"
#include "app/chat.h"
#include "app/commands.h"
#include "app/generator.h"
#include "app/loaded_model.h"
#include "app/media_input.h"
#include "app/progress.h"
#include "app/prompt_input.h"
#include "app/prompt_maker.h"
#include "app/reply_printer.h"
#include "app/report.h"
#include "app/terminal.h"
#include "app/text_width.h"
#include "base/log.h"

namespace facet {
namespace {

/// What does not depend on the model: refused before a large file is read.
Status CheckOptions(const Options& options, const std::optional<std::string>& text) {
  if (options.resume || !options.output.empty()) {
    return Refuse(options.resume ? "--resume" : "--output", "given without --batch",
                  "a file of requests");
  }
  if (options.raw && (options.think || !options.system.empty())) {
    return Refuse("--raw", options.think ? "given with --think" : "given with --system",
                  "no chat template, or one");
  }
  if (text && (!text->empty() || !options.media.empty())) {
    return {};
  }
  const bool can_chat = !text && IsTerminal(STDIN_FILENO) && IsTerminal(STDOUT_FILENO);
  if (!can_chat || options.raw || options.json || !options.trace.empty()) {
    return Refuse("facet run", "no prompt", "words, -f FILE or text on standard input");
  }
  return {};
}

/// Text and media to a prompt: through the chat template, or as they stand.
Result<PromptInput> MakePrompt(const Options& options, const LoadedModel& model,
                               const std::string& text) {
  const PromptMaker maker(options, model);
  if (options.raw) {
    return maker.FromText(text, options.media, options);
  }
  FACET_ASSIGN(Json content, MessageContent(text, options.media, options));
  ChatRequest request;
  if (!options.system.empty()) {
    request.messages.Append(Json::MakeObject({{"role", "system"}, {"content", options.system}}));
  }
  request.messages.Append(Json::MakeObject({{"role", "user"}, {"content", std::move(content)}}));
  request.thinking = options.think;
  return maker.FromMessages(request);
}

/// What an answer is made with. `trace` may be null.
struct Run {
  const Options& options;
  const LoadedModel& model;
  Generator* generator;
  Trace* trace;
  double load_s;
};

/// One prompt, one reply.
Status Answer(const Run& run, const std::string& text, Reply* reply) {
  const auto& [options, model, generator, trace, load_s] = run;
  FACET_ASSIGN(PromptInput input, MakePrompt(options, model, text));
  for (const std::string& notice : input.notices) {
    Note(ShownLine(notice));
  }
  if (trace != nullptr) {
    trace->WritePrompt(input);
  }
  Request request = MakeRequest(options, model, std::move(input.tokens), ChooseSeed(options));
  request.media = std::move(input.media);
  if (options.verbose) {
    NoteSettings(options, model, request, load_s, generator->n_context());
  }
  if (options.json) {
    JsonPrinter printer(STDOUT_FILENO);
    FACET_RETURN_IF_ERROR(printer.Start(model, request, generator->n_context()));
    FACET_ASSIGN(*reply, generator->Generate(request, options.raw, [&](const ReplyDelta& delta) {
      return printer.Print(delta);
    }));
    return printer.Finish(*reply, load_s);
  }
  TextPrinter printer(STDOUT_FILENO, StyleOf(STDOUT_FILENO, options.no_color));
  FACET_ASSIGN(*reply, generator->Generate(request, options.raw, [&](const ReplyDelta& delta) {
    return printer.Print(delta);
  }));
  return printer.Finish();
}

/// The exit code of a reply that ended, and the notes about how.
int Close(const Options& options, const LoadedModel& model, const Generator& generator,
          const Reply& reply) {
  const std::string note = FinishNote(reply, generator.n_context());
  if (!note.empty()) {
    Note(note);
  }
  if (options.verbose) {
    NoteSpeed(reply.stats, BytesPerToken(model.checkpoint()));
  }
  return reply.reason == FinishReason::kCancelled ? kExitInterrupted : kExitDone;
}

/// With the model in memory: one answer, or a chat.
int RunLoaded(const Run& run, const std::optional<std::string>& text) {
  const Options& options = run.options;
  if (options.think && !run.model.chat_template().traits().knows_thinking) {
    Warn("--think: the model's chat template knows no thinking");
  }
  if (!text) {
    return RunChat(options, run.model, run.generator);
  }
  Reply reply;
  Status status = Answer(run, *text, &reply);
  if (status.ok() && run.trace != nullptr) {
    status = run.trace->status();
  }
  return status.ok() ? Close(options, run.model, *run.generator, reply)
                     : Fail(status.error(), kExitFailed);
}

}  // namespace

int RunRun(Options options, const Environment& environment) {
  if (!options.batch.empty()) {
    return RunBatch(std::move(options), environment);
  }
  const Result<std::optional<std::string>> text = ReadPromptText(options, options.raw);
  if (!text.ok()) {
    return Fail(text.error(), kExitFailed);
  }
  const Status usable = CheckOptions(options, *text);
  if (!usable.ok()) {
    return Fail(usable.error(), kExitFailed);
  }
  std::optional<Trace> trace;
  if (!options.trace.empty()) {
    Result<Trace> created = Trace::Create(options.trace);
    if (!created.ok()) {
      return Fail(created.error(), kExitFailed);
    }
    trace.emplace(*std::move(created));
  }
  // After all that can be refused without the model: a download may take long.
  if (const ExitCode code = ResolveModels(environment, &options); code != kExitDone) {
    return code;
  }

  const auto start = std::chrono::steady_clock::now();
  std::optional<Spinner> spinner("loading " +
                                 (options.model.empty() ? "the embedded model" : options.model));
  // Who asks one question of text alone does not wait for encoders.
  const bool wants_media = !options.media.empty() || !options.mmproj.empty() || !text->has_value();
  const auto model = LoadedModel::LoadToGenerate(options, wants_media);
  if (!model.ok()) {
    spinner.reset();
    return Fail(model.error(), kExitModelRefused);
  }
  const Status takes = CheckTakesMedia(options, **model);
  if (!takes.ok()) {
    spinner.reset();
    return Fail(takes.error(), kExitFailed);
  }
  const Result<RunnerOptions> runner_options =
      RunnerOptionsFrom(options, (*model)->checkpoint().config());
  if (!runner_options.ok()) {
    spinner.reset();
    return Fail(runner_options.error(), kExitFailed);
  }
  spinner.reset();  // arranging weights has a line of its own
  Result<Generator> generator =
      Generator::Create(**model, options, *runner_options, trace ? &*trace : nullptr);
  if (!generator.ok()) {
    return Fail(generator.error(), kExitModelRefused);
  }
  const double load_s = SecondsSince(start);
  return RunLoaded({options, **model, &*generator, trace ? &*trace : nullptr, load_s}, *text);
}

}  // namespace facet
