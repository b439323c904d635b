// SPDX-License-Identifier: Apache-2.0
// From a request to the one that answers it: who may ask, which route it is, and the routes that
// need no reply of the model. What takes time is done by workers, not by the thread that calls
// Handle. Knows no sockets: tests call it with an exchange of their own.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "chat/turn_memory.h"
#include "engine/engine.h"
#include "server/access.h"
#include "server/call.h"
#include "server/generation.h"
#include "server/http.h"
#include "server/metrics.h"
#include "server/server.h"
#include "server/threads.h"

namespace facet {

class Routes {
 public:
  /// `engine`, `model` and `metrics` must outlive it. `n_connections` is asked for /metrics.
  Routes(const ServerOptions& options, const ServedModel* model, Engine* engine, Metrics* metrics,
         std::function<size_t()> n_connections);
  /// Answers what workers have not begun with an error, cancels replies, and waits.
  ~Routes();

  /// Quick; the answer comes from any thread. See HttpHandler.
  void Handle(HttpRequest request, std::shared_ptr<HttpExchange> exchange);
  /// From then on replies are cancelled and told that the server stops. From any thread.
  void CancelAt(std::chrono::steady_clock::time_point time) { generations_.CancelAt(time); }
  /// Whether Handle can do with the body of a request that has this head; see HttpWantsBody.
  [[nodiscard]] bool WantsBody(const HttpRequest& head) const;
  /// What HttpServer answers with where it refuses by itself.
  HttpResponse MakeTransportError(int status, std::string_view message);

 private:
  struct Route;
  using Handler = void (Routes::*)(std::unique_ptr<Call>);

  static const Route* FindRoute(std::string_view path);
  void Dispatch(const Route& route, std::unique_ptr<Call> call);
  void PostToWorker(Handler handler, std::unique_ptr<Call> call);
  void Log(const RequestRecord& record) const;
  /// 32 hexadecimal digits, different each time.
  std::string NewId();

  void AnswerRoot(std::unique_ptr<Call> call);
  void AnswerHealth(std::unique_ptr<Call> call);
  void AnswerMetrics(std::unique_ptr<Call> call);
  void AnswerProps(std::unique_ptr<Call> call);
  void AnswerModels(std::unique_ptr<Call> call);
  void AnswerModel(std::unique_ptr<Call> call);
  void AnswerEmbeddings(std::unique_ptr<Call> call);
  void AnswerTokenize(std::unique_ptr<Call> call);
  void AnswerDetokenize(std::unique_ptr<Call> call);
  void AnswerTemplate(std::unique_ptr<Call> call);
  void AnswerChat(std::unique_ptr<Call> call);
  void AnswerCompletion(std::unique_ptr<Call> call);
  /// A chat with its media read, and the time that took told to the metrics.
  Result<ApiRequest> ReadChat(const Json& body) const;
  void Generate(std::unique_ptr<Call> call, Result<ApiRequest> request, std::string_view id_prefix);

  const ServerOptions options_;
  const ServedModel* model_;
  Engine* engine_;
  Metrics* metrics_;
  std::function<size_t()> n_connections_;
  Access access_;
  uint64_t id_seed_;
  std::atomic<uint64_t> n_ids_ = 0;
  TurnMemory memory_;
  Generations generations_;
  WorkerPool workers_;  // last: its tasks use all of the above
};

}  // namespace facet
