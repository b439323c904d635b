// SPDX-License-Identifier: Apache-2.0
// facet serve as it is started and stopped; what it answers is tested in src/server.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "base/file.h"
#include "base/json.h"
#include "cli/process.h"
#include "server/http_testing.h"
#include "support/testing.h"

namespace facet::testing {
namespace {

constexpr std::string_view kNoModel =
    "no model given: using the embedded tiny model (a toy; -m MODEL for a real one)\n";

/// `facet serve` on a free port.
class RunningServer {
 public:
  explicit RunningServer(std::vector<std::string> arguments = {})
      : process_(WithPort(std::move(arguments)), {}) {
    const std::string start = process_.ReadUntil("press Ctrl-C to stop");
    const size_t at = start.find("http://127.0.0.1:");
    EXPECT_NE(at, std::string::npos) << start;
    port_ = static_cast<uint16_t>(std::atoi(start.c_str() + at + 17));
    start_ = start;
  }

  TerminalProcess& process() { return process_; }
  [[nodiscard]] const std::string& start() const { return start_; }
  [[nodiscard]] uint16_t port() const { return port_; }

  std::string Ask(const std::string& body) const {
    TestClient client(port_);
    EXPECT_TRUE(
        client.Send("POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nconnection: "
                    "close\r\ncontent-length: " +
                    std::to_string(body.size()) + "\r\n\r\n" + body));
    while (client.Receive()) {
    }
    return client.received;
  }

 private:
  static std::vector<std::string> WithPort(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"serve", "--port", "0"});
    return arguments;
  }

  TerminalProcess process_;
  std::string start_;
  uint16_t port_ = 0;
};

constexpr const char* kQuestion =
    R"({"messages":[{"role":"user","content":"What is the capital of France?"}],"temperature":0})";

TEST(Serve, AnswersUntilASignal) {
  if (!HasTerminals()) {
    GTEST_SKIP() << kNoTerminals;
  }
  for (const int signal : {SIGTERM, SIGINT}) {
    RunningServer server;
    EXPECT_NE(server.start().find("model facet-tiny: "), std::string::npos) << server.start();
    EXPECT_NE(server.start().find("memory: "), std::string::npos);
    const std::string answer = server.Ask(kQuestion);
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 OK\r\n")) << answer;
    EXPECT_NE(answer.find("Paris"), std::string::npos) << answer;
    server.process().ReadUntil("POST /v1/chat/completions 200 prompt=");
    server.process().Signal(signal);
    EXPECT_EQ(server.process().Wait(), 0) << server.process().raw();
    EXPECT_EQ(server.process().raw().find("capital"), std::string::npos) << "text in the log";
  }
}

TEST(Serve, AnswersWhileNobodyReadsTheLog) {
  if (!HasTerminals()) {
    GTEST_SKIP() << kNoTerminals;
  }
  RunningServer server;
  TestClient client(server.port());
  constexpr int kRequests = 4000;  // lines far beyond what a terminal holds unread
  for (int i = 0; i < kRequests; ++i) {
    ASSERT_TRUE(client.Send("GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n"));
    ASSERT_TRUE(client.ReceiveAnswer().starts_with("HTTP/1.1 200 OK\r\n")) << i;
  }
  client.Close();
  server.process().Signal(SIGTERM);
  EXPECT_EQ(server.process().Wait(), 0);
  EXPECT_NE(server.process().raw().find(" lines of the log were dropped"), std::string::npos);
}

TEST(Serve, KeepsPrefixesOverARestart) {
  if (!HasTerminals()) {
    GTEST_SKIP() << kNoTerminals;
  }
  const std::string file = MakeTempDir() + "/cache";
  const std::string cached = "cached_tokens\":";
  for (const bool is_first : {true, false}) {
    RunningServer server({"--cache-file", file});
    const std::string answer = server.Ask(kQuestion);
    const size_t at = answer.find(cached);
    ASSERT_NE(at, std::string::npos) << answer;
    const int n_cached = std::atoi(answer.c_str() + at + cached.size());
    EXPECT_EQ(n_cached > 0, !is_first) << answer;
    server.process().Signal(SIGTERM);
    EXPECT_EQ(server.process().Wait(), 0) << server.process().raw();
    EXPECT_TRUE(FileExists(file));
  }
}

