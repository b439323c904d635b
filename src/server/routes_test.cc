// SPDX-License-Identifier: Apache-2.0
#include "server/routes.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "engine/fake_runner.h"
#include "server/exchange_testing.h"
#include "server/served_model_testing.h"
#include "text/detokenizer.h"

namespace facet {
namespace {

using testing::FakeExchange;
using testing::FakeRunner;
using testing::HashLogits;
using testing::TinyVocab;

constexpr auto kPatience = std::chrono::seconds(20);

/// Lets a runner's batches through one by one, or all.
class Gate {
 public:
  void Pass() {
    std::unique_lock lock(mutex_);
    ++n_arrived_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return is_open_ || n_tickets_ > 0; });
    n_tickets_ -= is_open_ ? 0 : 1;
  }
  void Admit(int n) {
    const std::lock_guard lock(mutex_);
    n_tickets_ += n;
    changed_.notify_all();
  }
  void Open() {
    const std::lock_guard lock(mutex_);
    is_open_ = true;
    changed_.notify_all();
  }
  bool WaitForArrivals(int n) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [&] { return n_arrived_ >= n; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int n_arrived_ = 0;
  int n_tickets_ = 0;
  bool is_open_ = false;
};

/// The lines of the log, as JSON.
class Lines {
 public:
  void Add(std::string_view line) {
    const std::lock_guard lock(mutex_);
    lines_.push_back(*ParseJson(line, "line"));
    changed_.notify_all();
  }
  /// Line `n` from 0 on; null when it never came.
  Json Wait(size_t n) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [&] { return lines_.size() > n; }) ? lines_[n]
                                                                                 : Json();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Json> lines_;
};

std::vector<int32_t> Words(std::string_view text) {
  return testing::MakeServedModel().tokenizer->Encode(text, /*parse_special=*/false);
}

/// After anything else the first of `reply`; after one of them the next; after the last one the end
/// of the turn. They must differ.
FakeRunner::Script Chain(std::vector<int32_t> reply) {
  EXPECT_EQ(std::set<int32_t>(reply.begin(), reply.end()).size(), reply.size());
  reply.push_back(TinyVocab().Find("<turn|>").value());
  return [reply](std::span<const int32_t> history, std::span<float> logits) {
    std::fill(logits.begin(), logits.end(), 0.0F);
    const auto found = std::find(reply.begin(), reply.end(), history.back());
    const bool is_inside = found != reply.end() && found + 1 != reply.end();
    logits[static_cast<size_t>(is_inside ? *(found + 1) : reply.front())] = 50;
  };
}

/// Ordinary words, for long.
FakeRunner::Script Endless() {
  return [](std::span<const int32_t> history, std::span<float> logits) {
    HashLogits(history, logits);
    std::fill(logits.begin(), logits.begin() + 600, -100.0F);  // no marks, no bytes
  };
}

struct Setting {
  ServerOptions server = {};
  EngineOptions engine = {};
  FakeRunner::Script script = Chain(Words("The quick brown fox"));
  std::function<void()> before_run = {};
};

class Harness {
 public:
  explicit Harness(Setting setting = {}) : metrics_({}) {
    auto runner = std::make_unique<FakeRunner>(RunnerInfo{.n_vocab = TinyVocab().size(),
                                                          .n_context = 512,
                                                          .sliding_window = 64,
                                                          .n_sliding_blocks = 64,
                                                          .n_full_blocks = 64},
                                               setting.script);
    if (setting.before_run) {
      runner->before_run = [before_run = setting.before_run](const Batch&) {
        before_run();
        return Status();
      };
    }
    setting.engine.token_bytes = [](int32_t token) { return TinyVocab().bytes(token); };
    setting.engine.on_step = [this](const StepReport& report) { metrics_.AddStep(report); };
    engine_ = std::make_unique<Engine>(std::move(runner), setting.engine);
    setting.server.logs_json = true;
    setting.server.log = [this](std::string_view line) { lines_.Add(line); };
    routes_ = std::make_unique<Routes>(setting.server, &model_, engine_.get(), &metrics_,
                                       [] { return size_t{3}; });
  }

