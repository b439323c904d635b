// SPDX-License-Identifier: Apache-2.0
// The HTTP API of a running model: who may ask (keys, origins), what is asked (routes), the way
// from a request to the engine and back, metrics and the log. docs/http_api.md is the reference of
// the routes.
//
// Threads: the I/O thread (HttpServer::Run, the caller's) takes requests in; workers parse, render
// and tokenise; the engine's thread hands events over; one reply thread formats and sends them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/engine.h"
#include "server/http.h"
#include "server/served_model.h"

namespace facet {

struct ServerOptions {
  HttpOptions http;
  std::vector<std::string> api_keys;  ///< empty: anyone may ask
  std::vector<std::string> origins;   ///< of web pages that may ask (CORS); "*": all
  int n_workers = 2;
  int request_timeout_s = 0;                       ///< a reply that takes longer is ended; 0: never
  bool logs_text = false;                          ///< prompts and replies too
  bool logs_json = false;                          ///< lines are JSON objects
  std::function<void(std::string_view line)> log;  ///< one line per request; may be empty
  std::string version;                             ///< of the program, for /props
  int64_t bytes_per_sliding_block = 0;             ///< for metrics; 0: not told
  int64_t bytes_per_full_block = 0;
};

class Server {
 public:
  /// Listens, before the engine is made: a port in use is told at once. `make_engine` is given what
  /// Metrics wants to know of each step (EngineOptions::on_step) and returns the engine, which the
  /// server owns.
  static Result<std::unique_ptr<Server>> Create(
      ServerOptions options, ServedModel model,
      const std::function<Result<std::unique_ptr<Engine>>(
          std::function<void(const StepReport&)> on_step)>& make_engine);
  virtual ~Server() = default;

  [[nodiscard]] virtual uint16_t port() const = 0;
  /// Serves until Stop has done its work; afterwards the engine is idle.
  virtual void Run() = 0;
  /// As HttpServer::Stop; replies in progress at the deadline are cancelled and told so, and
  /// whoever has not taken that a second later is cut.
  virtual void Stop(double deadline_s) = 0;
  virtual Engine& engine() = 0;
};

}  // namespace facet
