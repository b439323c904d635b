// SPDX-License-Identifier: Apache-2.0
#include "net/fetch.h"

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "support/http_server.h"

namespace facet {
namespace {

using testing::HttpReply;
using testing::HttpRequest;
using testing::HttpServer;
using Kind = FetchResult::Kind;

struct Taken {
  FetchResult result;
  std::string body;
  int n_heads = 0;
};

Taken Get(const FetchRequest& request) {
  Taken taken;
  taken.result = Fetch(request, {.on_head =
                                     [&](const FetchHead&) {
                                       ++taken.n_heads;
                                       return Status();
                                     },
                                 .on_body = [&](std::span<const std::byte> bytes) -> Status {
                                   EXPECT_EQ(taken.n_heads, 1);
                                   taken.body += AsText(bytes);
                                   return {};
                                 }});
  return taken;
}

HttpReply RedirectTo(const std::string& url, int status = 302) {
  return {.status = status, .headers = {{"Location", url}}, .body = "moved"};
}

TEST(Fetch, GivesHeadAndBody) {
  const HttpServer server([](const HttpRequest&) {
    return HttpReply{.headers = {{"ETag", "\"v1\""},
                                 {"Last-Modified", "Mon, 30 Nov 2026 00:00:00 GMT"},
                                 {"CONTENT-TYPE", "application/octet-stream"},
                                 {"X-Linked-Size", "5"}},
                     .body = "hello"};
  });
  const Taken taken = Get({.url = server.url() + "/a?b=c"});
  EXPECT_EQ(taken.result.kind, Kind::kDone);
  EXPECT_EQ(taken.body, "hello");
  const FetchHead& head = taken.result.head;
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.etag, "\"v1\"");
  EXPECT_EQ(head.last_modified, "Mon, 30 Nov 2026 00:00:00 GMT");
  EXPECT_EQ(head.content_type, "application/octet-stream");
  EXPECT_EQ(head.content_length, 5u);
  EXPECT_EQ(head.linked_size, "5");
  const auto requests = server.requests();
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0].path, "/a?b=c");
  EXPECT_EQ(requests[0].Header("user-agent").substr(0, 6), "facet/");
  EXPECT_EQ(requests[0].Header("range"), "");
  EXPECT_EQ(requests[0].Header("authorization"), "");
  EXPECT_EQ(requests[0].Header("accept-encoding"), "");
}

TEST(Fetch, ReadsChunkedBodiesAndSkipsInterimAnswersAndTrailers) {
  const std::string body(2500, 'x');
  const HttpServer chunked(
      [&](const HttpRequest&) { return HttpReply{.body = body, .is_chunked = true}; });
  const Taken taken = Get({.url = chunked.url() + "/"});
  EXPECT_EQ(taken.body, body);
  EXPECT_FALSE(taken.result.head.content_length.has_value());

  const HttpServer interim([](const HttpRequest&) {
    return HttpReply{.raw =
                         "HTTP/1.1 103 Early\r\nETag: \"early\"\r\n\r\n"
                         "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                         "2\r\nab\r\n0\r\nETag: \"late\"\r\n\r\n"};
  });
  const Taken after = Get({.url = interim.url() + "/"});
  EXPECT_EQ(after.result.kind, Kind::kDone);
  EXPECT_EQ(after.body, "ab");
  EXPECT_EQ(after.n_heads, 1);
  EXPECT_EQ(after.result.head.etag, "");
}

TEST(Fetch, AsksForTheRest) {
  const HttpServer server(
      [](const HttpRequest& request) { return FileReply(request, "0123456789", "\"v1\""); });
  const Taken rest = Get({.url = server.url() + "/f", .offset = 7, .if_range = "\"v1\""});
  EXPECT_EQ(rest.result.head.status, 206);
  EXPECT_EQ(rest.result.head.content_range, "bytes 7-9/10");
  EXPECT_EQ(rest.body, "789");
  EXPECT_EQ(server.requests()[0].Header("if-range"), "\"v1\"");
  EXPECT_EQ(Get({.url = server.url() + "/f", .offset = 7, .if_range = "\"v0\""}).body,
            "0123456789");
  EXPECT_EQ(Get({.url = server.url() + "/f", .offset = 10}).result.head.status, 416);
}

TEST(Fetch, HandsOnTheHeadsOfErrorsAndDropsTheirBodies) {
  const HttpServer server([](const HttpRequest& request) {
    return HttpReply{.status = request.path == "/none" ? 404 : 503,
                     .headers = {{"Retry-After", "7"}},
                     .body = std::string(request.path == "/long" ? 1'000'000 : 10, 'x')};
  });
  const Taken none = Get({.url = server.url() + "/none"});
  EXPECT_EQ(none.result.kind, Kind::kDone);
  EXPECT_EQ(none.result.head.status, 404);
  EXPECT_EQ(none.n_heads, 1);
  EXPECT_EQ(none.body, "");
  const Taken busy = Get({.url = server.url() + "/long"});
  EXPECT_EQ(busy.result.kind, Kind::kDone);
  EXPECT_EQ(busy.result.head.status, 503);
  EXPECT_EQ(busy.result.retry_after_s, 7);
  EXPECT_EQ(busy.body, "");
}

