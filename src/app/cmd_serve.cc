// SPDX-License-Identifier: Apache-2.0
// `facet serve`: the model behind OpenAI's API, from the options to a server that runs until a
// signal stops it. What it serves is in server/.
#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <ctime>
#include <filesystem>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "app/commands.h"
#include "app/drafting.h"
#include "app/fingerprint.h"
#include "app/help.h"
#include "app/loaded_model.h"
#include "app/media_input.h"
#include "app/progress.h"
#include "app/terminal.h"
#include "base/file.h"
#include "base/log.h"
#include "net/fetch_media.h"
#include "server/access.h"
#include "server/log_thread.h"
#include "server/server.h"

namespace facet {
namespace {

/// Whole contexts that the memory holds; more sequences share it.
constexpr int kMostWholeContexts = 4;
constexpr int kDefaultParallel = 16;

/// Takes SIGTERM and Ctrl-C from its making on: the first one stops the server with the deadline,
/// the second at once; while there is no server, the program ends, also as process 1, to which a
/// signal does nothing by itself. Made before other threads, which inherit that the signals are
/// held back for its own.
class StopOnSignal {
 public:
  explicit StopOnSignal(double deadline_s) : deadline_s_(deadline_s) {
    ::sigemptyset(&signals_);
    ::sigaddset(&signals_, SIGINT);
    ::sigaddset(&signals_, SIGTERM);
    ::pthread_sigmask(SIG_BLOCK, &signals_, &former_);
    thread_ = std::thread([this] { Wait(); });
  }
  ~StopOnSignal() {
    is_ending_ = true;
    ::pthread_kill(thread_.native_handle(), SIGINT);
    thread_.join();
    ::pthread_sigmask(SIG_SETMASK, &former_, nullptr);
  }
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;

  /// `log` is told of signals. Null: there is none any more.
  void SetServer(Server* server, LogThread* log) {
    const std::lock_guard lock(mutex_);
    server_ = server;
    log_ = log;
  }

 private:
  void Wait() {
    bool is_first = true;
    while (true) {
      int signal = 0;
      ::sigwait(&signals_, &signal);
      const std::lock_guard lock(mutex_);
      if (is_ending_) {
        return;
      }
      if (server_ == nullptr) {
        End(signal);
      }
      server_->Stop(is_first ? deadline_s_ : 0);
      log_->Add(is_first ? fmt::format("stopping: replies may finish within {:.0f} s; once more to "
                                       "stop at once",
                                       deadline_s_)
                         : "stopping at once");
      is_first = false;
    }
  }

  /// As the signal would have without this class.
  [[noreturn]] void End(int signal) const {
    ::pthread_sigmask(SIG_SETMASK, &former_, nullptr);
    ::raise(signal);
    ::_exit(128 + signal);
  }

  const double deadline_s_;
  sigset_t signals_ = {};
  sigset_t former_ = {};
  std::atomic<bool> is_ending_ = false;
  std::mutex mutex_;
  Server* server_ = nullptr;
  LogThread* log_ = nullptr;
  std::thread thread_;
};

/// While it lives, warnings are lines of the log.
class WarningsIn {
 public:
  explicit WarningsIn(LogThread* log)
      : former_(SetWarningSink(
            [log](std::string_view line) { log->Add("warning: " + std::string(line)); })) {}
  ~WarningsIn() { SetWarningSink(std::move(former_)); }
  WarningsIn(const WarningsIn&) = delete;
  WarningsIn& operator=(const WarningsIn&) = delete;