  std::shared_ptr<FakeExchange> Send(std::string method, std::string path, std::string body,
                                     HttpHeaders headers = {}) {
    auto exchange = std::make_shared<FakeExchange>();
    HttpRequest request;
    request.method = std::move(method);
    request.path = std::move(path);
    request.body = std::move(body);
    request.headers = std::move(headers);
    request.peer = "127.0.0.1:1";
    routes_->Handle(std::move(request), exchange);
    return exchange;
  }
  HttpResponse Get(std::string path, HttpHeaders headers = {}) {
    return Send("GET", std::move(path), "", std::move(headers))->WaitForAnswer();
  }
  HttpResponse Post(std::string path, std::string body, HttpHeaders headers = {}) {
    return Send("POST", std::move(path), std::move(body), std::move(headers))->WaitForAnswer();
  }
  HttpResponse Chat(const std::string& members) {
    return Post("/v1/chat/completions", ChatBody(members));
  }
  static std::string ChatBody(const std::string& members) {
    return R"({"messages":[{"role":"user","content":"Hello"}])" +
           (members.empty() ? "" : "," + members) + "}";
  }

  Lines& lines() { return lines_; }
  void Stop() { routes_.reset(); }
  [[nodiscard]] const ServedModel& model() const { return model_; }
  /// Waits until a line of the metrics is there.
  bool WaitForMetric(const std::string& line) {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (metrics_.Text(0).find(line + "\n") == std::string::npos) {
      if (std::chrono::steady_clock::now() > end) {
        return false;
      }
      std::this_thread::yield();
    }
    return true;
  }

 private:
  ServedModel model_ = testing::MakeServedModel();
  Lines lines_;
  Metrics metrics_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Routes> routes_;
};

Json Parsed(const HttpResponse& response) {
  const auto json = ParseJson(response.body, "body");
  EXPECT_TRUE(json.ok()) << response.status << " " << response.body;
  return json.ok() ? *json : Json();
}

std::string HeaderOf(const HttpResponse& response, std::string_view name) {
  for (const auto& [key, value] : response.headers) {
    if (key == name) {
      return value;
    }
  }
  return "none";
}

/// OpenAI's error object, and nothing else.
Json ExpectError(const HttpResponse& response, int status, std::string_view code) {
  EXPECT_EQ(response.status, status) << response.body;
  const Json body = Parsed(response);
  EXPECT_EQ(body.members().size(), 1U) << response.body;
  const Json error = body["error"];
  EXPECT_EQ(error.members().size(), 4U) << response.body;
  EXPECT_TRUE(error["message"].is_string() && !error["message"].as_string().empty());
  EXPECT_TRUE(error["type"].is_string()) << response.body;
  EXPECT_TRUE(error.contains("param"));
  EXPECT_EQ(error["code"].as_string(), code) << response.body;
  EXPECT_NE(HeaderOf(response, "x-request-id"), "none");
  return error;
}

/// The chunks of a stream that ended well.
std::vector<Json> Chunks(const std::string& stream) {
  std::vector<Json> chunks;
  bool is_done = false;
  for (size_t begin = 0; begin < stream.size();) {
    const size_t end = stream.find("\n\n", begin);
    EXPECT_NE(end, std::string::npos) << stream;
    const std::string event = stream.substr(begin, end - begin);
    EXPECT_TRUE(event.starts_with("data: ")) << event;
    EXPECT_FALSE(is_done) << "after the end: " << event;
    is_done = event == "data: [DONE]";
    if (!is_done) {
      chunks.push_back(*ParseJson(event.substr(6), "chunk"));
    }
    begin = end + 2;
  }
  EXPECT_TRUE(is_done) << stream;
  return chunks;
}

std::string Joined(const std::vector<Json>& chunks, std::string_view member) {
  std::string text;
  for (const Json& chunk : chunks) {
    for (const Json& choice : chunk["choices"].items()) {
      text += choice["delta"][member].as_string();
    }
  }
  return text;
}

