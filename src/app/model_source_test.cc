// SPDX-License-Identifier: Apache-2.0
#include "app/model_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <map>

#include "base/file.h"
#include "base/sha256.h"
#include "support/http_server.h"
#include "support/testing.h"

namespace facet {
namespace {

using ::testing::ElementsAre;
using testing::HttpReply;
using testing::HttpRequest;
using testing::HttpServer;
using ::testing::IsEmpty;
using testing::MakeTempDir;
using testing::ReadOrDie;

Environment EnvironmentOf(const std::map<std::string, std::string>& variables) {
  return [variables](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}

std::string Failure(const Options& options, const std::map<std::string, std::string>& variables) {
  const auto settings = ReadSourceSettings(options, EnvironmentOf(variables));
  return settings.ok() ? "accepted" : settings.error().Message();
}

TEST(SourceSettings, ComeFromOptionsEnvironmentAndHome) {
  const std::string home = MakeTempDir();
  Options options;
  auto settings = ReadSourceSettings(options, EnvironmentOf({{"HOME", home}}));
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(settings->endpoint, "https://huggingface.co");
  EXPECT_EQ(settings->token, "");
  EXPECT_EQ(settings->cache_dir, home + "/.cache/facet/models");

  ASSERT_TRUE(WriteFile(home + "/token", "from-home\n").ok());
  settings = ReadSourceSettings(
      options, EnvironmentOf({{"HF_HOME", home}, {"HOME", "/x"}, {"XDG_CACHE_HOME", "/cache"}}));
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(settings->token, "from-home");
  EXPECT_EQ(settings->cache_dir, "/cache/facet/models");

  options.hf_endpoint = "http://Mirror:8080/hub//";
  settings = ReadSourceSettings(
      options,
      EnvironmentOf({{"HF_TOKEN", "from-env"}, {"HOME", "/x"}, {"XDG_CACHE_HOME", "relative"}}));
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(settings->token, "from-env");
  EXPECT_EQ(settings->endpoint, "http://mirror:8080/hub");
  EXPECT_EQ(settings->cache_dir, "/x/.cache/facet/models");

  options.token_file = home + "/token";
  options.cache_dir = "here";
  settings = ReadSourceSettings(options, EnvironmentOf({{"HF_TOKEN", "from-env"}}));
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(settings->token, "from-home");
  EXPECT_EQ(settings->cache_dir, "here");
}

TEST(SourceSettings, RefuseWhatCannotBeUsedWithoutShowingTheToken) {
  Options options;
  EXPECT_EQ(Failure(options, {}),
            "cache of models: no HOME in the environment, wanted --cache-dir DIR");
  EXPECT_EQ(Failure(options, {{"HOME", "/x"}, {"HF_TOKEN", "two\r\nX-Header: words"}}),
            "HF_TOKEN: no access token, wanted one line of printable characters");
  options.token_file = "/nothing/here";
  EXPECT_EQ(Failure(options, {{"HOME", "/x"}}),
            "/nothing/here: cannot open: No such file or directory");
  options.hf_endpoint = "ftp://x";
  EXPECT_EQ(Failure(options, {{"HOME", "/x"}}),
            "--hf-endpoint: another scheme, wanted http:// or https://");
  options.hf_endpoint = "https://x/?a";
  EXPECT_EQ(Failure(options, {{"HOME", "/x"}}), "--hf-endpoint: a query (?), wanted none");
}

/// A server of repositories: paths to contents; everything else is 404.
class ModelSourceTest : public ::testing::Test {
 protected:
  ModelSourceTest()
      : server_([this](const HttpRequest& request) {
          const auto found = files_.find(request.path);
          return found == files_.end() ? HttpReply{.status = 404}
                                       : FileReply(request, found->second, "\"v1\"");
        }),
        cache_(MakeTempDir()),
        source_({.endpoint = server_.url(), .token = "secret", .cache_dir = cache_},
                {.note = [this](const std::string& line) { notes_.push_back(line); },
                 .wait = [](std::chrono::milliseconds) {}}) {}

  std::string Pull(const std::string& name, const std::string& output = {},
                   const std::string& sha256 = {}) {
    const auto parsed = ParseModelName(name);
    EXPECT_TRUE(parsed.ok()) << name;
    const auto path = source_.Pull({.name = *parsed, .output = output, .sha256 = sha256});
    if (!path.ok()) {
      return path.error().Message();
    }
    return path->starts_with(cache_) ? "CACHE" + path->substr(cache_.size()) : *path;
  }
  std::string Find(const std::string& name) {
    const auto path = source_.Find(*ParseModelName(name));
    if (!path.ok()) {
      return path.error().Message();
    }
    return *path ? "CACHE" + (*path)->substr(cache_.size()) : "nothing";
  }
  /// The folder of the server in the cache.
  [[nodiscard]] std::string Host() const {
    std::string host = server_.url().substr(std::string("http://").size());
    host[host.find(':')] = '_';
    return host;
  }
  [[nodiscard]] std::string Repository() const { return "/hf/" + Host() + "/o/r"; }
  [[nodiscard]] size_t n_requests() const { return server_.requests().size(); }
  void Offer(const std::string& listing) {
    files_["/api/models/o/r/revision/main?blobs=true"] = listing;
  }

  std::map<std::string, std::string> files_;
  HttpServer server_;
  std::string cache_;
  std::vector<std::string> notes_;
  ModelSource source_;
};

TEST_F(ModelSourceTest, PullsAFileOfARepositoryOnce) {
  files_["/o/r/resolve/main/sub/m.gguf"] = "model";
  EXPECT_EQ(Find("hf:o/r/sub/m.gguf"), "nothing");
  const std::string path = "CACHE" + Repository() + "/sub/m.gguf";
  EXPECT_EQ(Pull("hf:o/r/sub/m.gguf"), path);
  EXPECT_EQ(ReadOrDie(cache_ + Repository() + "/sub/m.gguf"), "model");
  EXPECT_EQ(server_.requests()[0].Header("authorization"), "Bearer secret");
  EXPECT_THAT(notes_,
              ElementsAre("downloading " + server_.url() + "/o/r/resolve/main/sub/m.gguf to " +
                          cache_ + Repository() + "/sub/m.gguf"));
  EXPECT_EQ(Pull("hf:o/r/sub/m.gguf"), path);
  EXPECT_EQ(Find("hf:o/r/sub/m.gguf"), path);
  EXPECT_EQ(n_requests(), 1u);
  EXPECT_EQ(Pull("hf:o/r@v2/m.gguf"), server_.url() + "/o/r/resolve/v2/m.gguf: 404: not there");
}

TEST_F(ModelSourceTest, PullsUrlsAndGivesTheTokenToItsServerOnly) {
  files_["/a/m.gguf"] = "model";
  EXPECT_THAT(Pull(server_.url() + "/a/m.gguf"),
              ::testing::MatchesRegex("CACHE/url/" + Host() + "/a/[0-9a-f]+/m.gguf"));
  EXPECT_EQ(server_.requests()[0].Header("authorization"), "Bearer secret");
  const HttpServer other([](const HttpRequest&) { return HttpReply{.body = "other"}; });
  EXPECT_THAT(Pull(other.url() + "/a/m.gguf"), ::testing::StartsWith("CACHE/url/"));
  EXPECT_EQ(other.requests()[0].Header("authorization"), "");
}

TEST_F(ModelSourceTest, PullsAllPartsSideBySide) {
  files_["/o/r/resolve/main/m-00001-of-00002.gguf"] = "one";
  files_["/o/r/resolve/main/m-00002-of-00002.gguf"] = "two";
  EXPECT_EQ(Pull("hf:o/r/m-00002-of-00002.gguf"),
            "CACHE" + Repository() + "/m-00001-of-00002.gguf");
  EXPECT_EQ(ReadOrDie(cache_ + Repository() + "/m-00002-of-00002.gguf"), "two");
  files_["/m-00001-of-00002.gguf?x"] = "one";
  files_["/m-00002-of-00002.gguf?x"] = "two";
  const std::string first = Pull(server_.url() + "/m-00001-of-00002.gguf?x");
  const std::string folder = cache_ + first.substr(5, first.rfind('/') - 5);
  EXPECT_EQ(ReadOrDie(folder + "/m-00001-of-00002.gguf"), "one");
  EXPECT_EQ(ReadOrDie(folder + "/m-00002-of-00002.gguf"), "two");
  // With one part gone, the model is not there.
  ASSERT_EQ(::unlink((folder + "/m-00002-of-00002.gguf").c_str()), 0);
  EXPECT_EQ(Find(server_.url() + "/m-00001-of-00002.gguf?x"), "nothing");
  EXPECT_EQ(Pull("hf:o/r/m-00001-of-00002.gguf", "here.gguf"),
            "--output: a model of 2 files, wanted one file");
}

TEST_F(ModelSourceTest, ChoosesFromARepositoryAndRemembersIt) {
  Offer(
      R"({"siblings": [{"rfilename": "m-Q4_K_M.gguf", "size": 5}, {"rfilename": "m-Q8_0.gguf"}]})");
  files_["/o/r/resolve/main/m-Q4_K_M.gguf"] = "small";
  files_["/o/r/resolve/main/m-Q8_0.gguf"] = "large";
  EXPECT_EQ(Find("hf:o/r"), "nothing");
  EXPECT_EQ(Pull("hf:o/r"), "CACHE" + Repository() + "/m-Q4_K_M.gguf");
  EXPECT_EQ(notes_[0], "hf:o/r: taking m-Q4_K_M.gguf of 2 models; :TAG or /FILE names another");
  EXPECT_EQ(Pull("hf:o/r:q8_0"), "CACHE" + Repository() + "/m-Q8_0.gguf");
  EXPECT_EQ(n_requests(), 4u);
  EXPECT_EQ(Pull("hf:o/r"), "CACHE" + Repository() + "/m-Q4_K_M.gguf");
  EXPECT_EQ(Find("hf:o/r:q8_0"), "CACHE" + Repository() + "/m-Q8_0.gguf");
  EXPECT_EQ(n_requests(), 4u);
  const std::string record = cache_ + "/chosen/" + Host() + "/o/r@";
  EXPECT_EQ(ReadOrDie(record), "m-Q4_K_M.gguf\n");
  ASSERT_TRUE(WriteFile(record, "../../../x\n").ok());
  EXPECT_EQ(Pull("hf:o/r"), record + ": not the path of a file, wanted the record deleted");
  EXPECT_EQ(Pull("hf:o/r", "here.gguf"),
            "--output: a name without a file, wanted hf:OWNER/REPOSITORY/FILE or a URL");
}

TEST_F(ModelSourceTest, PullsADirectory) {
  Offer(R"({"siblings": [{"rfilename": "README.md"}, {"rfilename": "config.json", "size": 2},
        {"rfilename": "model.safetensors", "size": 7, "lfs": {"sha256": ")" +
        Sha256Hex("weights") + R"("}}]})");
  files_["/o/r/resolve/main/config.json"] = "{}";
  EXPECT_EQ(Pull("hf:o/r"), server_.url() + "/o/r/resolve/main/model.safetensors: 404: not there");
  EXPECT_EQ(Find("hf:o/r"), "nothing") << "not all of it is there";
  files_["/o/r/resolve/main/model.safetensors"] = "WEIGHTS";
  EXPECT_EQ(Pull("hf:o/r"), server_.url() + "/o/r/resolve/main/model.safetensors: sha256 " +
                                Sha256Hex("WEIGHTS") + ", wanted " + Sha256Hex("weights"));
  files_["/o/r/resolve/main/model.safetensors"] = "weights";
  EXPECT_EQ(Pull("hf:o/r"), "CACHE" + Repository());
  EXPECT_EQ(Find("hf:o/r"), "CACHE" + Repository());
  EXPECT_EQ(ReadOrDie(cache_ + Repository() + "/model.safetensors"), "weights");
  EXPECT_FALSE(FileExists(cache_ + Repository() + "/README.md"));
}

TEST_F(ModelSourceTest, RefusesAListingThatLeavesTheCache) {
  Offer(R"({"siblings": [{"rfilename": "../../../m.gguf"}]})");
  EXPECT_EQ(Pull("hf:o/r"),
            "hf:o/r: file name \"../../../m.gguf\", wanted a path within the repository");
  EXPECT_EQ(n_requests(), 1u);
}

TEST_F(ModelSourceTest, WritesWhereItIsTold) {
  files_["/o/r/resolve/main/m.gguf"] = "model";
  const std::string path = MakeTempDir() + "/new/here.gguf";
  EXPECT_EQ(Pull("hf:o/r/m.gguf", path, Sha256Hex("model")), path);
  EXPECT_EQ(ReadOrDie(path), "model");
  EXPECT_EQ(Pull("hf:o/r/m.gguf", path), path + ": is there already, wanted another name");
  EXPECT_EQ(Find("hf:o/r/m.gguf"), "nothing");
}

TEST_F(ModelSourceTest, ChecksTheDigestOfWhatIsThere) {
  files_["/o/r/resolve/main/m.gguf"] = "model";
  const std::string path = "CACHE" + Repository() + "/m.gguf";
  EXPECT_EQ(Pull("hf:o/r/m.gguf"), path);
  EXPECT_EQ(Pull("hf:o/r/m.gguf", "", Sha256Hex("model")), path);
  EXPECT_EQ(Pull("hf:o/r/m.gguf", "", Sha256Hex("other")),
            cache_ + Repository() + "/m.gguf: sha256 " + Sha256Hex("model") + ", wanted " +
                Sha256Hex("other"));
}

TEST_F(ModelSourceTest, ResolvesTheNamesThatACommandTakes) {
  files_["/o/r/resolve/main/m.gguf"] = "model";
  const auto environment = EnvironmentOf({});
  Options options;
  options.cache_dir = cache_;
  options.hf_endpoint = server_.url();
  options.token_file = cache_ + "/token";
  ASSERT_TRUE(WriteFile(options.token_file, "secret").ok());
  const std::string path = cache_ + Repository() + "/m.gguf";

  options.command = Command::kVersion;
  options.model = "hf:o/r/m.gguf";
  ASSERT_TRUE(ResolveModelNames(environment, &options).ok());
  EXPECT_EQ(options.model, "hf:o/r/m.gguf") << "not of this command";

  options.command = Command::kRun;
  options.words = {"hf:o/r/m.gguf"};
  ASSERT_TRUE(ResolveModelNames(environment, &options).ok());
  EXPECT_EQ(options.model, path);
  EXPECT_EQ(options.words[0], "hf:o/r/m.gguf") << "a prompt";

  options.command = Command::kInspect;
  options.model = "plain.gguf";
  ASSERT_TRUE(ResolveModelNames(environment, &options).ok());
  EXPECT_EQ(options.model, "plain.gguf");
  EXPECT_EQ(options.words[0], path);

  options.model = "hf:o";
  EXPECT_EQ(ResolveModelNames(environment, &options).error().Message(),
            "\"hf:o\": not a name of a model, wanted "
            "hf:OWNER/REPOSITORY[@REVISION][/FILE or :TAG]");
}

}  // namespace
}  // namespace facet