TEST(Serve, RefusesAPortInUse) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(listener, 1), 0);
  ASSERT_EQ(::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const std::string port = std::to_string(ntohs(address.sin_port));
  for (const bool checks : {false, true}) {
    std::vector<std::string> arguments = {"serve", "--port", port};
    if (checks) {
      arguments.emplace_back("--check");
    }
    const Finished finished = RunFacet(arguments);
    EXPECT_EQ(finished.exit_code, 1);
    EXPECT_NE(finished.err.find("127.0.0.1:" + port), std::string::npos) << finished.err;
    EXPECT_EQ(finished.out, "");
  }
  ::close(listener);
}

TEST(Serve, RefusesToBeOpenToOthersWithoutAKey) {
  const Finished finished = RunFacet({"serve", "--host", "0.0.0.0", "--port", "0"});
  EXPECT_EQ(finished.exit_code, 1);
  EXPECT_EQ(finished.err,
            "facet: --host: 0.0.0.0, which others can reach, without a key, wanted --api-key or "
            "--api-key-file, or --insecure\n");
  EXPECT_EQ(
      RunFacet({"serve", "--host", "0.0.0.0", "--port", "0", "--check", "--insecure"}).exit_code,
      0);
  EXPECT_EQ(RunFacet({"serve", "--host", "0.0.0.0", "--port", "0", "--check", "--api-key", "k"})
                .exit_code,
            0);
}

TEST(Serve, ChecksWithoutServing) {
  const std::string config = MakeTempDir() + "/facet.json";
  ASSERT_TRUE(WriteFile(config, R"({"port": 0, "alias": "mine", "ctx_size": 256, "parallel": 3,
                                    "no_prefix_cache": true})")
                  .ok());
  const Finished finished = RunFacet({"serve", "--check", "--config", config});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_TRUE(finished.out.starts_with("model mine: ")) << finished.out;
  EXPECT_NE(finished.out.find("256 positions a reply, 3 whole contexts, up to 3 replies at a time"),
            std::string::npos)
      << finished.out;
  EXPECT_NE(
      finished.out.find("\ndrafting: auto, at most 8 tokens at a time, with embedded drafter ("),
      std::string::npos)
      << finished.out;
  EXPECT_NE(finished.out.find("\naddress: http://127.0.0.1:"), std::string::npos) << finished.out;
  EXPECT_EQ(finished.err, kNoModel);
}

TEST(Serve, RefusesBadOptions) {
  const std::string folder = MakeTempDir();
  ASSERT_TRUE(WriteFile(folder + "/keys", "good\nnot good\n").ok());
  const auto error_of = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"serve", "--port", "0", "--check"});
    const Finished finished = RunFacet(arguments);
    EXPECT_EQ(finished.exit_code, 1);
    EXPECT_EQ(finished.out, "");
    return finished.err;
  };
  EXPECT_EQ(error_of({"--api-key-file", folder + "/keys"}),
            "facet: " + folder +
                "/keys:2: a key with blanks or characters that are not ASCII, wanted letters, "
                "digits and signs\n");
  EXPECT_TRUE(
      error_of({"--api-key-file", folder + "/none"}).starts_with("facet: " + folder + "/none: "));
  EXPECT_EQ(error_of({"--api-key", ""}), "facet: --api-key: a key of 0 bytes, wanted 1 to 512\n");
  EXPECT_EQ(error_of({"--cors", "a.example"}),
            "facet: --cors: \"a.example\", wanted * or an origin such as https://host:port\n");
  EXPECT_EQ(error_of({"--cache-file", "a", "--no-prefix-cache"}),
            "facet: --cache-file: given with --no-prefix-cache, wanted one of them\n");
}

TEST(Serve, RefusesAModelThatCannotBeRead) {
  const Finished missing = RunFacet({"serve", "--port", "0", "-m", "/nothing/here.gguf"});
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_TRUE(missing.err.starts_with("facet: /nothing/here.gguf: ")) << missing.err;
  const std::string file = MakeTempDir() + "/noise.gguf";
  ASSERT_TRUE(WriteFile(file, "GGUF but not really").ok());
  const Finished noise = RunFacet({"serve", "--port", "0", "-m", file});
  EXPECT_EQ(noise.exit_code, 2);
  EXPECT_TRUE(noise.err.starts_with("facet: " + file)) << noise.err;
}

TEST(Serve, ShowsItsHelp) {
  const Finished help = RunFacet({"serve", "--help"});
  EXPECT_EQ(help.exit_code, 0);
  for (const char* option : {"--host", "--port", "--api-key-file", "--cors", "--parallel",
                             "--cache-file", "--temp", "--max-tokens", "--ctx-size"}) {
    EXPECT_NE(help.out.find(option), std::string::npos) << option;
  }
}

}  // namespace
}  // namespace facet::testing
