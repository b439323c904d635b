// SPDX-License-Identifier: Apache-2.0
#include "net/download.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/sha256.h"
#include "net/part_file.h"
#include "support/http_server.h"
#include "support/testing.h"

namespace facet {
namespace {

using ::testing::ElementsAre;
using testing::FileReply;
using testing::HttpReply;
using testing::HttpRequest;
using testing::HttpServer;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr std::string_view kETag = "\"v1\"";

/// 3 MB in which no two stretches are equal.
const std::string& Content() {
  static const std::string content = [] {
    std::string text;
    for (int i = 0; text.size() < 3'000'000; ++i) {
      text += std::to_string(i) + "\n";
    }
    return text;
  }();
  return content;
}

/// A folder, a file in it to be, and what was told and waited for.
class DownloadTest : public ::testing::Test {
 protected:
  Status Get(const HttpServer& server) {
    request_.url = server.url() + "/model.gguf";
    request_.path = path_;
    return Download(request_, hooks_);
  }
  /// The message of a failure; checks that nothing is under the final name.
  std::string Failure(const HttpServer& server) {
    const Status status = Get(server);
    EXPECT_FALSE(FileExists(path_));
    std::string message = status.ok() ? "succeeded" : status.error().Message();
    const size_t at = message.find(server.url());
    return at == std::string::npos ? message : message.replace(at, server.url().size(), "URL");
  }
  void ExpectComplete(const std::string& content) {
    EXPECT_TRUE(testing::ReadOrDie(path_) == content);
    ExpectNoPart();
  }
  void ExpectNoPart() {
    EXPECT_FALSE(FileExists(path_ + ".part"));
    EXPECT_FALSE(FileExists(path_ + ".part.json"));
  }