std::string ContentOf(const HttpResponse& response, size_t choice = 0) {
  const Json body = Parsed(response);
  return body["choices"].items().at(choice)["message"]["content"].as_string();
}

TEST(Routes, RefuseMediaThatTheModelCannotTake) {
  Harness harness;
  const std::string body =
      R"({"messages":[{"role":"user","content":[{"type":"image_url","image_url":"data:,"}]}]})";
  for (const char* path : {"/v1/chat/completions", "/apply-template", "/tokenize"}) {
    const HttpResponse response = harness.Post(path, body);
    EXPECT_EQ(response.status, 400) << path;
    const Json error = Parsed(response)["error"];
    EXPECT_EQ(error["param"].as_string(), "messages[0].content[0].image_url") << path;
    EXPECT_EQ(error["message"].as_string(),
              "messages[0].content[0].image_url: a picture, wanted none (this model has no encoder "
              "for pictures; give its projector with --mmproj)");
  }
  EXPECT_EQ(harness.Post("/v1/completions", R"({"prompt":{"prompt_string":"a"}})").status, 400);
}

TEST(Routes, TokenizeAChat) {
  Harness harness;
  const HttpResponse response =
      harness.Post("/tokenize", R"({"messages":[{"role":"user","content":"Hi"}]})");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(Parsed(response)["tokens"].items().at(0), Json(2));
}

