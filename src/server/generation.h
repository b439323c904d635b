// SPDX-License-Identifier: Apache-2.0
// Replies under way: each has its choices in the engine, its ApiReply, and its client. All of them
// live on one thread, which takes events from the engine's, formats them and hands the bytes to the
// connection; so the engine never waits for a client, and nothing here needs a lock.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>
#include <vector>

#include "chat/turn_memory.h"
#include "engine/engine.h"
#include "server/api_request.h"
#include "server/call.h"
#include "server/metrics.h"
#include "server/served_model.h"
#include "server/threads.h"

namespace facet {

class Generations {
 public:
  struct Options {
    int request_timeout_s = 0;  ///< 0: none
    bool logs_text = false;
  };
  /// All must outlive it.
  Generations(const Options& options, const ServedModel* model, Engine* engine, TurnMemory* memory,
              Metrics* metrics);
  /// Cancels what runs and waits for it.
  ~Generations();
  Generations(const Generations&) = delete;
  Generations& operator=(const Generations&) = delete;

  /// Submits all choices and answers the call, now or when the engine is done. `prompts`: tokens of
  /// each. From any thread.
  void Start(std::unique_ptr<Call> call, ApiRequest request, std::string reply_id,
             std::vector<std::vector<int32_t>> prompts);
  /// From `time` on what runs is cancelled and what is started is refused. From any thread.
  void CancelAt(SerialThread::Clock::time_point time);
  /// Waits until nothing runs; what does is cancelled. From any thread but the one of the replies.
  void CancelAll();

 private:
  class Generation;

  Status Submit(const std::shared_ptr<Generation>& generation, size_t index);
  void Begin(const std::shared_ptr<Generation>& generation);
  void End(const std::shared_ptr<Generation>& generation);
  [[nodiscard]] int TimeLimit(const ApiRequest& request) const;

  const Options options_;
  const ServedModel* model_;
  Engine* engine_;
  TurnMemory* memory_;
  Metrics* metrics_;
  uint64_t next_request_id_ = 1;                             // of the reply thread
  std::unordered_set<std::shared_ptr<Generation>> running_;  // of the reply thread
  bool is_ending_ = false;                                   // of the reply thread

  std::mutex mutex_;
  std::condition_variable ended_;
  int n_open_ = 0;  // started and not ended; guarded by mutex_

  SerialThread thread_;  // last: it uses all of the above
};

}  // namespace facet