  std::string path_ = testing::MakeTempDir() + "/model.gguf";
  DownloadRequest request_;
  std::vector<int64_t> waits_ms_;
  std::vector<std::string> notes_;
  uint64_t n_done_ = 0;
  uint64_t n_total_ = 0;
  DownloadHooks hooks_{
      .on_progress =
          [this](uint64_t done, uint64_t total) {
            n_done_ = done;
            n_total_ = total;
          },
      .on_note = [this](const std::string& line) { notes_.push_back(line); },
      .wait = [this](std::chrono::milliseconds time) { waits_ms_.push_back(time.count()); }};
};

TEST_F(DownloadTest, WritesTheFile) {
  const HttpServer server(
      [](const HttpRequest& request) { return FileReply(request, Content(), "\"v1\""); });
  ASSERT_TRUE(Get(server).ok());
  ExpectComplete(Content());
  EXPECT_EQ(n_done_, Content().size());
  EXPECT_EQ(n_total_, Content().size());
  EXPECT_THAT(waits_ms_, IsEmpty());
  ASSERT_TRUE(Get(server).ok());
  EXPECT_EQ(server.requests().size(), 1u) << "a file that is there is left alone";
}

TEST_F(DownloadTest, GoesOnWhereTheConnectionBroke) {
  const HttpServer server([n = 0](const HttpRequest& request) mutable {
    HttpReply reply = FileReply(request, Content(), "\"v1\"");
    reply.cut_after = n++ < 2 ? std::optional<size_t>(1'200'000) : std::nullopt;
    return reply;
  });
  ASSERT_TRUE(Get(server).ok());
  ExpectComplete(Content());
  const auto requests = server.requests();
  ASSERT_EQ(requests.size(), 3u);
  EXPECT_EQ(requests[0].Header("range"), "");
  EXPECT_EQ(requests[1].Header("range"), "bytes=1200000-");
  EXPECT_EQ(requests[1].Header("if-range"), kETag);
  EXPECT_EQ(requests[2].Header("range"), "bytes=2400000-");
  EXPECT_THAT(waits_ms_, ElementsAre(500, 500)) << "progress makes up for a failure";
  EXPECT_EQ(notes_[0], "transfer closed with " + std::to_string(Content().size() - 1'200'000) +
                           " bytes remaining to read; again in 0.5 s");
}

TEST_F(DownloadTest, GivesUpAndGoesOnWithTheNextCall) {
  bool is_broken = true;
  const HttpServer server([&](const HttpRequest& request) {
    HttpReply reply = FileReply(request, Content(), "\"v1\"");
    reply.cut_after = is_broken ? std::optional<size_t>(1000) : std::nullopt;
    return reply;
  });
  EXPECT_EQ(Failure(server),
            "URL/model.gguf: given up after 6 tries (transfer closed with " +
                std::to_string(Content().size() - 6000) +
                " bytes remaining to read), 6000 bytes are there, wanted the same command again, "
                "which goes on from there");
  EXPECT_THAT(waits_ms_, ElementsAre(500, 1000, 2000, 4000, 8000));
  EXPECT_TRUE(testing::ReadOrDie(path_ + ".part") == Content().substr(0, 6000));
  is_broken = false;
  ASSERT_TRUE(Get(server).ok());
  ExpectComplete(Content());
  EXPECT_EQ(server.requests().back().Header("range"), "bytes=6000-");
}

TEST_F(DownloadTest, StartsOverWhenTheFileHasChanged) {
  // The second version comes in full (If-Range), or in part from a server that ignores If-Range.
  for (const bool knows_if_range : {true, false}) {
    const HttpServer server([n = 0, knows_if_range](const HttpRequest& request) mutable {
      if (n++ == 0) {
        HttpReply reply = FileReply(request, std::string(5000, 'o'), "\"v1\"");
        reply.cut_after = 3000;
        return reply;
      }
      HttpRequest asked = request;
      if (!knows_if_range) {
        asked.headers.erase("if-range");
      }
      return FileReply(asked, std::string(6000, 'n'), "\"v2\"");
    });
    ASSERT_TRUE(Get(server).ok());
    ExpectComplete(std::string(6000, 'n'));
    EXPECT_EQ(server.requests().size(), knows_if_range ? 2u : 3u);
    ASSERT_EQ(::unlink(path_.c_str()), 0);
  }
  EXPECT_EQ(notes_.back(), "the server has another version by now; again in 1 s");
}

TEST_F(DownloadTest, StartsOverWithoutAValidator) {
  const HttpServer server([n = 0](const HttpRequest& request) mutable {
    HttpReply reply = FileReply(request, Content(), "W/\"weak\"");
    reply.cut_after = n++ == 0 ? std::optional<size_t>(1000) : std::nullopt;
    return reply;
  });
  EXPECT_TRUE(Get(server).ok());
  ExpectComplete(Content());
}

TEST_F(DownloadTest, TakesAPartThatIsComplete) {
  const HttpServer server(
      [](const HttpRequest& request) { return FileReply(request, "0123456789", "\"v1\""); });
  const std::string url = server.url() + "/model.gguf";
  ASSERT_TRUE(WriteFile(path_ + ".part.json",
                        "{\"url\":\"" + url + "\",\"validator\":\"\\\"v1\\\"\",\"size\":10}")
                  .ok());
  ASSERT_TRUE(WriteFile(path_ + ".part", "0123456789").ok());
  ASSERT_TRUE(Get(server).ok());
  ExpectComplete("0123456789");
  EXPECT_EQ(server.requests().size(), 1u);
}

TEST_F(DownloadTest, StartsOverWhenThePartIsTooLong) {
  const HttpServer server(
      [](const HttpRequest& request) { return FileReply(request, "0123456789", "\"v1\""); });
  const std::string url = server.url() + "/model.gguf";
  ASSERT_TRUE(
      WriteFile(path_ + ".part.json", "{\"url\":\"" + url + "\",\"validator\":\"\\\"v1\\\"\"}")
          .ok());
  ASSERT_TRUE(WriteFile(path_ + ".part", "0123456789abc").ok());
  ASSERT_TRUE(Get(server).ok());
  ExpectComplete("0123456789");
}

TEST_F(DownloadTest, IgnoresAPartOfSomethingElse) {
  const HttpServer server(
      [](const HttpRequest& request) { return FileReply(request, "0123456789", "\"v1\""); });
  for (const std::string origin :
       {"{\"url\":\"http://other/x\",\"validator\":\"\\\"v1\\\"\"}", "{\"url\":[1]}", "[", ""}) {
    ASSERT_TRUE(WriteFile(path_ + ".part.json", origin).ok());
    ASSERT_TRUE(WriteFile(path_ + ".part", "abc").ok());
    ASSERT_TRUE(Get(server).ok());
    ExpectComplete("0123456789");
    EXPECT_EQ(server.requests().back().Header("range"), "");
    ASSERT_EQ(::unlink(path_.c_str()), 0);
  }
}

TEST_F(DownloadTest, TriesAgainWhatPasses) {
  const HttpServer server([n = 0](const HttpRequest& request) mutable {
    constexpr int kStatuses[] = {503, 429, 500};
    if (n < 3) {
      HttpReply reply{.status = kStatuses[n]};
      if (n++ == 1) {
        reply.headers.emplace_back("Retry-After", "30");
      }
      return reply;
    }
    return FileReply(request, "0123456789", "\"v1\"");
  });
  ASSERT_TRUE(Get(server).ok());
  ExpectComplete("0123456789");
  EXPECT_THAT(waits_ms_, ElementsAre(500, 30000, 2000));
  EXPECT_THAT(notes_, ElementsAre("the server answered 503; again in 0.5 s",
                                  "the server answered 429; again in 30 s",
                                  "the server answered 500; again in 2 s"));
}

TEST_F(DownloadTest, DoesNotWaitForHours) {
  const HttpServer server([](const HttpRequest&) {
    return HttpReply{.status = 429, .headers = {{"Retry-After", "3600"}}};
  });
  EXPECT_EQ(Failure(server),
            "URL/model.gguf: the server answered 429, and wants to be left alone for 3600 s, "
            "wanted the same command again by then");
  EXPECT_THAT(waits_ms_, IsEmpty());
  ExpectNoPart();
}

TEST_F(DownloadTest, SaysWhatTheStatusMeans) {
  int status = 0;
  const HttpServer server([&](const HttpRequest&) { return HttpReply{.status = status}; });
  const auto failure = [&](int of, const std::string& token = {}) {
    status = of;
    request_.token = token;
    return Failure(server);
  };
  EXPECT_EQ(failure(401),
            "URL/model.gguf: 401: private, gated or not there, wanted an access token, or another "
            "name");
  EXPECT_EQ(failure(401, "secret"),
            "URL/model.gguf: 401: the access token is not accepted, wanted a valid one");
  EXPECT_EQ(failure(403),
            "URL/model.gguf: 403: gated or private, wanted its terms accepted on its page, and the "
            "access token of who accepted them");
  EXPECT_EQ(failure(404), "URL/model.gguf: 404: not there");
  EXPECT_EQ(failure(418), "URL/model.gguf: the server answered 418, wanted 200");
  EXPECT_EQ(failure(304), "URL/model.gguf: the server answered 304, wanted 200");
  EXPECT_EQ(server.requests().size(), 6u);
  ExpectNoPart();
}

TEST_F(DownloadTest, RefusesSizesThatDoNotFit) {
  HttpReply reply;
  const HttpServer server([&](const HttpRequest&) { return reply; });
  reply = {.headers = {{"X-Linked-Size", "11"}}, .body = "0123456789"};
  EXPECT_EQ(Failure(server), "URL/model.gguf: 10 bytes, wanted 11");
  reply = {.headers = {{"X-Linked-Size", "11"}}, .body = "0123456789", .is_chunked = true};
  EXPECT_EQ(Failure(server), "URL/model.gguf: 10 bytes, wanted 11");
  reply.headers = {{"X-Linked-Size", "9"}};
  EXPECT_EQ(Failure(server),
            "URL/model.gguf: more than 9 bytes, wanted not more than were announced");
  request_.size = 12;
  reply = {.body = "0123456789"};
  EXPECT_EQ(Failure(server), "URL/model.gguf: 10 bytes, wanted 12");
  // Claims less than it sends: a file of the claimed length, as far as HTTP goes.
  request_.size = std::nullopt;
  request_.sha256 = Sha256Hex("0123456789");
  reply = {.body = "0123456789", .claimed_length = 4};
  EXPECT_EQ(Failure(server),
            "URL/model.gguf: sha256 " + Sha256Hex("0123") + ", wanted " + Sha256Hex("0123456789"));
  ExpectNoPart();
}

TEST_F(DownloadTest, GivesUpOnMoreBytesThanThereAre) {
  // Says 20 and has 10: a connection that breaks, then nothing to go on with.
  const HttpServer server([](const HttpRequest& request) {
    HttpReply reply = FileReply(request, "0123456789", "\"v1\"");
    if (reply.status == 200) {
      reply.claimed_length = 20;
    }
    return reply;
  });
  EXPECT_THAT(Failure(server), StartsWith("URL/model.gguf: given up after 6 tries ("));
}

TEST_F(DownloadTest, RefusesRangesThatDoNotFit) {
  std::string range;
  std::optional<uint64_t> length;
  const HttpServer server([&](const HttpRequest& request) {
    HttpReply reply = FileReply(request, "0123456789", "\"v1\"");
    if (reply.status == 206) {
      reply.headers = {{"Content-Range", range}};
    } else {
      reply.cut_after = 4;
    }
    return reply;
  });
  for (const std::string text :
       {"bytes 3-9/10", "bytes 5-9/10", "bytes 4-8/10", "bytes 4-9/9", "bytes 4-3/4",
        "bytes 4-10/11", "bytes */10", "bytes 4-9", "", "4-9/10", "bytes 4-99999999999999999999/10",
        "bytes 4-18446744073709551615/*", "bytes -4-9/10"}) {
    range = text;
    EXPECT_EQ(Failure(server),
              "URL/model.gguf: Content-Range \"" + text + "\", wanted bytes from 4 to the end");
    // What came stays: a server that answers well completes it.
    EXPECT_EQ(testing::ReadOrDie(path_ + ".part"), "0123");
  }
  range = "bytes 4-9/*";
  EXPECT_TRUE(Get(server).ok());
  ExpectComplete("0123456789");
}

TEST_F(DownloadTest, RefusesWhatIsNoFile) {
  HttpReply reply{.headers = {{"Content-Type", "text/html; charset=utf-8"}}, .body = "<html>"};
  const HttpServer server([&](const HttpRequest&) { return reply; });
  EXPECT_EQ(Failure(server),
            "URL/model.gguf: a web page (text/html), wanted a file (where a file's page has /blob/ "
            "in its URL, the file has /resolve/)");
  reply.headers = {{"Content-Encoding", "gzip"}};
  EXPECT_EQ(Failure(server), "URL/model.gguf: Content-Encoding \"gzip\", wanted none");
  reply = {.status = 206, .headers = {{"Content-Range", "bytes 0-5/6"}}, .body = "<html>"};
  EXPECT_EQ(Failure(server), "URL/model.gguf: Content-Range \"bytes 0-5/6\", wanted none");
  ExpectNoPart();
}

TEST_F(DownloadTest, RefusesWhatTheDiskHasNoRoomFor) {
  const HttpServer server([](const HttpRequest&) {
    return HttpReply{.body = "x", .claimed_length = uint64_t{1} << 62};
  });
  EXPECT_THAT(Failure(server),
              ::testing::MatchesRegex("URL/model.gguf: 4611686018427387904 bytes to come, and the "
                                      "disk has [0-9]+ left, wanted more room"));
  ExpectNoPart();
}

TEST_F(DownloadTest, TakesUnknownLengths) {
  const HttpServer server(
      [](const HttpRequest&) { return HttpReply{.body = Content(), .is_chunked = true}; });
  ASSERT_TRUE(Get(server).ok());
  ExpectComplete(Content());
  EXPECT_EQ(n_total_, 0u);
}

TEST_F(DownloadTest, ChecksTheDigest) {
  const HttpServer server([n = 0](const HttpRequest& request) mutable {
    HttpReply reply = FileReply(request, Content(), "\"v1\"");
    reply.cut_after = n++ == 0 ? std::optional<size_t>(1000) : std::nullopt;
    return reply;
  });
  request_.sha256 = Sha256Hex(Content());
  ASSERT_TRUE(Get(server).ok()) << "also over what came before the connection broke";
  ExpectComplete(Content());
  ASSERT_EQ(::unlink(path_.c_str()), 0);
  request_.sha256 = Sha256Hex("other");
  EXPECT_EQ(Failure(server),
            "URL/model.gguf: sha256 " + Sha256Hex(Content()) + ", wanted " + Sha256Hex("other"));
  ExpectNoPart();
}

TEST_F(DownloadTest, ChecksTheDigestThatTheServerAnnounces) {
  std::string announced = "\"" + Sha256Hex("other") + "\"";
  const HttpServer server([&](const HttpRequest& request) {
    if (request.path == "/model.gguf") {
      return HttpReply{.status = 302,
                       .headers = {{"Location", "/blob"}, {"X-Linked-Etag", announced}}};
    }
    return FileReply(request, "0123456789", "\"v1\"");
  });
  EXPECT_EQ(Failure(server),
            "URL/model.gguf: sha256 " + Sha256Hex("0123456789") + ", wanted " + Sha256Hex("other"));
  announced = "\"" + Sha256Hex("0123456789") + "\"";
  EXPECT_TRUE(Get(server).ok());
  ASSERT_EQ(::unlink(path_.c_str()), 0);
  announced = "\"9a0364b9e99bb480dd25e1f0284c8555\"";  // of a small file: no SHA-256
  EXPECT_TRUE(Get(server).ok());
}

TEST_F(DownloadTest, HoldsItsFileAgainstOthers) {
  const HttpServer server([](const HttpRequest&) { return HttpReply{.body = "x"}; });
  {
    auto part = PartFile::Open(path_, "http://x/");
    ASSERT_TRUE(part.ok());
    EXPECT_EQ(Failure(server),
              path_ + ": another process is downloading it, wanted to be its only");
    EXPECT_TRUE(FileExists(path_ + ".part"));
  }
  EXPECT_EQ(server.requests().size(), 0u);
  EXPECT_TRUE(Get(server).ok());
}

TEST_F(DownloadTest, SaysWhenTheServerCannotBeReached) {
  std::string gone;
  {
    const HttpServer closed([](const HttpRequest&) { return HttpReply(); });
    gone = closed.url();
  }
  const Status status = Download({.url = gone + "/x", .path = path_}, hooks_);
  EXPECT_EQ(status.error().Message(), gone + "/x: Couldn't connect to server");
  EXPECT_THAT(waits_ms_, IsEmpty());
  ExpectNoPart();
  EXPECT_EQ(Download({.url = gone + "/x", .path = path_ + "/none/x"}, hooks_).error().Message(),
            path_ + "/none/x.part: cannot create: No such file or directory");
}

TEST_F(DownloadTest, DownloadsTexts) {
  const HttpServer server([n = 0](const HttpRequest& request) mutable {
    if (request.path == "/none") {
      return HttpReply{.status = 404};
    }
    return n++ == 0 ? HttpReply{.body = "text", .cut_after = 2} : HttpReply{.body = "text"};
  });
  const auto text = DownloadText(server.url() + "/a", "secret", 4, hooks_);
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(*text, "text");
  EXPECT_EQ(server.requests()[1].Header("authorization"), "Bearer secret");
  EXPECT_EQ(DownloadText(server.url() + "/a", "", 3, hooks_).error().Message(),
            server.url() + "/a: more than 3 bytes, wanted fewer");
  EXPECT_EQ(DownloadText(server.url() + "/none", "", 3, hooks_).error().Message(),
            server.url() + "/none: 404: not there");
}

}  // namespace
}  // namespace facet
