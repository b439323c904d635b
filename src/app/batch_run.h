// SPDX-License-Identifier: Apache-2.0
// `facet run --batch`: keeps the engine busy with the lines of a file and writes each result when
// it is finished. The engine makes sure that a reply is the same whatever runs beside it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "app/batch_files.h"
#include "app/batch_line.h"
#include "app/batch_result.h"
#include "app/loaded_model.h"
#include "app/options.h"
#include "app/progress.h"
#include "app/prompt_maker.h"
#include "app/reply_stream.h"
#include "app/terminal.h"
#include "base/status.h"
#include "engine/engine.h"

namespace facet {

struct BatchCounts {
  int64_t n_answered = 0;
  int64_t n_failed = 0;
  int64_t n_skipped = 0;  ///< answered in an earlier run
  int64_t n_prompt = 0;   ///< tokens, of the answered
  int64_t n_reply = 0;
  int64_t n_drafted = 0;  ///< of the replies, guessed and computed
  int64_t n_accepted = 0;
};

/// "answered 10, failed 1, skipped 0 in 2.0 s; 300 prompt tokens, 500 of replies, 250.0 tokens/s",
/// and "; 80 of 100 drafted tokens accepted" where there were drafts.
std::string SummaryText(const BatchCounts& counts, double elapsed_s);

/// One run through a file. Not for several threads.
class BatchRun {
 public:
  /// All outlive it. `options` are those of the command line.
  BatchRun(const Options& options, const LoadedModel& model, LineReader* lines,
           ResultFile* results);

  /// Allocates; call once, first.
  Status Start(const RunnerOptions& runner_options);
  /// To the end of the file, or to Ctrl-C: then what runs is cancelled and not written. An error is
  /// one of reading or writing.
  Status Run();

  [[nodiscard]] const BatchCounts& counts() const { return counts_; }
  [[nodiscard]] bool is_interrupted() const { return is_interrupted_; }

 private:
  struct Running {
    BatchKey key;
    ReplyReader reader;
    BatchReply reply;
  };

  Status Feed(const InterruptGuard& guard);
  Status TakeLine(const LineReader::Line& line);
  Status Submit(const Json& json, const BatchKey& key);
  Result<PromptInput> PromptOf(const BatchRequest& request) const;
  void Tell(const BatchKey& key, const std::string& text);
  Status TakeEvent(const Event& event);
  Status WriteError(const BatchKey& key, BatchFault fault, const std::string& message);
  void CancelAll();

  const Options& options_;
  const LoadedModel& model_;
  const PromptMaker prompts_;
  LineReader* lines_;
  ResultFile* results_;
  uint64_t base_seed_;
  int n_lines_;    // that are answered at a time
  size_t n_most_;  // in the engine and waiting for it
  EventQueue events_;
  std::unordered_map<uint64_t, Running> running_;  // by line
  std::unordered_set<std::string> ids_;            // of all lines so far
  BatchCounts counts_;
  std::optional<ProgressLine> progress_;
  bool is_at_end_ = false;
  bool is_interrupted_ = false;
  std::unique_ptr<Engine> engine_;  // last: its thread tells events until it is gone
};

/// The command. Prints results, notes about bad lines and a summary; the exit code says whether
/// every line has a reply.
int RunBatch(Options options, const Environment& environment);

}  // namespace facet
