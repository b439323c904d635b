// SPDX-License-Identifier: Apache-2.0
#include "server/generation.h"

#include <algorithm>
#include <ctime>
#include <optional>
#include <utility>

#include "server/api_reply.h"
#include "server/engine_request.h"

namespace facet {
namespace {

using Clock = Call::Clock;

ApiError ShuttingDown() {
  return {.status = 503,
          .message = "the server is shutting down",
          .type = "server_error",
          .code = "shutting_down"};
}

double Seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

/// One call: its choices, from submission to the last event. Touched by the reply thread alone.
class Generations::Generation {
 public:
  Generation(Generations* owner, std::unique_ptr<Call> call, ApiRequest request,
             std::string reply_id, std::vector<std::vector<int32_t>> prompts)
      : owner_(owner),
        call_(std::move(call)),
        request_(std::move(request)),
        reply_(request_, *owner->model_, std::move(reply_id),
               static_cast<int64_t>(std::time(nullptr)), prompts),
        prompts_(std::move(prompts)),
        choices_(prompts_.size() * static_cast<size_t>(request_.n)) {
    // What prompts were made of may be large, and a reply takes long.
    request_.chat.messages = {};
    request_.chat.variables = {};
    request_.media.parts = {};
    request_.prompts = {};
  }

  struct Choice {
    uint64_t id = 0;
    std::vector<int32_t> tokens;
    Clock::time_point latest = {};
    bool is_running = false;
  };

  [[nodiscard]] Call& call() { return *call_; }
  [[nodiscard]] const ApiRequest& request() const { return request_; }
  [[nodiscard]] std::vector<Choice>& choices() { return choices_; }
  [[nodiscard]] const std::vector<int32_t>& PromptOf(size_t choice) const {
    return prompts_[choice / static_cast<size_t>(request_.n)];
  }
  [[nodiscard]] bool is_running() const {
    return std::any_of(choices_.begin(), choices_.end(),
                       [](const Choice& choice) { return choice.is_running; });
  }

  void SetTimer(const SerialThread::Timer& timer) { timer_ = timer; }
  [[nodiscard]] const std::optional<SerialThread::Timer>& timer() const { return timer_; }

  /// All choices are with the engine.
  void StartStream() {
    call_->record().has_reply = true;
    if (request_.stream) {
      call_->StartStream();
      Write(reply_.Start());
    }
  }

  /// The engine did not take them all; those that it took are no longer of interest.
  void Refuse(const ApiError& error) {
    is_answered_ = true;
    call_->Fail(error);
    Cancel();
  }

  void Cancel() {
    for (const Choice& choice : choices_) {
      if (choice.is_running) {
        owner_->engine_->Cancel(choice.id);
      }
    }
  }

  /// The limit of time ends a reply as that of length does.
  void CancelLate() {
    is_late_ = true;
    Cancel();
  }

  void CancelClosed() {
    is_closed_ = true;
    call_->MarkClosed();
    Cancel();
  }

  void Take(size_t index, Event event, Clock::time_point time) {
    Choice& choice = choices_[index];
    if (event.token >= 0) {
      choice.tokens.push_back(event.token);
    }
    if (event.kind == Event::Kind::kToken) {
      NoteToken(&choice, time);
      if (owner_->options_.logs_text && index == 0) {
        call_->record().reply_text += event.bytes;
      }
    } else {
      NoteEnd(index, &event);
    }
    if (is_answered_) {
      return;
    }
    Write(reply_.Add(static_cast<int>(index), event));
    if (event.kind == Event::Kind::kFinished && reply_.error()) {
      Cancel();  // also what has no token yet by which it would be seen that no more is wanted
    }
    if (choice.is_running && reply_.wants_no_more(static_cast<int>(index))) {
      owner_->engine_->Cancel(choice.id);
    }
  }

  /// All choices have ended.
  void Answer() {
    if (std::exchange(is_answered_, true)) {
      return;
    }
    RequestRecord& record = call_->record();
    record.tokens = reply_.totals();
    record.finish = is_closed_ ? "cancelled" : reply_.finish_reason();
    record.decode_s = latest_ > first_ ? Seconds(latest_ - first_) : 0;
    std::optional<ApiError> error = reply_.error();
    const bool is_shut_down = !error && is_cut_ && !is_closed_;
    if (is_shut_down) {
      error = ShuttingDown();
    }
    if (request_.stream) {
      Write(is_shut_down ? "data: " + ErrorBody(*error) + "\n\n" : reply_.Finish());
      call_->EndStream(error ? &*error : nullptr);
    } else if (error) {
      call_->Fail(*error);
    } else {
      call_->Respond(HttpResponse{.body = reply_.Finish()});
    }
  }

 private:
  void Write(std::string bytes) {
    if (!bytes.empty()) {
      call_->Write(std::move(bytes));
    }
  }

