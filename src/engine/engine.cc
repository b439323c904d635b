// SPDX-License-Identifier: Apache-2.0
#include "engine/engine.h"

#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/check.h"
#include "engine/engine_core.h"
#include "engine/request_check.h"

namespace facet {

namespace {

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

struct Engine::State {
  struct Submitted {
    Request request;
    double submitted_s;
  };
  /// What other threads asked for since the last step.
  struct Commands {
    std::vector<Submitted> submitted;
    std::unordered_set<uint64_t> cancelled;
    std::vector<std::function<void()>> tasks;  ///< for the engine thread
    bool is_stopping = false;
  };

  State(std::unique_ptr<Runner> model, EngineOptions options)
      : max_queue(options.max_queue),
        runner(std::move(model)),
        core(runner.get(), std::move(options), Now) {
    FACET_CHECK(max_queue >= 1);
  }

  void Run();
  Commands TakeCommands();
  void CountWaiting();
  void Deliver(const std::vector<Event>& events);
  /// Runs `task` on the engine thread and waits for its result.
  Status Await(std::function<Status()> task);

  // Never changed after construction.
  const int max_queue;
  const std::unique_ptr<Runner> runner;

  // Of the engine thread; info() is constant and may be read by all.
  EngineCore core;

  std::mutex mutex;
  std::condition_variable wake;
  // Under the mutex.
  Commands commands;
  std::unordered_map<uint64_t, EventSink>
      sinks;          ///< of all live requests; only the engine thread removes
  int n_waiting = 0;  ///< taken from commands and not running

  std::thread thread;
};

Engine::State::Commands Engine::State::TakeCommands() {
  std::unique_lock lock(mutex);
  wake.wait(lock, [&] {
    return core.has_work() || commands.is_stopping || !commands.submitted.empty() ||
           !commands.cancelled.empty() || !commands.tasks.empty();
  });
  n_waiting += static_cast<int>(commands.submitted.size());
  Commands taken;
  std::swap(taken.submitted, commands.submitted);
  std::swap(taken.cancelled, commands.cancelled);
  std::swap(taken.tasks, commands.tasks);
  taken.is_stopping = commands.is_stopping;
  return taken;
}

void Engine::State::CountWaiting() {
  const std::lock_guard lock(mutex);
  n_waiting = core.n_waiting();
}

void Engine::State::Run() {
  bool is_stopping = false;
  while (!is_stopping) {
    Commands taken = TakeCommands();
    for (Submitted& submitted : taken.submitted) {
      FACET_CHECK(core.Add(std::move(submitted.request), submitted.submitted_s).ok());
    }
    for (const uint64_t id : taken.cancelled) {
      core.Cancel(id);
    }
    for (const auto& task : taken.tasks) {
      task();
    }
    is_stopping = taken.is_stopping;
    if (is_stopping) {
      core.CancelAll();
    }
    const auto events = core.Step([this] { CountWaiting(); });
    CountWaiting();  // before the ends are told: who reads of an end finds room in the queue
    Deliver(events);
  }
}

void Engine::State::Deliver(const std::vector<Event>& events) {
  for (const Event& event : events) {
    if (event.kind == Event::Kind::kToken) {
      const EventSink* sink = nullptr;
      {
        const std::lock_guard lock(mutex);
        sink = &sinks.at(event.request_id);  // stays where it is while others are added
      }
      (*sink)(event);
      continue;
    }
    EventSink sink;
    {
      // The id is free before the end is told, and a late Cancel must not hit whoever uses it next.
      const std::lock_guard lock(mutex);
      const auto it = sinks.find(event.request_id);
      sink = std::move(it->second);
      sinks.erase(it);
      commands.cancelled.erase(event.request_id);
    }
    sink(event);
  }
}

Status Engine::State::Await(std::function<Status()> task) {
  // Shared: the engine's thread may still be about to leave it when the result is there.
  const auto packaged = std::make_shared<std::packaged_task<Status()>>(std::move(task));
  std::future<Status> result = packaged->get_future();
  {
    const std::lock_guard lock(mutex);
    FACET_CHECK(!commands.is_stopping);
    commands.tasks.emplace_back([packaged] { (*packaged)(); });
  }
  wake.notify_one();
  return result.get();
}

Engine::Engine(std::unique_ptr<Runner> runner, EngineOptions options)
    : state_(std::make_unique<State>(std::move(runner), std::move(options))) {
  state_->thread = std::thread([state = state_.get()] { state->Run(); });
}

Engine::~Engine() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->commands.is_stopping = true;
  }
  state_->wake.notify_one();
  state_->thread.join();
}

Status Engine::Submit(Request request, EventSink sink) {
  FACET_RETURN_IF_ERROR(CheckRequest(request, info()));
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->sinks.contains(request.id)) {
      return Refuse("id", fmt::format("{}, which is running", request.id), "an unused one");
    }
    const auto n_queued =
        static_cast<size_t>(state_->n_waiting) + state_->commands.submitted.size();
    if (n_queued >= static_cast<size_t>(state_->max_queue)) {
      return Refuse("queue", fmt::format("{} requests waiting", n_queued),
                    fmt::format("fewer than {}", state_->max_queue));
    }
    state_->sinks.emplace(request.id, std::move(sink));
    state_->commands.submitted.push_back({std::move(request), Now()});
  }
  state_->wake.notify_one();
  return {};
}

void Engine::Cancel(uint64_t request_id) {
  {
    const std::lock_guard lock(state_->mutex);
    if (!state_->sinks.contains(request_id)) {
      return;
    }
    state_->commands.cancelled.insert(request_id);
  }
  state_->wake.notify_one();
}

Status Engine::SavePrefixes(const std::string& path, const std::string& model,
                            const std::string& kv_type) {
  return state_->Await([&] {
    PrefixCache* cache = state_->core.prefix_cache();
    FACET_CHECK(cache != nullptr);
    return cache->Save(path, model, kv_type);
  });
}

Result<int> Engine::LoadPrefixes(const std::string& path, const std::string& model,
                                 const std::string& kv_type) {
  int n_blocks = 0;
  const auto load = [&]() -> Status {
    PrefixCache* cache = state_->core.prefix_cache();
    FACET_CHECK(cache != nullptr);
    FACET_ASSIGN(n_blocks, cache->Load(path, model, kv_type));
    return {};
  };
  FACET_RETURN_IF_ERROR(state_->Await(load));
  return n_blocks;
}

const RunnerInfo& Engine::info() const { return state_->core.info(); }

int Engine::max_queue() const { return state_->max_queue; }

}  // namespace facet
