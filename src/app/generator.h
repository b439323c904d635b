// SPDX-License-Identifier: Apache-2.0
// One reply at a time: gives a request to the engine, takes its events on the caller's thread,
// splits them into content, thoughts and calls, and stops when the user presses Ctrl-C.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/loaded_model.h"
#include "app/trace.h"
#include "base/status.h"
#include "chat/reply.h"
#include "engine/engine.h"

namespace facet {

/// A finished reply. `content` and `thought` are all that was handed out.
struct Reply {
  FinishReason reason = FinishReason::kEndToken;
  RequestStats stats;
  std::string content;
  std::string thought;
  std::vector<int32_t> tokens;  ///< all that were told, the end token too
};

class Generator {
 public:
  /// Takes each piece as it comes. When it fails, the reply is stopped and Generate gives its
  /// error.
  using DeltaSink = std::function<Status(const ReplyDelta&)>;

  /// Allocates and binds, the model's encoders and drafter too; the model outlives the generator.
  /// `trace` may be null and outlives it too.
  static Result<Generator> Create(const LoadedModel& model, const Options& options,
                                  const RunnerOptions& runner_options, Trace* trace);

  /// Runs a request to its end on the caller's thread. `is_raw`: all tokens are content.
  /// kCancelled: Ctrl-C.
  Result<Reply> Generate(Request request, bool is_raw, const DeltaSink& on_delta);

  [[nodiscard]] int n_context() const { return engine_->info().n_context; }

 private:
  Generator(const LoadedModel& model, std::unique_ptr<Engine> engine, Trace* trace)
      : model_(&model), engine_(std::move(engine)), trace_(trace) {}

  const LoadedModel* model_;
  std::unique_ptr<Engine> engine_;
  Trace* trace_;
  uint64_t next_id_ = 1;
};

/// What the options say about a reply, for a prompt that is tokens already.
Request MakeRequest(const Options& options, const LoadedModel& model, std::vector<int> prompt,
                    uint64_t seed);

/// --seed, or a new one.
uint64_t ChooseSeed(const Options& options);

}  // namespace facet