  void NoteToken(Choice* choice, Clock::time_point time) {
    if (first_ == Clock::time_point()) {
      first_ = time;
      call_->record().first_token_s = Seconds(time - call_->arrival());
      owner_->metrics_->AddFirstToken(call_->record().first_token_s);
    }
    if (choice->latest != Clock::time_point()) {
      owner_->metrics_->AddTokenGap(Seconds(time - choice->latest));
    }
    choice->latest = time;
    latest_ = time;
  }

  void NoteEnd(size_t index, Event* event) {
    Choice& choice = choices_[index];
    choice.is_running = false;
    owner_->metrics_->AddFinished(event->stats);
    // Tokens that a stop text swallowed are not told, so that such a turn is not known whole.
    if (request_.kind == ApiRequest::Kind::kChat && request_.engine.reuses_prefix &&
        !choice.tokens.empty() &&
        choice.tokens.size() == static_cast<size_t>(event->stats.n_generated)) {
      owner_->memory_->Remember(PromptOf(index), choice.tokens, request_.engine.cache_salt);
    }
    if (event->reason == FinishReason::kCancelled && !is_answered_ &&
        !reply_.wants_no_more(static_cast<int>(index))) {
      is_cut_ = is_cut_ || !is_late_;
      event->reason = is_late_ ? FinishReason::kMaxTokens : event->reason;
    }
  }

  Generations* owner_;
  std::unique_ptr<Call> call_;
  ApiRequest request_;
  ApiReply reply_;
  std::vector<std::vector<int32_t>> prompts_;
  std::vector<Choice> choices_;
  std::optional<SerialThread::Timer> timer_;
  Clock::time_point first_ = {};
  Clock::time_point latest_ = {};
  bool is_late_ = false;
  bool is_closed_ = false;
  bool is_answered_ = false;
  bool is_cut_ = false;
};

Generations::Generations(const Options& options, const ServedModel* model, Engine* engine,
                         TurnMemory* memory, Metrics* metrics)
    : options_(options), model_(model), engine_(engine), memory_(memory), metrics_(metrics) {}

Generations::~Generations() { CancelAll(); }

void Generations::Start(std::unique_ptr<Call> call, ApiRequest request, std::string reply_id,
                        std::vector<std::vector<int32_t>> prompts) {
  auto generation = std::make_shared<Generation>(this, std::move(call), std::move(request),
                                                 std::move(reply_id), std::move(prompts));
  {
    const std::lock_guard lock(mutex_);
    ++n_open_;
  }
  thread_.Post([this, generation = std::move(generation)] { Begin(generation); });
}

void Generations::CancelAt(SerialThread::Clock::time_point time) {
  thread_.PostAt(time, [this] {
    is_ending_ = true;
    for (const auto& generation : running_) {
      generation->Cancel();
    }
  });
}

void Generations::CancelAll() {
  CancelAt(Clock::now());
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [this] { return n_open_ == 0; });
}

int Generations::TimeLimit(const ApiRequest& request) const {
  const int own = request.timeout_s.value_or(0);
  if (own <= 0 || options_.request_timeout_s <= 0) {
    return std::max(own, options_.request_timeout_s);
  }
  return std::min(own, options_.request_timeout_s);
}

Status Generations::Submit(const std::shared_ptr<Generation>& generation, size_t index) {
  Generation::Choice& choice = generation->choices()[index];
  Request request = MakeEngineRequest(generation->request(), *model_, generation->PromptOf(index),
                                      static_cast<int>(index));
  request.id = choice.id = next_request_id_++;
  FACET_RETURN_IF_ERROR(
      engine_->Submit(std::move(request), [this, generation, index](const Event& event) {
        thread_.Post([this, generation, index, event, time = Clock::now()] {
          generation->Take(index, event, time);
          if (!generation->is_running()) {
            End(generation);
          }
        });
      }));
  choice.is_running = true;
  metrics_->AddSubmitted(1);
  return {};
}

void Generations::Begin(const std::shared_ptr<Generation>& generation) {
  running_.insert(generation);
  if (is_ending_) {
    generation->Refuse(ShuttingDown());
    return End(generation);
  }
  for (size_t index = 0; index < generation->choices().size(); ++index) {
    if (const Status status = Submit(generation, index); !status.ok()) {
      generation->Refuse(RefusedByEngine(status.error()));
      if (!generation->is_running()) {
        End(generation);
      }
      return;
    }
  }
  generation->StartStream();
  generation->call().SetOnClosed([this, weak = std::weak_ptr<Generation>(generation)] {
    thread_.Post([weak] {
      if (const auto alive = weak.lock()) {
        alive->CancelClosed();
      }
    });
  });
  if (const int limit_s = TimeLimit(generation->request()); limit_s > 0) {
    generation->SetTimer(
        thread_.PostAt(generation->call().arrival() + std::chrono::seconds(limit_s),
                       [generation] { generation->CancelLate(); }));
  }
}

void Generations::End(const std::shared_ptr<Generation>& generation) {
  generation->Answer();
  if (generation->timer()) {
    thread_.Withdraw(*generation->timer());
  }
  running_.erase(generation);
  // Told with the lock: who waits may destroy this at once.
  const std::lock_guard lock(mutex_);
  --n_open_;
  ended_.notify_all();
}

}  // namespace facet
