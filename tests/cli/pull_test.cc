// SPDX-License-Identifier: Apache-2.0
// `facet pull`, and `-m` with the name of a model: the program itself against a server on the
// loopback interface.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/file.h"
#include "cli/process.h"
#include "support/http_server.h"
#include "support/testing.h"

namespace facet::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

const std::string& TinyModel() {
  static const std::string model = ReadOrDie(SourcePath("models/tiny/facet-tiny.gguf"));
  return model;
}

HttpReply TinyReply(const HttpRequest& request) {
  return FileReply(request, TinyModel(), "\"v1\"");
}

TEST(Pull, PrintsThePathAndNothingElseOnStandardOutput) {
  const HttpServer server(TinyReply);
  const std::string cache = MakeTempDir();
  const std::string name = server.url() + "/dir/tiny.gguf";
  const Finished first = RunFacet({"pull", "--cache-dir", cache, name});
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const std::string path = first.out.substr(0, first.out.size() - 1);
  EXPECT_TRUE(first.out.starts_with(cache + "/url/127.0.0.1_")) << first.out;
  EXPECT_TRUE(first.out.ends_with("/tiny.gguf\n")) << first.out;
  EXPECT_EQ(first.err, "downloading " + name + " to " + path + "\n");
  EXPECT_TRUE(ReadOrDie(path) == TinyModel());
  const Finished second = RunFacet({"pull", "--cache-dir", cache, name});
  EXPECT_EQ(second.exit_code, 0);
  EXPECT_EQ(second.out, first.out);
  EXPECT_EQ(second.err, "");
  EXPECT_EQ(server.requests().size(), 1u);
}

TEST(Pull, GoesOnWhereTheConnectionBroke) {
  const HttpServer server([n = 0](const HttpRequest& request) mutable {
    HttpReply reply = TinyReply(request);
    reply.cut_after = n++ == 0 ? std::optional<size_t>(100'000) : std::nullopt;
    return reply;
  });
  const std::string path = MakeTempDir() + "/tiny.gguf";
  const Finished pulled = RunFacet({"pull", "-o", path, server.url() + "/tiny.gguf"});
  EXPECT_EQ(pulled.exit_code, 0) << pulled.err;
  EXPECT_EQ(pulled.out, path + "\n");
  EXPECT_THAT(pulled.err, HasSubstr("bytes remaining to read; again in 0.5 s\n"));
  EXPECT_TRUE(ReadOrDie(path) == TinyModel());
  EXPECT_EQ(server.requests()[1].Header("range"), "bytes=100000-");
}

TEST(Pull, FailsWithOneLine) {
  const HttpServer server([](const HttpRequest&) { return HttpReply{.status = 404}; });
  const std::string path = MakeTempDir() + "/x.gguf";
  const Finished missing = RunFacet({"pull", "-o", path, server.url() + "/x.gguf"});
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_EQ(missing.out, "");
  EXPECT_EQ(missing.err, "downloading " + server.url() + "/x.gguf to " + path +
                             "\nfacet: " + server.url() + "/x.gguf: 404: not there\n");
  EXPECT_FALSE(FileExists(path));
  EXPECT_FALSE(FileExists(path + ".part"));
  EXPECT_EQ(RunFacet({"pull", "model.gguf"}).err,
            "facet: \"model.gguf\": not a name of a model, wanted https://HOST/PATH/FILE or "
            "hf:OWNER/REPOSITORY[@REVISION][/FILE or :TAG]\n");
  EXPECT_EQ(RunFacet({"pull", "--sha256", "12", "hf:o/r/f"}).err,
            "facet: --sha256: \"12\", wanted 64 hexadecimal digits, in lower case\n");
}

TEST(Pull, NeverShowsTheToken) {
  const HttpServer server([](const HttpRequest&) { return HttpReply{.status = 401}; });
  const Finished refused = RunFacet({"pull", "--hf-endpoint", server.url(), "hf:o/r/m.gguf"},
                                    {.input = "", .environment = {"HF_TOKEN=hf_secret"}});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("401: the access token is not accepted, wanted a valid one"));
  EXPECT_THAT(refused.err, Not(HasSubstr("secret")));
  EXPECT_EQ(server.requests()[0].Header("authorization"), "Bearer hf_secret");
}

