// SPDX-License-Identifier: Apache-2.0
#include "server/server.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <utility>

#include "server/access.h"
#include "server/metrics.h"
#include "server/routes.h"

namespace facet {
namespace {

class RunningServer : public Server {
 public:
  RunningServer(ServerOptions options, ServedModel model)
      : options_(std::move(options)),
        model_(std::move(model)),
        metrics_(
            {.sliding = options_.bytes_per_sliding_block, .full = options_.bytes_per_full_block}) {}

  Status Start(const std::function<Result<std::unique_ptr<Engine>>(
                   std::function<void(const StepReport&)> on_step)>& make_engine) {
    FACET_ASSIGN(http_, HttpServer::Listen(
                            options_.http,
                            [this](HttpRequest request, std::shared_ptr<HttpExchange> exchange) {
                              routes_->Handle(std::move(request), std::move(exchange));
                            },
                            [this](int status, std::string_view message) {
                              return routes_->MakeTransportError(status, message);
                            },
                            [this](const HttpRequest& head) { return routes_->WantsBody(head); }));
    FACET_ASSIGN(engine_,
                 make_engine([this](const StepReport& report) { metrics_.AddStep(report); }));
    routes_ = std::make_unique<Routes>(options_, &model_, engine_.get(), &metrics_,
                                       [this] { return http_->n_connections(); });
    return {};
  }

  [[nodiscard]] uint16_t port() const override { return http_->port(); }
  void Run() override {
    http_->Run();
    std::unique_ptr<Routes> ended;
    {
      const std::lock_guard lock(mutex_);
      ended = std::move(routes_);
    }
  }
  void Stop(double deadline_s) override {
    constexpr double kLongest = 1e9;
    constexpr double kGrace = 1;  // for the last words of replies that are cancelled
    const double seconds = std::clamp(deadline_s, 0.0, kLongest);
    const std::lock_guard lock(mutex_);
    if (routes_ != nullptr) {
      using Clock = std::chrono::steady_clock;
      routes_->CancelAt(Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                           std::chrono::duration<double>(seconds)));
    }
    http_->Stop(seconds + kGrace);
  }
  Engine& engine() override { return *engine_; }

 private:
  const ServerOptions options_;
  const ServedModel model_;
  Metrics metrics_;
  std::unique_ptr<HttpServer> http_;
  std::unique_ptr<Engine> engine_;
  std::mutex mutex_;                // of routes_ between Stop and the end of Run
  std::unique_ptr<Routes> routes_;  // last: replies are told by the engine and sent by http_
};

Status CheckOptions(const ServerOptions& options) {
  for (const std::string& key : options.api_keys) {
    FACET_RETURN_IF_ERROR(CheckKey(key, "API key"));
  }
  for (const std::string& origin : options.origins) {
    FACET_RETURN_IF_ERROR(CheckOrigin(origin, "origin"));
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Server>> Server::Create(
    ServerOptions options, ServedModel model,
    const std::function<Result<std::unique_ptr<Engine>>(
        std::function<void(const StepReport&)> on_step)>& make_engine) {
  FACET_RETURN_IF_ERROR(CheckOptions(options));
  auto server = std::make_unique<RunningServer>(std::move(options), std::move(model));
  FACET_RETURN_IF_ERROR(server->Start(make_engine));
  return std::unique_ptr<Server>(std::move(server));
}

}  // namespace facet
