// SPDX-License-Identifier: Apache-2.0
#include "app/generator.h"

#include <random>
#include <utility>

#include "app/drafting.h"
#include "app/reply_stream.h"
#include "app/terminal.h"
#include "model/model.h"

namespace facet {
namespace {

/// Collects the reply while it hands on its pieces; remembers the first failure of the sink.
class Collector {
 public:
  Collector(const LoadedModel& model, const Request& request, bool is_raw,
            const Generator::DeltaSink& sink)
      : reader_(model.vocab(), request.prompt, Json(), is_raw), sink_(sink) {}

  void Add(const Event& event) {
    reply.tokens.push_back(event.token);
    Hand(reader_.Push(event));
  }
  void Finish(const Event& event) {
    if (event.token >= 0) {
      reply.tokens.push_back(event.token);
    }
    Hand(reader_.Finish());
  }

  Status status;
  Reply reply;

 private:
  void Hand(const std::vector<ReplyDelta>& deltas) {
    for (const ReplyDelta& delta : deltas) {
      (delta.kind == ReplyDelta::Kind::kThought ? reply.thought : reply.content) += delta.text;
      if (status.ok()) {
        status = sink_(delta);
      }
    }
  }

  ReplyReader reader_;
  const Generator::DeltaSink& sink_;
};

}  // namespace

Result<Generator> Generator::Create(const LoadedModel& model, const Options& options,
                                    const RunnerOptions& runner_options, Trace* trace) {
  RunnerOptions whole = runner_options;
  whole.media = model.media();
  whole.drafter = model.drafter();
  FACET_ASSIGN(std::unique_ptr<Runner> runner, MakeRunner(model.checkpoint(), whole));
  EngineOptions engine_options;
  engine_options.max_rows = whole.max_rows;
  engine_options.max_sequences = 1;
  engine_options.reuses_prefixes = true;  // a chat goes on where it was
  engine_options.token_bytes = [&vocab = model.vocab()](int32_t token) {
    return vocab.bytes(token);
  };
  SetDrafting(options, &engine_options);
  return Generator(model, std::make_unique<Engine>(std::move(runner), std::move(engine_options)),
                   trace);
}

Result<Reply> Generator::Generate(Request request, bool is_raw, const DeltaSink& on_delta) {
  request.id = next_id_++;
  const uint64_t id = request.id;
  Collector collector(*model_, request, is_raw, on_delta);
  EventQueue events;
  const InterruptGuard guard;
  FACET_RETURN_IF_ERROR(
      engine_->Submit(std::move(request), [&events](const Event& event) { events.Push(event); }));
  bool is_cancelled = false;
  while (true) {
    if (!is_cancelled && (guard.is_interrupted() || !collector.status.ok())) {
      engine_->Cancel(id);
      is_cancelled = true;
    }
    const std::optional<Event> event = events.Pop();
    if (!event) {
      continue;
    }
    if (trace_ != nullptr) {
      trace_->WriteEvent(*event);
    }
    if (event->kind == Event::Kind::kToken) {
      collector.Add(*event);
      continue;
    }
    collector.Finish(*event);
    FACET_RETURN_IF_ERROR(collector.status);
    if (event->reason == FinishReason::kError) {
      return Refuse("", event->error);
    }
    collector.reply.reason = event->reason;
    collector.reply.stats = event->stats;
    return std::move(collector.reply);
  }
}

Request MakeRequest(const Options& options, const LoadedModel& model, std::vector<int> prompt,
                    uint64_t seed) {
  Request request;
  request.prompt = std::move(prompt);
  request.sampling = SamplingFrom(options, model.checkpoint().defaults(), seed);
  request.max_tokens = options.max_tokens;
  request.stop = options.stop;
  request.end_tokens = model.end_tokens();
  request.suppressed_tokens = model.suppressed_tokens();
  request.spec = options.spec;
  return request;
}

uint64_t ChooseSeed(const Options& options) {
  return options.seed ? *options.seed : std::random_device()();  // 32 bits: easy to type again.
}

}  // namespace facet
