// SPDX-License-Identifier: Apache-2.0
#include "engine/engine.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "engine/engine_core.h"
#include "engine/fake_runner.h"

namespace facet {
namespace {

using testing::EchoLogits;
using testing::EchoOf;
using testing::FakeRunner;
using testing::HashLogits;

constexpr RunnerInfo kInfo{.n_vocab = 40,
                           .n_context = 500,
                           .sliding_window = 48,
                           .n_sliding_blocks = 40,
                           .n_full_blocks = 40};

EngineOptions Options() {
  EngineOptions options;
  options.max_rows = 64;
  options.max_rows_beside = 16;
  options.max_sequences = 4;
  options.token_bytes = [](int32_t) { return std::string_view("x"); };
  return options;
}

Request MakeRequest(uint64_t id, int n_prompt, int max_tokens) {
  Request request;
  request.id = id;
  request.prompt.assign(static_cast<size_t>(n_prompt), static_cast<int32_t>(id % 40));
  request.max_tokens = max_tokens;
  request.sampling.seed = id;
  return request;
}

/// Collects events from the engine thread and lets tests wait for ends.
class Inbox {
 public:
  Engine::EventSink Sink() {
    return [this](const Event& event) {
      const std::lock_guard lock(mutex_);
      if (event.kind == Event::Kind::kToken) {
        tokens_[event.request_id].push_back(event.token);
      } else {
        EXPECT_TRUE(finished_.emplace(event.request_id, event).second) << "two ends";
      }
      changed_.notify_all();
    };
  }
  Event WaitForEnd(uint64_t id) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return finished_.contains(id); });
    return finished_.at(id);
  }
  void WaitForToken(uint64_t id) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return tokens_.contains(id); });
  }
  std::vector<int32_t> Tokens(uint64_t id) {
    const std::lock_guard lock(mutex_);
    return tokens_[id];
  }
  size_t n_finished() {
    const std::lock_guard lock(mutex_);
    return finished_.size();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<uint64_t, std::vector<int32_t>> tokens_;
  std::map<uint64_t, Event> finished_;
};

std::vector<int32_t> Solo(const Request& request, const FakeRunner::Script& script = HashLogits) {
  FakeRunner runner(kInfo, script);
  EngineCore core(&runner, Options(), [] { return 0.0; });
  EXPECT_TRUE(core.Add(request, 0).ok());
  std::vector<int32_t> tokens;
  while (core.has_work()) {
    for (const Event& event : core.Step()) {
      if (event.kind == Event::Kind::kToken) {
        tokens.push_back(event.token);
      }
    }
  }
  return tokens;
}