 private:
  LogSink former_;
};

/// Raises the limit of open files as far as it may be, and returns it.
rlim_t RaiseDescriptorLimit() {
  constexpr rlim_t kMost = 65536;
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const rlim_t former = limit.rlim_cur;
  limit.rlim_cur = std::max(former, std::min(limit.rlim_max, kMost));
  return ::setrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : former;
}

/// Descriptors are left for files and for those who are told that there are too many.
size_t MaxConnections(rlim_t n_descriptors) {
  constexpr rlim_t kOthers = 128;
  const rlim_t n_left = n_descriptors > kOthers ? n_descriptors - kOthers : 1;
  return std::min<size_t>(HttpOptions().max_connections, n_left);
}

Result<std::vector<std::string>> ReadKeys(const Options& options) {
  constexpr uint64_t kMaxKeyFileBytes = uint64_t{1} << 20;
  std::vector<std::string> keys = options.api_key;
  for (const std::string& key : keys) {
    FACET_RETURN_IF_ERROR(CheckKey(key, "--api-key"));
  }
  if (!options.api_key_file.empty()) {
    FACET_ASSIGN(const std::string text, ReadFile(options.api_key_file, kMaxKeyFileBytes));
    FACET_ASSIGN(const std::vector<std::string> more, ParseKeys(text, options.api_key_file));
    keys.insert(keys.end(), more.begin(), more.end());
  }
  return keys;
}

/// What needs no model: refused before a large file is read.
Result<ServerOptions> MakeServerOptions(const Options& options) {
  ServerOptions server;
  FACET_ASSIGN(server.api_keys, ReadKeys(options));
  for (const std::string& origin : options.cors) {
    FACET_RETURN_IF_ERROR(CheckOrigin(origin, "--cors"));
  }
  if (!IsLoopback(options.host) && server.api_keys.empty() && !options.insecure) {
    return Refuse("--host", fmt::format("{}, which others can reach, without a key", options.host),
                  "--api-key or --api-key-file, or --insecure");
  }
  if (!options.cache_file.empty() && options.no_prefix_cache) {
    return Refuse("--cache-file", "given with --no-prefix-cache", "one of them");
  }
  server.origins = options.cors;
  server.http.host = options.host;
  server.http.port = static_cast<uint16_t>(options.port);
  server.http.max_body_bytes = static_cast<size_t>(options.max_body) << 20;
  server.http.max_buffered_bytes =
      std::max(server.http.max_buffered_bytes, 2 * server.http.max_body_bytes);
  server.http.max_connections = MaxConnections(RaiseDescriptorLimit());
  server.request_timeout_s = options.request_timeout;
  server.logs_text = options.log_text;
  server.logs_json = options.log_format == "json";
  server.version = VersionText();
  return server;
}

std::string ModelName(const Options& options, const LoadedModel& model) {
  if (!options.alias.empty()) {
    return options.alias;
  }
  const std::string stem = std::filesystem::path(options.model).stem().string();
  return options.model.empty() ? "facet-tiny"
         : !stem.empty()       ? stem
                               : model.checkpoint().config().name;
}

/// How requests' media are read; nothing where the model is text only.
std::optional<MediaReader> MakeMediaReader(const Options& options, const LoadedModel& model,
                                           int n_context) {
  if (model.media() == nullptr) {
    return std::nullopt;
  }
  MediaSettings settings = MediaSettingsFrom(options, model.media_traits(), "");
  settings.open = nullptr;  // a stranger names no file of this machine
  settings.max_tokens = std::min(settings.max_tokens, n_context);
  if (options.media_fetch) {
    settings.fetch = [](const std::string& url, const std::string& where, size_t max_bytes) {
      return FetchMedia(url, where, {.max_bytes = max_bytes});
    };
  }
  return MediaReader(std::move(settings));
}

/// "text, images, sound, video", and what is missing for more.
std::string TakenText(const LoadedModel& model, const std::optional<MediaReader>& reader) {
  const MediaTraits& traits = model.media_traits();
  std::string text = "takes: text";
  text += traits.sees ? ", images" : "";
  text += traits.hears ? ", sound" : "";
  if (traits.sees && reader) {
    text += reader->settings().helper.empty() ? " (no video: facet-media is not there)" : ", video";
  }
  return text;
}

ServedModel MakeServedModel(const Options& options, const LoadedModel& model,
                            const MediaReader* media, const std::string& fingerprint) {
  return {.name = ModelName(options, model),
          .created = static_cast<int64_t>(std::time(nullptr)),
          .vocab = &model.vocab(),
          .tokenizer = &model.tokenizer(),
          .chat_template = &model.chat_template(),
          .media = media,
          .end_tokens = model.end_tokens(),
          .suppressed_tokens = model.suppressed_tokens(),
          .sampling = SamplingFrom(options, model.checkpoint().defaults(), 0),
          .max_tokens = options.max_tokens,
          .thinks = options.think,
          .spec = options.spec,
          .system_fingerprint = "fp_" + fingerprint.substr(0, 16)};
}

int Parallel(const Options& options) { return options.parallel.value_or(kDefaultParallel); }

Result<RunnerOptions> MakeRunnerOptions(const Options& options, const Config& config) {
  FACET_ASSIGN(RunnerOptions runner, RunnerOptionsFrom(options, config));
  runner.n_sequences = std::min(Parallel(options), kMostWholeContexts);
  runner.max_rows = options.batch_rows;
  runner.cache_bytes = options.no_prefix_cache ? 0 : int64_t{options.cache_size} << 20;
  return runner;
}

std::string SummaryText(const Options& options, const LoadedModel& model,
                        const RunnerOptions& runner, const KvPoolPlan& plan) {
  std::string text = fmt::format(
      "model {}: {} of weights{}\n", ModelName(options, model),
      ShownBytes(static_cast<double>(model.checkpoint().n_bytes())),
      model.chat_template().is_built_in() ? ", built-in chat template" : ", its own chat template");
  text += fmt::format(
      "memory: {} for keys and values ({} positions a reply, {} whole contexts, up to {} replies "
      "at a time), {} of it for prefixes",
      ShownBytes(static_cast<double>(plan.bytes)), runner.n_context, runner.n_sequences,
      Parallel(options), ShownBytes(static_cast<double>(runner.cache_bytes)));
  return text + "\ndrafting: " + DraftingText(options, model.drafter());
}

/// A start without the prefixes is worse than one with them, and better than none.
void LoadPrefixes(const Options& options, const std::string& fingerprint, Engine* engine) {
  if (options.cache_file.empty() || !FileExists(options.cache_file)) {
    return;
  }
  const Result<int> n_blocks =
      engine->LoadPrefixes(options.cache_file, fingerprint, options.kv_type);
  if (!n_blocks.ok()) {
    Warn(n_blocks.error().Message() + "; the prefix cache begins empty");
  }
}

void SavePrefixes(const Options& options, const std::string& fingerprint, Engine* engine) {
  if (options.cache_file.empty()) {
    return;
  }
  RemoveOnInterrupt(options.cache_file + ".part");  // where base/file.h writes what is not complete
  const Status status = engine->SavePrefixes(options.cache_file, fingerprint, options.kv_type);
  RemoveOnInterrupt("");
  if (!status.ok()) {
    Warn(status.error().Message() + "; the prefix cache is lost");
  }
}

struct Parts {
  const Options& options;
  const LoadedModel& model;
  const RunnerOptions& runner;
  std::string fingerprint;
  std::optional<MediaReader> media;  ///< none: text only
};

Result<std::unique_ptr<Engine>> MakeEngine(const Parts& parts,
                                           std::function<void(const StepReport&)> on_step) {
  FACET_ASSIGN(std::unique_ptr<Runner> runner, MakeRunner(parts.model.checkpoint(), parts.runner));
  const Options& options = parts.options;
  EngineOptions engine_options = {
      .max_rows = options.batch_rows,
      .max_rows_beside = std::min(options.batch_rows_beside, options.batch_rows),
      .max_sequences = Parallel(options),
      .max_queue = options.max_queue,
      .max_queue_s = static_cast<double>(options.queue_timeout),
      .reuses_prefixes = !options.no_prefix_cache,
      .media_cache_bytes = int64_t{options.media_cache} << 20,
      .token_bytes = [&vocab = parts.model.vocab()](int32_t token) { return vocab.bytes(token); },
      .on_step = std::move(on_step)};
  SetDrafting(options, &engine_options);
  auto engine = std::make_unique<Engine>(std::move(runner), std::move(engine_options));
  LoadPrefixes(options, parts.fingerprint, engine.get());
  return engine;
}

std::string Address(const Options& options, uint16_t port) {
  const bool is_v6 = options.host.find(':') != std::string::npos && options.host.front() != '[';
  return fmt::format("http://{}{}{}:{}", is_v6 ? "[" : "", options.host, is_v6 ? "]" : "", port);
}

/// --check: what a start would find, without arranging weights and without serving.
int CheckOnly(const Parts& parts, const ServerOptions& server_options, const std::string& summary) {
  const auto listening = HttpServer::Listen(server_options.http, {}, {});
  if (!listening.ok()) {
    return Fail(listening.error(), kExitFailed);
  }
  RunnerOptions as_it_lies = parts.runner;
  as_it_lies.pack = false;
  const auto runner = MakeRunner(parts.model.checkpoint(), as_it_lies);
  if (!runner.ok()) {
    return Fail(runner.error(), kExitModelRefused);
  }
  const Status written = WriteAll(
      STDOUT_FILENO, summary + "\naddress: " + Address(parts.options, (*listening)->port()) + "\n",
      "standard output");
  return written.ok() ? kExitDone : Fail(written.error(), kExitFailed);
}

/// Serves until a signal. What is told goes through a thread: standard error may be a pipe that
/// nobody reads.
int Serve(const Parts& parts, ServerOptions server_options, const std::string& summary,
          StopOnSignal* signals) {
  const Options& options = parts.options;
  LogThread log({.write = Note});
  const WarningsIn warnings(&log);
  if (options.log_format != "none") {
    server_options.log = [&log](std::string_view line) { log.Add(line); };
  }
  bool is_listening = false;
  auto server =
      Server::Create(std::move(server_options),
                     MakeServedModel(options, parts.model, parts.media ? &*parts.media : nullptr,
                                     parts.fingerprint),
                     [&](std::function<void(const StepReport&)> on_step) {
                       is_listening = true;
                       return MakeEngine(parts, std::move(on_step));
                     });
  if (!server.ok()) {
    return Fail(server.error(), is_listening ? kExitModelRefused : kExitFailed);
  }
  // Before the address is told: who reads it may signal at once.
  signals->SetServer(server->get(), &log);
  log.Add(summary);
  const std::string address = Address(options, (*server)->port());
  log.Add(
      fmt::format("serving on {} (OpenAI's API: {}/v1), press Ctrl-C to stop", address, address));
  (*server)->Run();
  signals->SetServer(nullptr, nullptr);  // the next one ends the program
  SavePrefixes(options, parts.fingerprint, &(*server)->engine());
  return kExitDone;
}

}  // namespace

int RunServe(const Options& options) {
  Result<ServerOptions> server_options = MakeServerOptions(options);
  if (!server_options.ok()) {
    return Fail(server_options.error(), kExitFailed);
  }
  ::signal(SIGPIPE, SIG_IGN);  // the log may be a pipe whose reader goes
  StopOnSignal signals(options.shutdown_timeout);
  const auto model = LoadedModel::LoadToGenerate(options, true);
  if (!model.ok()) {
    return Fail(model.error(), kExitModelRefused);
  }
  const Config& config = (*model)->checkpoint().config();
  Result<RunnerOptions> runner = MakeRunnerOptions(options, config);
  if (runner.ok()) {
    runner->media = (*model)->media();
    runner->drafter = (*model)->drafter();
  }
  const Result<KvPoolPlan> plan = runner.ok() ? PlanKv(config, *runner) : runner.error();
  if (!plan.ok()) {
    return Fail(plan.error(), kExitFailed);
  }
  if (options.think && !(*model)->chat_template().traits().knows_thinking) {
    Warn("--think: the model's chat template knows no thinking");
  }
  server_options->bytes_per_sliding_block = plan->sliding.bytes_per_block;
  server_options->bytes_per_full_block = plan->full.bytes_per_block;
  const Parts parts{options, **model, *runner, Fingerprint((*model)->checkpoint(), *runner),
                    MakeMediaReader(options, **model, runner->n_context)};
  const std::string summary =
      SummaryText(options, **model, *runner, *plan) + "\n" + TakenText(**model, parts.media);
  return options.check ? CheckOnly(parts, *server_options, summary)
                       : Serve(parts, *std::move(server_options), summary, &signals);
}

}  // namespace facet
