// SPDX-License-Identifier: Apache-2.0
// The server over sockets; what routes say is in routes_test.cc.
#include "server/server.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "engine/fake_runner.h"
#include "server/http_testing.h"
#include "server/served_model_testing.h"

namespace facet {
namespace {

using testing::FakeRunner;
using testing::HashLogits;
using testing::TestClient;
using testing::TinyVocab;

Result<std::unique_ptr<Engine>> MakeEngine(std::function<void(const StepReport&)> on_step,
                                           std::chrono::milliseconds step) {
  auto runner =
      std::make_unique<FakeRunner>(RunnerInfo{.n_vocab = TinyVocab().size(),
                                              .n_context = 512,
                                              .sliding_window = 64,
                                              .n_sliding_blocks = 64,
                                              .n_full_blocks = 64},
                                   [](std::span<const int32_t> history, std::span<float> logits) {
                                     HashLogits(history, logits);
                                     std::fill(logits.begin(), logits.begin() + 600, -100.0F);
                                   });
  runner->before_run = [step](const Batch&) {
    std::this_thread::sleep_for(step);
    return Status();
  };
  return std::make_unique<Engine>(
      std::move(runner),
      EngineOptions{.token_bytes = [](int32_t token) { return TinyVocab().bytes(token); },
                    .on_step = std::move(on_step)});
}

Result<std::unique_ptr<Server>> MakeServer(ServerOptions options,
                                           std::chrono::milliseconds step = {}) {
  return Server::Create(std::move(options), testing::MakeServedModel(),
                        [step](std::function<void(const StepReport&)> on_step) {
                          return MakeEngine(std::move(on_step), step);
                        });
}

/// A server on a thread of its own, until the end of the test.
class Running {
 public:
  explicit Running(ServerOptions options, std::chrono::milliseconds step = {}) {
    options.http.port = 0;
    auto server = MakeServer(std::move(options), step);
    FACET_CHECK(server.ok());
    server_ = *std::move(server);
    thread_ = std::thread([this] { server_->Run(); });
  }
  ~Running() {
    server_->Stop(0);
    Join();
  }
  Server* operator->() { return server_.get(); }
  void Join() {
    if (thread_.joinable()) {
      thread_.join();
    }
  }