/// Submits from several threads, cancels some, and compares with what each says alone.
void SubmitFromManyThreads(std::unique_ptr<FakeRunner> runner, const EngineOptions& options,
                           const FakeRunner::Script& script) {
  Inbox inbox;
  Engine engine(std::move(runner), options);
  constexpr uint64_t kThreads = 4;
  constexpr uint64_t kEach = 12;
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t n = 0; n < kEach; ++n) {
        const uint64_t id = t * 100 + n;
        EXPECT_TRUE(
            engine.Submit(MakeRequest(id, 1 + static_cast<int>(n * 17), 20), inbox.Sink()).ok());
        if (n % 5 == 4) {
          engine.Cancel(id);
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (uint64_t t = 0; t < kThreads; ++t) {
    for (uint64_t n = 0; n < kEach; ++n) {
      const uint64_t id = t * 100 + n;
      const Event end = inbox.WaitForEnd(id);
      std::vector<int32_t> wanted = Solo(MakeRequest(id, 1 + static_cast<int>(n * 17), 20), script);
      if (end.reason == FinishReason::kCancelled) {
        EXPECT_EQ(n % 5, 4U);
        wanted.resize(static_cast<size_t>(end.stats.n_generated));
      } else {
        EXPECT_EQ(end.reason, FinishReason::kMaxTokens);
      }
      EXPECT_EQ(inbox.Tokens(id), wanted) << id;
      EXPECT_GE(end.stats.queue_s, 0);
      EXPECT_GE(end.stats.decode_s, 0);
    }
  }
}

TEST(Engine, ManyThreadsSubmitAndCancel) {
  SubmitFromManyThreads(std::make_unique<FakeRunner>(kInfo, HashLogits), Options(), HashLogits);
}

TEST(Engine, ManyThreadsDraft) {
  RunnerInfo info = kInfo;
  info.n_embd = 1;
  info.drafts = true;
  auto runner = std::make_unique<FakeRunner>(info, EchoLogits);
  runner->propose = [](std::span<const int32_t> history, int n) {
    return std::vector<int32_t>(static_cast<size_t>(n), EchoOf(history.back(), kInfo.n_vocab));
  };
  EngineOptions options = Options();
  options.spec = SpecMode::kAuto;
  int n_drafted = 0;
  int n_accepted = 0;
  options.on_step = [&](const StepReport& report) {
    n_drafted += report.n_drafted;
    n_accepted += report.n_accepted;
  };
  SubmitFromManyThreads(std::move(runner), options, EchoLogits);
  EXPECT_GT(n_accepted, 0);
  EXPECT_GT(n_drafted, n_accepted);
}

TEST(Engine, RefusesAtSubmission) {
  Inbox inbox;
  std::mutex gate;
  std::unique_lock closed(gate);
  auto runner = std::make_unique<FakeRunner>(kInfo, HashLogits);
  std::atomic<bool> is_running = false;
  runner->before_run = [&](const Batch&) {
    is_running = true;
    const std::lock_guard wait(gate);
    return Status();
  };
  EngineOptions options = Options();
  options.max_queue = 2;
  options.max_sequences = 1;
  Engine engine(std::move(runner), options);
  EXPECT_EQ(engine.info().n_context, 500);
  EXPECT_EQ(engine.Submit(MakeRequest(1, 500, 1), inbox.Sink()).error().Message(),
            "prompt: 500 tokens, wanted at most 499 (a context of 500 with room for a reply)");
  Request hot = MakeRequest(1, 5, 1);
  hot.sampling.temperature = 101;
  EXPECT_EQ(engine.Submit(hot, inbox.Sink()).error().Message(),
            "temperature: 101, wanted a number from 0 to 100");
  // The first runs and is stopped at the gate, so it does not wait; two do; the fourth finds the
  // queue full.
  EXPECT_TRUE(engine.Submit(MakeRequest(1, 5, 1), inbox.Sink()).ok());
  while (!is_running) {
    std::this_thread::yield();
  }
  EXPECT_EQ(engine.Submit(MakeRequest(1, 5, 1), inbox.Sink()).error().Message(),
            "id: 1, which is running, wanted an unused one");
  EXPECT_TRUE(engine.Submit(MakeRequest(2, 5, 1), inbox.Sink()).ok());
  EXPECT_TRUE(engine.Submit(MakeRequest(3, 5, 1), inbox.Sink()).ok());
  EXPECT_EQ(engine.Submit(MakeRequest(4, 5, 1), inbox.Sink()).error().Message(),
            "queue: 2 requests waiting, wanted fewer than 2");
  closed.unlock();
  for (const uint64_t id : {1, 2, 3}) {
    EXPECT_EQ(inbox.WaitForEnd(id).reason, FinishReason::kMaxTokens);
  }
  EXPECT_TRUE(engine.Submit(MakeRequest(1, 5, 1), [](const Event&) {}).ok())
      << "the id is free again, and nobody waits";
}

TEST(Engine, CancelEndsARunningRequestAndOnlyThat) {
  Inbox inbox;
  Engine engine(std::make_unique<FakeRunner>(kInfo, HashLogits), Options());
  engine.Cancel(5);
  Request endless = MakeRequest(5, 3, -1);
  endless.stops_on_repetition = false;
  auto runner_bound = MakeRequest(6, 3, 30);
  ASSERT_TRUE(engine.Submit(endless, inbox.Sink()).ok());
  ASSERT_TRUE(engine.Submit(runner_bound, inbox.Sink()).ok());
  inbox.WaitForToken(5);
  engine.Cancel(5);
  const FinishReason reason = inbox.WaitForEnd(5).reason;
  EXPECT_TRUE(reason == FinishReason::kCancelled || reason == FinishReason::kContext);
  EXPECT_EQ(inbox.WaitForEnd(6).reason, FinishReason::kMaxTokens);
  EXPECT_EQ(inbox.Tokens(6), Solo(runner_bound));
}

TEST(Engine, DestructionTellsAllThatRanOrWaited) {
  Inbox inbox;
  {
    EngineOptions options = Options();
    options.max_sequences = 2;
    Engine engine(std::make_unique<FakeRunner>(kInfo, HashLogits), options);
    for (uint64_t id = 0; id < 20; ++id) {
      ASSERT_TRUE(engine.Submit(MakeRequest(id, 400, -1), inbox.Sink()).ok());
    }
  }
  EXPECT_EQ(inbox.n_finished(), 20U);
  EXPECT_EQ(inbox.WaitForEnd(19).reason, FinishReason::kCancelled);
}

TEST(Engine, IdleEnginesStopAtOnce) {
  Engine engine(std::make_unique<FakeRunner>(kInfo, HashLogits), Options());
}

}  // namespace
}  // namespace facet