TEST(Fetch, FollowsRedirectsAndKeepsWhatTheySayOfTheFile) {
  const HttpServer server([](const HttpRequest& request) {
    if (request.path == "/a") {
      HttpReply reply = RedirectTo("/b", 307);
      reply.headers.emplace_back("X-Linked-Etag", "\"digest\"");
      reply.headers.emplace_back("ETag", "\"of the redirect\"");
      return reply;
    }
    return HttpReply{.body = "there"};
  });
  const Taken taken = Get({.url = server.url() + "/a"});
  EXPECT_EQ(taken.result.kind, Kind::kDone);
  EXPECT_EQ(taken.body, "there");
  EXPECT_EQ(taken.n_heads, 1);
  EXPECT_EQ(taken.result.head.linked_etag, "\"digest\"");
  EXPECT_EQ(taken.result.head.etag, "");
}

TEST(Fetch, SendsTheTokenToItsOwnServerOnly) {
  const HttpServer other([](const HttpRequest&) { return HttpReply{.body = "file"}; });
  const HttpServer own([&other](const HttpRequest& request) {
    return RedirectTo(request.path == "/a" ? "/b" : other.url() + "/c");
  });
  EXPECT_EQ(Get({.url = own.url() + "/a", .token = "secret"}).body, "file");
  ASSERT_EQ(own.requests().size(), 2u);
  EXPECT_EQ(own.requests()[0].Header("authorization"), "Bearer secret");
  EXPECT_EQ(own.requests()[1].Header("authorization"), "Bearer secret");
  ASSERT_EQ(other.requests().size(), 1u);
  EXPECT_EQ(other.requests()[0].Header("authorization"), "");
}

TEST(Fetch, EndsRedirectsWithoutEnd) {
  const HttpServer server([](const HttpRequest&) { return RedirectTo("/again"); });
  const Taken taken = Get({.url = server.url() + "/a"});
  EXPECT_EQ(taken.result.kind, Kind::kRefused);
  EXPECT_EQ(taken.result.error.Message(),
            server.url() + "/a: more than 10 redirects, wanted the URL that they lead to");
  EXPECT_EQ(server.requests().size(), 11u);
  EXPECT_EQ(taken.n_heads, 0);
}

TEST(Fetch, FollowsToHttpOnly) {
  for (const std::string target : {"file:///etc/passwd", "ftp://127.0.0.1/x", "gopher://h/"}) {
    const HttpServer server([&](const HttpRequest&) { return RedirectTo(target); });
    const Taken taken = Get({.url = server.url() + "/a"});
    EXPECT_EQ(taken.result.kind, Kind::kRefused);
    EXPECT_EQ(taken.result.error.Message(),
              server.url() + "/a: redirect: another scheme, wanted http:// or https://");
    EXPECT_EQ(taken.body, "");
  }
  EXPECT_EQ(Get({.url = "file:///etc/passwd"}).result.error.Message(),
            "file:///etc/passwd: another scheme, wanted http:// or https://");
}

TEST(Fetch, TellsALostConnectionFromNone) {
  const HttpServer server([](const HttpRequest& request) {
    if (request.path == "/silent") {
      return HttpReply{.raw = " "};
    }
    return HttpReply{.body = "0123456789", .cut_after = 4};
  });
  const Taken cut = Get({.url = server.url() + "/cut"});
  EXPECT_EQ(cut.result.kind, Kind::kLost);
  EXPECT_EQ(cut.body, "0123");
  EXPECT_EQ(cut.result.error.Message(),
            server.url() + "/cut: transfer closed with 6 bytes remaining to read");

  std::string gone;
  {
    const HttpServer closed([](const HttpRequest&) { return HttpReply(); });
    gone = closed.url() + "/x";
  }
  const Taken none = Get({.url = gone});
  EXPECT_EQ(none.result.kind, Kind::kUnreachable);
  EXPECT_EQ(none.result.error.Message(), gone + ": Couldn't connect to server");
  EXPECT_EQ(none.n_heads, 0);
}

TEST(Fetch, RefusesPlainTextWhereTlsIsWanted) {
  const HttpServer server([](const HttpRequest&) { return HttpReply(); });
  const std::string url = "https" + server.url().substr(4) + "/x";
  const Taken taken = Get({.url = url});
  EXPECT_EQ(taken.result.kind, Kind::kRefused);
  EXPECT_EQ(taken.body, "");
  EXPECT_EQ(taken.result.error.where, url);
}

TEST(Fetch, EndsWithTheErrorOfItsSink) {
  const HttpServer server([](const HttpRequest&) { return HttpReply{.body = "0123456789"}; });
  const FetchRequest request{.url = server.url() + "/a"};
  const auto accept = [](const FetchHead&) { return Status(); };
  const auto refuse = [](std::span<const std::byte>) -> Status { return Refuse("disk", "full"); };
  const FetchResult body = Fetch(request, {accept, refuse});
  EXPECT_EQ(body.kind, Kind::kRefused);
  EXPECT_EQ(body.error.Message(), "disk: full");
  const FetchResult head =
      Fetch(request, {[](const FetchHead&) -> Status { return Refuse("head", "odd"); }, refuse});
  EXPECT_EQ(head.kind, Kind::kRefused);
  EXPECT_EQ(head.error.Message(), "head: odd");
}

}  // namespace
}  // namespace facet