TEST(Routes, AnswersWhatNeedsNoModel) {
  Harness harness;
  EXPECT_EQ(Parsed(harness.Get("/health"))["status"].as_string(), "ok");
  EXPECT_EQ(harness.Get("/").body, "facet serves tiny: OpenAI's API is under /v1\n");
  const Json list = Parsed(harness.Get("/v1/models"));
  EXPECT_EQ(list["object"].as_string(), "list");
  ASSERT_EQ(list["data"].items().size(), 1U);
  EXPECT_EQ(list["data"].items()[0]["id"].as_string(), "tiny");
  EXPECT_EQ(Parsed(harness.Get("/v1/models/tiny"))["object"].as_string(), "model");
  EXPECT_EQ(list["data"].items()[0]["max_model_len"].as_int(), 512);
  ExpectError(harness.Get("/v1/models/gpt"), 404, "model_not_found");
  const Json props = Parsed(harness.Get("/props"));
  EXPECT_EQ(props["n_ctx"].as_int(), 512);
  EXPECT_TRUE(props["chat_template_traits"]["tools"].as_bool());
  EXPECT_EQ(harness.Send("HEAD", "/health", "")->WaitForAnswer().status, 200);
  ExpectError(harness.Post("/v1/embeddings", R"({"input":"a"})"), 501, "not_supported");
  const HttpResponse metrics = harness.Get("/metrics");
  EXPECT_EQ(metrics.content_type, "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_NE(metrics.body.find("facet_connections 3\n"), std::string::npos);
}

TEST(Routes, RefusesUnknownRoutesAndMethods) {
  Harness harness;
  const Json error = ExpectError(harness.Get("/v1/nothing"), 404, "not_found");
  EXPECT_EQ(error["message"].as_string(), "no route GET \"/v1/nothing\"");
  ExpectError(harness.Get("/v1"), 404, "not_found");
  // What a proxy keeps from the world has one path.
  for (const char* path : {"/metrics/", "/health/", "//metrics"}) {
    ExpectError(harness.Get(path), 404, "not_found");
  }
  ExpectError(harness.Get("/v1/models/"), 404, "model_not_found");
  ExpectError(harness.Get("/v1/chat/completions/x"), 404, "not_found");
  const HttpResponse wrong = harness.Get("/v1/chat/completions");
  ExpectError(wrong, 405, "method_not_allowed");
  EXPECT_EQ(HeaderOf(wrong, "allow"), "POST, OPTIONS");
  ExpectError(harness.Send("DELETE", "/health", "")->WaitForAnswer(), 405, "method_not_allowed");
  EXPECT_EQ(harness.Send("OPTIONS", "/health", "")->WaitForAnswer().status, 204);
}

TEST(Routes, WantsAKeyExceptForHealth) {
  Setting setting;
  setting.server.api_keys = {"secret"};
  Harness harness(setting);
  EXPECT_EQ(harness.Get("/health").status, 200);
  EXPECT_EQ(harness.Get("/").status, 200);
  for (const char* path : {"/v1/models", "/metrics", "/props", "/v1/models/tiny"}) {
    ExpectError(harness.Get(path), 401, "invalid_api_key");
    EXPECT_EQ(harness.Get(path, {{"authorization", "Bearer secret"}}).status, 200) << path;
  }
  for (const char* path : {"/v1/chat/completions", "/v1/completions", "/tokenize", "/detokenize",
                           "/apply-template", "/v1/embeddings"}) {
    ExpectError(harness.Post(path, "{}", {{"x-api-key", "wrong"}}), 401, "invalid_api_key");
  }
}

TEST(Routes, ServesListedPagesOnly) {
  Setting setting;
  setting.server.origins = {"https://a.example"};
  setting.server.api_keys = {"secret"};
  Harness harness(setting);
  const HttpHeaders listed = {{"origin", "https://a.example"},
                              {"access-control-request-method", "POST"}};
  const HttpResponse preflight =
      harness.Send("OPTIONS", "/v1/chat/completions", "", listed)->WaitForAnswer();
  EXPECT_EQ(preflight.status, 204);
  EXPECT_EQ(HeaderOf(preflight, "access-control-allow-origin"), "https://a.example");
  EXPECT_EQ(HeaderOf(preflight, "access-control-allow-methods"), "POST, OPTIONS");
  const HttpResponse unkeyed = harness.Get("/v1/models", listed);
  ExpectError(unkeyed, 401, "invalid_api_key");
  EXPECT_EQ(HeaderOf(unkeyed, "access-control-allow-origin"), "https://a.example");
  const HttpResponse other = harness.Get("/health", {{"origin", "https://b.example"}});
  ExpectError(other, 403, "origin_not_allowed");
  EXPECT_EQ(HeaderOf(other, "access-control-allow-origin"), "none");
}

TEST(Routes, RefusesNamesOfOthers) {
  Harness harness;
  ExpectError(harness.Get("/health", {{"host", "a.example:8080"}}), 403, "host_not_allowed");
  EXPECT_EQ(harness.Get("/health", {{"host", "localhost:8080"}}).status, 200);
}

TEST(Routes, KeepsTheClientsRequestId) {
  Harness harness;
  EXPECT_EQ(HeaderOf(harness.Get("/health", {{"x-request-id", "mine-1"}}), "x-request-id"),
            "mine-1");
  const std::string made =
      HeaderOf(harness.Get("/health", {{"x-request-id", "a b"}}), "x-request-id");
  EXPECT_EQ(made.size(), 36U);
  EXPECT_TRUE(made.starts_with("req_"));
  EXPECT_NE(HeaderOf(harness.Get("/health"), "x-request-id"), made);
  EXPECT_EQ(harness.lines().Wait(0)["id"].as_string(), "mine-1");
}

TEST(Routes, RefusesBadBodies) {
  Harness harness;
  for (const char* path :
       {"/v1/chat/completions", "/v1/completions", "/tokenize", "/detokenize", "/apply-template"}) {
    for (const std::string body : {"", "{\"a\":", "[]", "\"text\"", "{\"a\":\"\xff\"}"}) {
      const Json error = ExpectError(harness.Post(path, body), 400, "");
      EXPECT_TRUE(error["param"].is_null()) << path << " " << body;
    }
    ExpectError(harness.Post(path, std::string(10 << 20, '[')), 400, "");
    if (path[1] != 'v') {
      ExpectError(harness.Post(path, std::string((16 << 20) + 1, '[')), 413, "");
    }
    ExpectError(harness.Post(path, "a=b", {{"content-type", "multipart/form-data"}}), 415,
                "unsupported_media_type");
  }
  const Json error = ExpectError(harness.Chat(R"("temperature":"hot")"), 400, "");
  EXPECT_EQ(error["param"].as_string(), "temperature");
}

TEST(Routes, TellsHowLongAPromptMayBe) {
  Harness harness;
  std::string words;
  for (int n = 0; n < 600; ++n) {
    words += "fox ";
  }
  const Json chat =
      ExpectError(harness.Post("/v1/chat/completions",
                               R"({"messages":[{"role":"user","content":")" + words + R"("}]})"),
                  400, "context_length_exceeded");
  EXPECT_NE(chat["message"].as_string().find("512"), std::string::npos);
  ExpectError(harness.Post("/v1/completions", R"({"prompt":")" + words + R"("})"), 400,
              "context_length_exceeded");
}

TEST(Routes, TurnsTextIntoTokensAndBack) {
  Harness harness;
  const HttpResponse tokens = harness.Post("/tokenize", R"({"content":"The quick brown fox"})");
  const auto words = Words("The quick brown fox");
  ASSERT_EQ(Parsed(tokens)["tokens"].items().size(), words.size());
  EXPECT_EQ(Parsed(harness.Post("/detokenize", tokens.body))["content"].as_string(),
            "The quick brown fox");
  const Json prompt = Parsed(harness.Post("/apply-template", Harness::ChatBody("")));
  EXPECT_EQ(prompt["prompt"].as_string(), "<bos><|turn>user\nHello<turn|>\n<|turn>model\n");
}

TEST(Routes, AnswersAChat) {
  Harness harness;
  const HttpResponse response = harness.Chat("");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(ContentOf(response), "The quick brown fox");
  const Json body = Parsed(response);
  EXPECT_TRUE(body["id"].as_string().starts_with("chatcmpl-"));
  EXPECT_EQ(body["choices"].items().at(0)["finish_reason"].as_string(), "stop");
  const Json line = harness.lines().Wait(0);
  EXPECT_EQ(line["path"].as_string(), "/v1/chat/completions");
  EXPECT_EQ(line["generated_tokens"].as_int(),
            static_cast<int64_t>(Words("The quick brown fox").size()) + 1);
  EXPECT_EQ(line["finish"].as_string(), "stop");
  EXPECT_FALSE(line.contains("prompt_text"));
  EXPECT_TRUE(harness.WaitForMetric(
      R"(facet_requests_total{route="/v1/chat/completions",status="200"} 1)"));
  EXPECT_TRUE(harness.WaitForMetric("facet_time_to_first_token_seconds_count 1"));
}

TEST(Routes, AnswersACompletion) {
  Harness harness;
  const Json body = Parsed(harness.Post("/v1/completions", R"({"prompt":["a","b"],"n":2})"));
  ASSERT_EQ(body["choices"].items().size(), 4U);
  for (const Json& choice : body["choices"].items()) {
    EXPECT_EQ(choice["text"].as_string(), "The quick brown fox");
  }
  EXPECT_TRUE(body["id"].as_string().starts_with("cmpl-"));
}

TEST(Routes, LogsTextOnlyWhereItIsWanted) {
  Setting setting;
  setting.server.logs_text = true;
  Harness harness(setting);
  harness.Chat("");
  const Json line = harness.lines().Wait(0);
  EXPECT_EQ(line["prompt_text"].as_string(), "<bos><|turn>user\nHello<turn|>\n<|turn>model\n");
  EXPECT_EQ(line["reply_text"].as_string(), "The quick brown fox");
}

TEST(Routes, AStreamIsTheWholeReply) {
  Setting setting;
  setting.script = Endless();
  Harness harness(setting);
  for (int seed = 0; seed < 5; ++seed) {
    const std::string members = R"("max_tokens":30,"seed":)" + std::to_string(seed);
    const std::string whole = ContentOf(harness.Chat(members));
    const auto exchange = harness.Send("POST", "/v1/chat/completions",
                                       Harness::ChatBody(members + R"(,"stream":true)"));
    const HttpResponse stream = exchange->WaitForAnswer();
    EXPECT_TRUE(exchange->is_stream());
    EXPECT_EQ(exchange->n_answers(), 1);
    EXPECT_EQ(Joined(Chunks(stream.body), "content"), whole);
    EXPECT_NE(HeaderOf(stream, "x-request-id"), "none");
  }
}

TEST(Routes, EachChoiceIsTheReplyOfItsSeed) {
  Setting setting;
  setting.script = Endless();
  Harness harness(setting);
  const HttpResponse all = harness.Chat(R"("max_tokens":12,"seed":7,"n":3)");
  ASSERT_EQ(Parsed(all)["choices"].items().size(), 3U);
  for (size_t choice = 0; choice < 3; ++choice) {
    const HttpResponse one =
        harness.Chat(R"("max_tokens":12,"seed":)" + std::to_string(7 + choice));
    EXPECT_EQ(ContentOf(all, choice), ContentOf(one));
  }
}

TEST(Routes, ATurnThatComesBackIsFoundAgain) {
  Setting setting;
  setting.engine.reuses_prefixes = true;
  std::vector<int32_t> reply;
  for (const char letter :
       std::string_view("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")) {
    reply.push_back(Words(std::string(1, letter)).at(0));  // not as a tokenizer divides the text
  }
  setting.script = Chain(reply);
  Harness harness(setting);
  const Json first = Parsed(harness.Chat(""));
  const std::string content = first["choices"].items().at(0)["message"]["content"].as_string();
  const int64_t n_first = first["usage"]["prompt_tokens"].as_int();
  const Json second = Parsed(harness.Post(
      "/v1/chat/completions",
      Json::MakeObject(
          {{"messages",
            Json::MakeArray({Json::MakeObject({{"role", "user"}, {"content", "Hello"}}),
                             Json::MakeObject({{"role", "assistant"}, {"content", content}}),
                             Json::MakeObject({{"role", "user"}, {"content", "Again"}})})}})
          .Dump()));
  EXPECT_GE(second["usage"]["prompt_tokens_details"]["cached_tokens"].as_int(),
            n_first + static_cast<int64_t>(reply.size()));
}

TEST(Routes, AClientThatGoesEndsItsReplies) {
  Gate gate;
  Setting setting;
  setting.script = Endless();
  setting.before_run = [&gate] { gate.Pass(); };
  Harness harness(setting);
  const auto exchange = harness.Send("POST", "/v1/chat/completions",
                                     Harness::ChatBody(R"("stream":true,"n":2,"seed":1)"));
  gate.Admit(4);
  EXPECT_TRUE(exchange->WaitForBody("\"content\":"));
  exchange->Close();
  // The cancel is with the engine before the gate opens: nothing else is posted after it.
  gate.Admit(1);
  gate.Open();
  const Json line = harness.lines().Wait(0);
  EXPECT_EQ(line["status"].as_int(), 499);
  EXPECT_EQ(line["finish"].as_string(), "cancelled");
  EXPECT_LT(line["generated_tokens"].as_int(), 900);
  EXPECT_TRUE(harness.WaitForMetric("facet_sequences_running 0"));
  EXPECT_TRUE(harness.WaitForMetric(R"(facet_kv_blocks{group="full",state="held"} 0)"));
  EXPECT_EQ(exchange->n_answers(), 1);
}

TEST(Routes, RefusesWhatDoesNotFitTheQueue) {
  Gate gate;
  Setting setting;
  setting.server.n_workers = 1;
  setting.engine.max_queue = 1;
  setting.engine.max_sequences = 1;
  setting.before_run = [&gate] { gate.Pass(); };
  Harness harness(setting);
  const std::string body = Harness::ChatBody("");
  const auto running = harness.Send("POST", "/v1/chat/completions", body);
  ASSERT_TRUE(gate.WaitForArrivals(1));
  const auto waiting = harness.Send("POST", "/v1/chat/completions", body);
  const auto refused = harness.Send("POST", "/v1/chat/completions", body);
  const HttpResponse response = refused->WaitForAnswer();
  ExpectError(response, 503, "queue_full");
  EXPECT_EQ(HeaderOf(response, "retry-after"), "1");
  // What could never be taken is no matter of waiting.
  EXPECT_EQ(ExpectError(harness.Chat(R"("n":3)"), 400, "")["message"].as_string(),
            "n: 3 replies, wanted at most 1 (--max-queue)");
  gate.Open();
  EXPECT_EQ(ContentOf(running->WaitForAnswer()), "The quick brown fox");
  EXPECT_EQ(ContentOf(waiting->WaitForAnswer()), "The quick brown fox");
}

/// A runner that takes its time, so that a reply to the end of the context takes seconds.
Setting Slow() {
  Setting setting;
  setting.script = Endless();
  setting.before_run = [] { std::this_thread::sleep_for(std::chrono::milliseconds(8)); };
  return setting;
}

TEST(Routes, ALimitOfTimeEndsAReplyAsOneOfLength) {
  Setting setting = Slow();
  setting.server.request_timeout_s = 1;
  Harness harness(setting);
  const Json body = Parsed(harness.Chat(R"("seed":1)"));
  EXPECT_EQ(body["choices"].items().at(0)["finish_reason"].as_string(), "length");
  EXPECT_GT(body["usage"]["completion_tokens"].as_int(), 1);
  EXPECT_LT(body["usage"]["completion_tokens"].as_int(), 300);
}

TEST(Routes, TheEndCutsWhatRuns) {
  Harness harness(Slow());
  const auto stream =
      harness.Send("POST", "/v1/chat/completions", Harness::ChatBody(R"("stream":true,"seed":1)"));
  const auto whole = harness.Send("POST", "/v1/chat/completions", Harness::ChatBody(R"("seed":2)"));
  EXPECT_TRUE(stream->WaitForBody("\"content\":"));
  harness.Stop();
  EXPECT_EQ(stream->n_answers(), 1);
  const std::string end = stream->WaitForAnswer().body;
  EXPECT_NE(end.find("data: {\"error\":{\"message\":\"the server is shutting down\""),
            std::string::npos);
  EXPECT_EQ(end.find("[DONE]"), std::string::npos);
  ASSERT_LE(whole->n_answers(), 1);
  if (whole->n_answers() == 1) {
    ExpectError(whole->WaitForAnswer(), 503, "shutting_down");
  }
  // The other one may not have begun, and is then told of first.
  const std::string errors = harness.lines().Wait(0)["error"].as_string() + " " +
                             harness.lines().Wait(1)["error"].as_string();
  EXPECT_NE(errors.find("shutting_down"), std::string::npos) << errors;
}

TEST(Routes, WhatTheTransportRefusesIsAnErrorObjectToo) {
  Setting setting;
  ServerOptions options;
  Metrics metrics({});
  const ServedModel model = testing::MakeServedModel();
  Engine engine(std::make_unique<FakeRunner>(RunnerInfo{.n_vocab = TinyVocab().size(),
                                                        .n_context = 64,
                                                        .sliding_window = 0,
                                                        .n_sliding_blocks = 0,
                                                        .n_full_blocks = 4},
                                             setting.script),
                {.token_bytes = [](int32_t) { return std::string_view("x"); }});
  Routes routes(options, &model, &engine, &metrics, [] { return size_t{0}; });
  const HttpResponse response = routes.MakeTransportError(431, "headers of 65536 bytes");
  EXPECT_EQ(response.status, 431);
  EXPECT_EQ(Parsed(response)["error"]["message"].as_string(), "headers of 65536 bytes");
  EXPECT_NE(metrics.Text(0).find("facet_errors_total{kind=\"http_431\"} 1\n"), std::string::npos);
}

}  // namespace
}  // namespace facet