 private:
  std::unique_ptr<Server> server_;
  std::thread thread_;
};

std::string Post(const std::string& path, const std::string& body) {
  return "POST " + path + " HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body;
}

std::string Ask(uint16_t port, const std::string& request) {
  TestClient client(port);
  EXPECT_TRUE(client.Send(request));
  while (client.Receive()) {
  }
  return client.received;
}

constexpr const char* kChat =
    R"({"messages":[{"role":"user","content":"Hi"}],"max_tokens":5,"seed":1)";

TEST(Server, AnswersOverASocket) {
  Running server({});
  const std::string health =
      Ask(server->port(), "GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
  EXPECT_TRUE(health.starts_with("HTTP/1.1 200 OK\r\n")) << health;
  EXPECT_TRUE(health.ends_with("{\"status\":\"ok\"}")) << health;
  const std::string whole =
      Ask(server->port(), Post("/v1/chat/completions", kChat + std::string("}")));
  EXPECT_TRUE(whole.starts_with("HTTP/1.1 200 OK\r\n")) << whole;
  EXPECT_NE(whole.find("\"object\":\"chat.completion\""), std::string::npos) << whole;
  const std::string stream =
      Ask(server->port(), Post("/v1/chat/completions", kChat + std::string(R"(,"stream":true})")));
  EXPECT_NE(stream.find("text/event-stream"), std::string::npos) << stream;
  EXPECT_NE(stream.find("data: [DONE]\n\n"), std::string::npos) << stream;
}

TEST(Server, ReadsNoBodyThatItRefusesAnyway) {
  ServerOptions options;
  options.api_keys = {"right"};
  Running server(std::move(options));
  const auto first_line = [&](const std::string& head) {
    const std::string answer =
        Ask(server->port(),
            head + "host: localhost\r\nexpect: 100-continue\r\ncontent-length: 9\r\n\r\n");
    return answer.substr(0, answer.find('\r'));
  };
  const std::string chat = "POST /v1/chat/completions HTTP/1.1\r\n";
  EXPECT_EQ(first_line(chat), "HTTP/1.1 401 Unauthorized");
  EXPECT_EQ(first_line(chat + "x-api-key: right\r\norigin: https://a.example\r\n"),
            "HTTP/1.1 403 Forbidden");
  EXPECT_EQ(first_line("POST /none HTTP/1.1\r\nx-api-key: right\r\n"), "HTTP/1.1 404 Not Found");
  EXPECT_EQ(first_line("PUT /tokenize HTTP/1.1\r\nx-api-key: right\r\n"),
            "HTTP/1.1 405 Method Not Allowed");
  EXPECT_EQ(first_line("POST /tokenize HTTP/1.1\r\nx-api-key: right\r\n"
                       "content-type: multipart/form-data\r\n"),
            "HTTP/1.1 415 Unsupported Media Type");
  TestClient client(server->port());
  client.Send(
      chat +
      "host: localhost\r\nx-api-key: right\r\nexpect: 100-continue\r\ncontent-length: 9\r\n\r\n");
  EXPECT_TRUE(client.ReceiveUntil("HTTP/1.1 100 Continue\r\n\r\n"));
}

TEST(Server, RefusesWhatIsNotHttpWithAnErrorObject) {
  Running server({});
  const std::string answer = Ask(server->port(), "hello\r\n\r\n");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 400 ")) << answer;
  EXPECT_NE(answer.find("{\"error\":{\"message\":"), std::string::npos) << answer;
}

TEST(Server, AHeadHasNoBody) {
  Running server({});
  const std::string answer =
      Ask(server->port(), "HEAD /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 OK\r\n")) << answer;
  EXPECT_TRUE(answer.ends_with("\r\n\r\n")) << answer;
}

TEST(Server, LetsAStreamEndBeforeItStops) {
  Running server({}, std::chrono::milliseconds(5));
  TestClient client(server->port());
  EXPECT_TRUE(client.Send(Post(
      "/v1/chat/completions",
      R"({"messages":[{"role":"user","content":"Hi"}],"max_tokens":40,"seed":1,"stream":true})")));
  EXPECT_TRUE(client.ReceiveUntil("\"content\":"));
  server->Stop(30);
  EXPECT_TRUE(client.ReceiveUntil("data: [DONE]\n\n")) << client.received;
  server.Join();
  EXPECT_FALSE(TestClient(server->port()).is_connected());
}

TEST(Server, TellsAStreamThatItStopsAtTheDeadline) {
  Running server({}, std::chrono::milliseconds(20));
  TestClient client(server->port());
  EXPECT_TRUE(
      client.Send(Post("/v1/chat/completions",
                       R"({"messages":[{"role":"user","content":"Hi"}],"seed":1,"stream":true})")));
  EXPECT_TRUE(client.ReceiveUntil("\"content\":"));
  server->Stop(60);
  server->Stop(0);
  server.Join();
  while (client.Receive()) {
  }
  EXPECT_FALSE(client.timed_out);
  EXPECT_NE(client.received.find("data: {\"error\":"), std::string::npos) << client.received;
  EXPECT_NE(client.received.find("\"code\":\"shutting_down\""), std::string::npos);
  EXPECT_EQ(client.received.find("[DONE]"), std::string::npos);
}

TEST(Server, TellsOfAPortInUseBeforeTheEngineIsMade) {
  Running server({});
  ServerOptions options;
  options.http.port = server->port();
  const auto second = Server::Create(
      options, testing::MakeServedModel(),
      [](const std::function<void(const StepReport&)>&) -> Result<std::unique_ptr<Engine>> {
        ADD_FAILURE() << "made for nothing";
        return Refuse("engine", "made");
      });
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.error().Message().find(std::to_string(server->port())), std::string::npos)
      << second.error().Message();
}

TEST(Server, RefusesKeysAndOriginsThatCannotBe) {
  ServerOptions keys;
  keys.api_keys = {"a b"};
  EXPECT_EQ(MakeServer(keys).error().Message(),
            "API key: a key with blanks or characters that are not ASCII, wanted letters, digits "
            "and signs");
  ServerOptions origins;
  origins.origins = {"a.example"};
  EXPECT_EQ(MakeServer(origins).error().Message(),
            "origin: \"a.example\", wanted * or an origin such as https://host:port");
}

TEST(Server, HandsOnWhyThereIsNoEngine) {
  ServerOptions options;
  options.http.port = 0;
  const auto server = Server::Create(
      options, testing::MakeServedModel(),
      [](const std::function<void(const StepReport&)>&) -> Result<std::unique_ptr<Engine>> {
        return Refuse("model.gguf", "no tensors");
      });
  ASSERT_FALSE(server.ok());
  EXPECT_EQ(server.error().Message(), "model.gguf: no tensors");
}

}  // namespace
}  // namespace facet
