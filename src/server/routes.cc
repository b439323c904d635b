// SPDX-License-Identifier: Apache-2.0
#include "server/routes.h"

#include <fmt/format.h>

#include <random>
#include <utility>

#include "base/random.h"
#include "server/engine_request.h"
#include "server/text_routes.h"
#include "text/detokenizer.h"

namespace facet {
namespace {

constexpr size_t kMaxWorkerQueue = 256;
constexpr size_t kMaxTextBodyBytes = size_t{16} << 20;
constexpr size_t kTurnMemoryBytes = size_t{64} << 20;

uint64_t DrawSeed() {
  std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

/// Of a body that is no JSON no parameter is to blame.
ApiError BadBody(const Error& error) {
  ApiError bad = InvalidRequest(error);
  bad.param.clear();
  return bad;
}

/// The file of a picture, a form: told by its type before it is read as JSON.
bool IsForm(const HttpRequest& request) {
  const std::string* type = request.Header("content-type");
  return type != nullptr && type->starts_with("multipart/");
}

}  // namespace

struct Routes::Route {
  std::string_view path;  ///< ends in '/': of everything below
  bool is_post;
  bool is_open;   ///< without key
  bool is_quick;  ///< answered by the thread that calls Handle
  Handler handler;
};

const Routes::Route* Routes::FindRoute(std::string_view path) {
  static constexpr Route kRoutes[] = {
      {"/", false, true, true, &Routes::AnswerRoot},
      {"/health", false, true, true, &Routes::AnswerHealth},
      {"/metrics", false, false, true, &Routes::AnswerMetrics},
      {"/props", false, false, true, &Routes::AnswerProps},
      {"/v1/models", false, false, true, &Routes::AnswerModels},
      {"/v1/models/", false, false, true, &Routes::AnswerModel},
      {"/v1/embeddings", true, false, true, &Routes::AnswerEmbeddings},
      {"/v1/chat/completions", true, false, false, &Routes::AnswerChat},
      {"/v1/completions", true, false, false, &Routes::AnswerCompletion},
      {"/tokenize", true, false, false, &Routes::AnswerTokenize},
      {"/detokenize", true, false, false, &Routes::AnswerDetokenize},
      {"/apply-template", true, false, false, &Routes::AnswerTemplate},
  };
  for (const Route& route : kRoutes) {
    const bool is_below = route.path.size() > 1 && route.path.ends_with('/') &&
                          path.starts_with(route.path) && path.size() > route.path.size();
    if (path == route.path || is_below) {
      return &route;
    }
  }
  return nullptr;
}

Routes::Routes(const ServerOptions& options, const ServedModel* model, Engine* engine,
               Metrics* metrics, std::function<size_t()> n_connections)
    : options_(options),
      model_(model),
      engine_(engine),
      metrics_(metrics),
      n_connections_(std::move(n_connections)),
      access_(options.api_keys, options.origins, options.http.host),
      id_seed_(DrawSeed()),
      memory_(model->vocab, kTurnMemoryBytes),
      generations_({.request_timeout_s = options.request_timeout_s, .logs_text = options.logs_text},
                   model, engine, &memory_, metrics),
      workers_(options.n_workers, kMaxWorkerQueue) {}

Routes::~Routes() = default;

std::string Routes::NewId() {
  const uint64_t n = n_ids_.fetch_add(1);
  return fmt::format("{:016x}{:016x}", RandomBits(id_seed_, 2 * n),
                     RandomBits(id_seed_, 2 * n + 1));
}

void Routes::Log(const RequestRecord& record) const {
  if (options_.log) {
    options_.log(options_.logs_json ? JsonLine(record) : TextLine(record));
  }
}

HttpResponse Routes::MakeTransportError(int status, std::string_view message) {
  metrics_->AddTransportError(status);
  return ErrorResponse({.status = status,
                        .message = std::string(message),
                        .type = status >= 500 ? "server_error" : "invalid_request_error"});
}

void Routes::Handle(HttpRequest request, std::shared_ptr<HttpExchange> exchange) {
  std::string id = GivenRequestId(request);
  if (id.empty()) {
    id = "req_" + NewId();
  }
  metrics_->AddArrival();
  HttpHeaders headers = access_.HeadersFor(request);
  auto call = std::make_unique<Call>(std::move(request), std::move(exchange), std::move(id),
                                     std::move(headers), [this](const RequestRecord& record) {
                                       metrics_->AddRequest(record);
                                       Log(record);
                                     });
  const Route* route = FindRoute(call->request().path);
  if (route == nullptr) {
    return call->Fail({.status = 404,
                       .message = fmt::format("no route {} {}", call->request().method,
                                              Json(call->request().path).Dump()),
                       .code = "not_found"});
  }
  call->record().route = route->path;
  Dispatch(*route, std::move(call));
}

void Routes::Dispatch(const Route& route, std::unique_ptr<Call> call) {
  const HttpRequest& request = call->request();
  const std::string methods = route.is_post ? "POST" : "GET, HEAD";
  if (!access_.AllowsHost(request)) {
    return call->Fail({.status = 403,
                       .message = "this host's name is not allowed: ask for localhost or 127.0.0.1",
                       .type = "permission_error",
                       .code = "host_not_allowed"});
  }
  if (request.method == "OPTIONS") {
    return call->Respond(access_.AnswerOptions(request, methods));
  }
  if (!access_.AllowsOrigin(request)) {
    return call->Fail({.status = 403,
                       .message = "web pages of this origin are not allowed (facet serve --cors)",
                       .type = "permission_error",
                       .code = "origin_not_allowed"});
  }
  if (!route.is_open && !access_.HasKey(request)) {
    call->AddHeader("www-authenticate", "Bearer");
    return call->Fail({.status = 401,
                       .message = "no key, or a wrong one: send Authorization: Bearer KEY",
                       .type = "authentication_error",
                       .code = "invalid_api_key"});
  }
  const bool is_right = route.is_post ? request.method == "POST"
                                      : request.method == "GET" || request.method == "HEAD";
  if (!is_right) {
    call->AddHeader("allow", methods + ", OPTIONS");
    return call->Fail({.status = 405,
                       .message = fmt::format("method {} of {}, wanted {}",
                                              Json(request.method).Dump(), route.path, methods),
                       .code = "method_not_allowed"});
  }
  if (route.is_post && IsForm(request)) {
    return call->Fail({.status = 415,
                       .message = "a form, wanted a JSON body (content-type: application/json)",
                       .code = "unsupported_media_type"});
  }
  if (route.is_quick) {
    return (this->*route.handler)(std::move(call));
  }
  PostToWorker(route.handler, std::move(call));
}

bool Routes::WantsBody(const HttpRequest& head) const {
  const Route* route = FindRoute(head.path);
  return route != nullptr && route->is_post && head.method == "POST" && !IsForm(head) &&
         access_.AllowsHost(head) && access_.AllowsOrigin(head) &&
         (route->is_open || access_.HasKey(head));
}

void Routes::PostToWorker(Handler handler, std::unique_ptr<Call> call) {
  // std::function wants what can be copied.
  const auto shared = std::make_shared<std::unique_ptr<Call>>(std::move(call));
  if (!workers_.Post([this, handler, shared] { (this->*handler)(std::move(*shared)); })) {
    (*shared)->Fail({.status = 503,
                     .message = "the server has too many requests to read",
                     .type = "server_error",
                     .code = "queue_full"});
  }
}

void Routes::AnswerRoot(std::unique_ptr<Call> call) {
  call->Respond(HttpResponse{
      .content_type = "text/plain; charset=utf-8",
      .body = fmt::format("facet serves {}: OpenAI's API is under /v1\n", model_->name)});
}

void Routes::AnswerHealth(std::unique_ptr<Call> call) {
  call->Respond(Json::MakeObject({{"status", "ok"}}));
}

void Routes::AnswerMetrics(std::unique_ptr<Call> call) {
  call->Respond(HttpResponse{.content_type = "text/plain; version=0.0.4; charset=utf-8",
                             .body = metrics_->Text(n_connections_())});
}

void Routes::AnswerProps(std::unique_ptr<Call> call) {
  call->Respond(PropsJson(*model_,
                          {.n_context = engine_->info().n_context,
                           .has_drafter = engine_->info().drafts,
                           .max_body_bytes = options_.http.max_body_bytes,
                           .request_timeout_s = options_.request_timeout_s},
                          options_.version));
}

void Routes::AnswerModels(std::unique_ptr<Call> call) {
  call->Respond(ModelListJson(*model_, engine_->info().n_context));
}

void Routes::AnswerModel(std::unique_ptr<Call> call) {
  constexpr std::string_view kPath = "/v1/models/";
  const std::string name = call->request().path.substr(kPath.size());
  if (name != model_->name) {
    return call->Fail({.status = 404,
                       .message = fmt::format("no model {}, wanted {}", Json(name).Dump(),
                                              Json(model_->name).Dump()),
                       .param = "model",
                       .code = "model_not_found"});
  }
  call->Respond(ModelJson(*model_, engine_->info().n_context));
}

void Routes::AnswerEmbeddings(std::unique_ptr<Call> call) {
  call->Fail({.status = 501,
              .message = "Gemma 4 models are trained to write, not to embed: the server has no "
                         "embeddings to give",
              .code = "not_supported"});
}

/// The body read and given to `answer`, which returns the answer's body. Bodies of texts are
/// limited beyond --max-body, for as values they are many times as large, and no queue bounds their
/// number.
template <typename Answer>
void AnswerJson(std::unique_ptr<Call> call, const Answer& answer) {
  if (call->request().body.size() > kMaxTextBodyBytes) {
    return call->Fail({.status = 413,
                       .message = fmt::format("body: {} bytes, wanted at most {} on this route",
                                              call->request().body.size(), kMaxTextBodyBytes)});
  }
  const Result<Json> body = ParseBody(call->TakeBody());
  if (!body.ok()) {
    return call->Fail(BadBody(body.error()));
  }
  const Result<Json> answered = answer(*body);
  return answered.ok() ? call->Respond(*answered) : call->Fail(InvalidRequest(answered.error()));
}

Result<ApiRequest> Routes::ReadChat(const Json& body) const {
  FACET_ASSIGN(ApiRequest request, ReadChatRequest(body, *model_));
  if (!HasMedia(request.chat.messages)) {
    return request;
  }
  const auto begin = std::chrono::steady_clock::now();
  const Status status = ReadMedia(*model_, &request);
  const std::chrono::duration<double> duration = std::chrono::steady_clock::now() - begin;
  metrics_->AddMedia(request.media.parts, duration.count());
  if (!status.ok()) {
    return status.error();
  }
  return request;
}

void Routes::AnswerTokenize(std::unique_ptr<Call> call) {
  AnswerJson(std::move(call), [this](const Json& body) -> Result<Json> {
    if (!body.contains("messages")) {
      return Tokenize(body, *model_);
    }
    FACET_ASSIGN(const ApiRequest request, ReadChat(WithoutTokenizeFields(body)));
    FACET_ASSIGN(const Prompt prompt, RenderPrompt(request, *model_));
    return TokenizeChat(body, prompt, *model_);
  });
}

void Routes::AnswerDetokenize(std::unique_ptr<Call> call) {
  AnswerJson(std::move(call), [this](const Json& body) { return Detokenize(body, *model_); });
}

void Routes::AnswerTemplate(std::unique_ptr<Call> call) {
  AnswerJson(std::move(call), [this](const Json& body) -> Result<Json> {
    FACET_ASSIGN(const ApiRequest request, ReadChat(body));
    FACET_ASSIGN(std::string text, RenderText(request, *model_));
    return Json::MakeObject({{"prompt", std::move(text)}});
  });
}

void Routes::AnswerChat(std::unique_ptr<Call> call) {
  const Result<Json> body = ParseBody(call->TakeBody());
  if (!body.ok()) {
    return call->Fail(BadBody(body.error()));
  }
  Generate(std::move(call), ReadChat(*body), "chatcmpl-");
}

void Routes::AnswerCompletion(std::unique_ptr<Call> call) {
  const Result<Json> body = ParseBody(call->TakeBody());
  if (!body.ok()) {
    return call->Fail(BadBody(body.error()));
  }
  Generate(std::move(call), ReadCompletionRequest(*body, *model_), "cmpl-");
}

void Routes::Generate(std::unique_ptr<Call> call, Result<ApiRequest> request,
                      std::string_view id_prefix) {
  if (!request.ok()) {
    return call->Fail(InvalidRequest(request.error()));
  }
  auto prompts = MakePrompts(*model_, memory_, &*request);
  if (!prompts.ok()) {
    return call->Fail(InvalidRequest(prompts.error()));
  }
  const auto n_context = static_cast<size_t>(engine_->info().n_context);
  for (const std::vector<int32_t>& prompt : *prompts) {
    if (prompt.size() >= n_context) {  // one position is for the reply
      return call->Fail(
          ContextLengthError(static_cast<int>(prompt.size()), static_cast<int>(n_context)));
    }
  }
  const size_t n_replies = prompts->size() * static_cast<size_t>(request->n);
  if (n_replies > static_cast<size_t>(engine_->max_queue())) {
    return call->Fail(
        InvalidRequest(Refuse("n", fmt::format("{} replies", n_replies),
                              fmt::format("at most {} (--max-queue)", engine_->max_queue()))));
  }
  call->record().n_notices = static_cast<int>(request->media.notices.size());
  if (options_.logs_text) {
    call->record().prompt_text = Decode(*model_->vocab, prompts->front(), /*skip_special=*/false);
  }
  generations_.Start(std::move(call), *std::move(request), std::string(id_prefix) + NewId(),
                     *std::move(prompts));
}

}  // namespace facet