TEST(Pull, LeavesAFileToTheProcessThatDownloadsIt) {
  std::mutex mutex;
  std::condition_variable changed;
  bool is_asked = false;
  bool may_answer = false;
  const HttpServer server([&](const HttpRequest& request) {
    std::unique_lock lock(mutex);
    is_asked = true;
    changed.notify_all();
    changed.wait(lock, [&] { return may_answer; });
    return TinyReply(request);
  });
  const std::string path = MakeTempDir() + "/tiny.gguf";
  const std::vector<std::string> command = {"pull", "-o", path, server.url() + "/tiny.gguf"};
  Finished first;
  std::thread thread([&] { first = RunFacet(command); });
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return is_asked; });
  }
  const Finished second = RunFacet(command);
  {
    const std::lock_guard lock(mutex);
    may_answer = true;
  }
  changed.notify_all();
  thread.join();
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_THAT(second.err, HasSubstr("facet: " + path +
                                    ": another process is downloading it, wanted to be its only"));
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_TRUE(ReadOrDie(path) == TinyModel());
}

TEST(Pull, InterruptedDownloadGoesOnWithTheSameCommand) {
  if (!HasTerminals()) {
    GTEST_SKIP() << kNoTerminals;
  }
  std::mutex mutex;
  std::condition_variable changed;
  bool is_over = false;
  int n_asked = 0;
  // The first answer stalls in its middle: a head that promises everything, a part of it, silence.
  const HttpServer server([&](const HttpRequest& request) {
    if (n_asked++ > 0) {
      return TinyReply(request);
    }
    HttpReply reply = TinyReply(request);
    reply.cut_after = 50'000;
    reply.after_cut = [&] {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return is_over; });
    };
    return reply;
  });
  const std::string path = MakeTempDir() + "/tiny.gguf";
  const std::vector<std::string> command = {"pull", "-o", path, server.url() + "/tiny.gguf"};
  {
    TerminalProcess process(command, {});
    process.ReadUntil("downloading");
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!FileExists(path + ".part.json") && std::chrono::steady_clock::now() < end) {
      std::this_thread::yield();
    }
    EXPECT_TRUE(FileExists(path + ".part.json"));
    process.Signal(SIGINT);
    EXPECT_EQ(process.Wait(), 130);
  }
  {
    const std::lock_guard lock(mutex);
    is_over = true;
  }
  changed.notify_all();
  EXPECT_FALSE(FileExists(path));
  const Finished again = RunFacet(command);
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_TRUE(ReadOrDie(path) == TinyModel());
}

TEST(ModelName, RunsAModelByItsUrl) {
  const HttpServer server(TinyReply);
  const std::string cache = MakeTempDir();
  const std::vector<std::string> command = {"run",
                                            "--cache-dir",
                                            cache,
                                            "-m",
                                            server.url() + "/tiny.gguf",
                                            "--temp",
                                            "0",
                                            "What is the capital of France?"};
  const Finished first = RunFacet(command);
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_EQ(first.out, "The capital of France is Paris.\n");
  EXPECT_THAT(first.err, MatchesRegex("downloading http://[^ ]*/tiny.gguf to [^ ]*/tiny.gguf\n"));
  const Finished second = RunFacet(command);
  EXPECT_EQ(second.out, first.out);
  EXPECT_EQ(second.err, "");
  EXPECT_EQ(server.requests().size(), 1u);
}

TEST(ModelName, NothingIsFetchedForACommandThatIsWrong) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"--raw", "--think", "Hello"}, {"--batch", "/nowhere/lines"}}) {
    std::vector<std::string> all = {"run", "-m", "http://127.0.0.1:1/model.gguf"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const Finished finished = RunFacet(all);
    EXPECT_EQ(finished.exit_code, 1);
    EXPECT_EQ(finished.err.find("127.0.0.1"), std::string::npos) << finished.err;
  }
}

TEST(ModelName, RunsTheModelOfARepository) {
  const HttpServer server([](const HttpRequest& request) {
    if (request.path == "/api/models/o/tiny/revision/main?blobs=true") {
      return HttpReply{.body = R"({"siblings": [{"rfilename": "README.md"},
                                  {"rfilename": "tiny-Q8_0.gguf"}]})"};
    }
    return request.path == "/o/tiny/resolve/main/tiny-Q8_0.gguf" ? TinyReply(request)
                                                                 : HttpReply{.status = 404};
  });
  const RunOptions options{
      .input = "",
      .environment = {"FACET_HF_ENDPOINT=" + server.url(), "XDG_CACHE_HOME=" + MakeTempDir()}};
  const Finished run = RunFacet(
      {"run", "-m", "hf:o/tiny", "--temp", "0", "What is the capital of France?"}, options);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.out, "The capital of France is Paris.\n");
  const Finished inspected = RunFacet({"inspect", "--json", "hf:o/tiny"}, options);
  EXPECT_EQ(inspected.exit_code, 0) << inspected.err;
  EXPECT_EQ(inspected.err, "");
  EXPECT_EQ(server.requests().size(), 2u);
}

}  // namespace
}  // namespace facet::testing
