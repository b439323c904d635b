// SPDX-License-Identifier: Apache-2.0
#include "server/http.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <fstream>

#include "server/http_testing.h"

namespace facet {
namespace {

using testing::BodyOf;
using testing::DecodeChunks;
using testing::Echo;
using testing::Eventually;
using testing::Held;
using testing::TestClient;
using testing::TestServer;

constexpr std::string_view kGet = "GET /a HTTP/1.1\r\nHost: a\r\n\r\n";

std::string Status(std::string_view answer) { return std::string(answer.substr(0, 12)); }

/// An exchange that counts how often its client has gone.
struct Watched {
  std::shared_ptr<HttpExchange> exchange;
  std::shared_ptr<std::atomic<int>> n_closed = std::make_shared<std::atomic<int>>(0);
  explicit Watched(std::shared_ptr<HttpExchange> held) : exchange(std::move(held)) {
    exchange->SetOnClosed([n = n_closed] { ++*n; });
  }
};

std::unique_ptr<HttpServer> ListenOrDie(HttpOptions options) {
  options.port = 0;
  auto server = HttpServer::Listen(std::move(options), Echo, [](int status, std::string_view) {
    return HttpResponse{.status = status};
  });
  EXPECT_TRUE(server.ok()) << server.error().Message();
  return *std::move(server);
}

// ---- Listening ----------------------------------------------------------------------------------

TEST(HttpListen, TellsWhyItCannot) {
  const auto first = ListenOrDie({});
  const auto listen = [](std::string host, uint16_t port) {
    const auto server = HttpServer::Listen({.host = std::move(host), .port = port}, Echo, nullptr);
    return server.ok() ? std::string("ok") : server.error().Message();
  };
  EXPECT_EQ(listen("127.0.0.1", first->port()),
            "127.0.0.1:" + std::to_string(first->port()) +
                ": Address already in use, wanted another port (--port)");
  EXPECT_EQ(listen("localhost", first->port()),
            "localhost:" + std::to_string(first->port()) +
                ": Address already in use, wanted another port (--port)");
  EXPECT_EQ(listen("203.0.113.1", 0),
            "203.0.113.1:0: Cannot assign requested address, wanted an address or name of this "
            "machine (--host)");
  EXPECT_EQ(listen("", 0), "host: nothing, wanted an address or name of this machine (--host)");
  EXPECT_EQ(listen("no host", 80).substr(0, 11), "no host:80:");
  const auto small =
      HttpServer::Listen({.max_body_bytes = 10, .max_buffered_bytes = 9}, Echo, nullptr);
  EXPECT_EQ(small.error().Message(), "max_buffered_bytes: 9, wanted at least max_body_bytes, 10");
}

TEST(HttpListen, ListensAgainAtOnce) {
  uint16_t port = 0;
  {
    TestServer server(Echo);
    port = server.port();
    TestClient client(port);
    client.Send(kGet);
    EXPECT_EQ(Status(client.ReceiveAnswer()), "HTTP/1.1 200");
  }
  const auto again = HttpServer::Listen({.port = port}, Echo, nullptr);
  EXPECT_TRUE(again.ok());
}

TEST(HttpListen, KnowsNamesAndIpv6) {
  EXPECT_NE(ListenOrDie({.host = "localhost"})->port(), 0);
  const auto listen = HttpServer::Listen({.host = "[::1]", .port = 0}, Echo, nullptr);
  if (!listen.ok()) {
    GTEST_SKIP() << "needs IPv6";
  }
  const auto taken = HttpServer::Listen({.host = "::1", .port = (*listen)->port()}, Echo, nullptr);
  EXPECT_EQ(taken.error().where, "[::1]:" + std::to_string((*listen)->port()));
}

// ---- Requests and answers -----------------------------------------------------------------------

TEST(Http, KeepsConnections) {
  TestServer server(Echo);
  TestClient client(server.port());
  for (int i = 0; i < 3; ++i) {
    client.Send("POST /p%20q?x=%31 HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody");
    const std::string answer = client.ReceiveAnswer();
    EXPECT_EQ(Status(answer), "HTTP/1.1 200");
    EXPECT_NE(answer.find("\r\nconnection: keep-alive\r\n"), std::string::npos);
    EXPECT_NE(answer.find("\r\ncontent-type: text/plain\r\n"), std::string::npos);
    EXPECT_EQ(BodyOf(answer), "POST /p q?x=%31\nbody");
  }
  EXPECT_EQ(server->n_connections(), 1u);
}

TEST(Http, ClosesWhenTheClientWants) {
  TestServer server(Echo);
  TestClient closing(server.port());
  closing.Send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  EXPECT_NE(closing.ReceiveAll().find("\r\nconnection: close\r\n"), std::string::npos);
  TestClient old(server.port());
  old.Send("GET / HTTP/1.0\r\n\r\n");
  EXPECT_EQ(BodyOf(old.ReceiveAll()), "GET /?\n");
  TestClient old_kept(server.port());
  for (int i = 0; i < 2; ++i) {
    old_kept.Send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    EXPECT_NE(old_kept.ReceiveAnswer().find("\r\nconnection: keep-alive\r\n"), std::string::npos);
  }
}

TEST(Http, HandsOverWhatCame) {
  Held held;
  TestServer server(held.handler());
  TestClient client(server.port());
  client.Send("BREW /pot HTTP/1.1\r\nHost: a\r\nX-Kind: Earl Grey\r\nx-kind: b\r\n\r\n");
  held.Next()->Respond({.status = 204, .headers = {{"x-a", "b"}}});
  const std::string answer = client.ReceiveAnswer();
  EXPECT_EQ(Status(answer), "HTTP/1.1 204");
  EXPECT_NE(answer.find("\r\nx-a: b\r\n"), std::string::npos);
  EXPECT_EQ(answer.find("content-length"), std::string::npos);
  const HttpRequest request = held.request(0);
  EXPECT_EQ(request.method, "BREW");
  EXPECT_EQ(*request.Header("x-kind"), "Earl Grey");
  EXPECT_EQ(request.Header("x-none"), nullptr);
  EXPECT_EQ(request.peer.substr(0, 10), "127.0.0.1:");
}

TEST(Http, AnswersHeadWithoutABody) {
  TestServer server(Echo);
  TestClient client(server.port());
  client.Send("HEAD /a HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_TRUE(client.ReceiveUntil("\r\n\r\n"));
  EXPECT_NE(client.received.find("\r\ncontent-length: 9\r\n"), std::string::npos);
  EXPECT_EQ(BodyOf(client.received), "");
  client.received.clear();
  client.Send("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(BodyOf(client.ReceiveAnswer()), "OPTIONS *?\n");
}

TEST(Http, ReadsByteByByte) {
  TestServer server(Echo);
  TestClient client(server.port());
  const std::string_view request =
      "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
      "4\r\nbody\r\n5;a=b\r\n, yes\r\n0\r\nt: u\r\n\r\n";
  for (size_t i = 0; i < request.size(); ++i) {
    client.Send(request.substr(i, 1));
  }
  EXPECT_EQ(BodyOf(client.ReceiveAnswer()), "POST /x?\nbody, yes");
}

TEST(Http, SaysContinue) {
  TestServer server(Echo);
  TestClient client(server.port());
  client.Send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n");
  ASSERT_TRUE(client.ReceiveUntil("HTTP/1.1 100 Continue\r\n\r\n"));
  client.received.clear();
  client.Send("body");
  EXPECT_EQ(BodyOf(client.ReceiveAnswer()), "POST /?\nbody");
  client.Send(
      "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999\r\n"
      "Expect: 100-continue\r\n\r\n");
  EXPECT_EQ(Status(client.ReceiveAll()), "HTTP/1.1 413");
}

TEST(Http, ReadsNoBodyThatIsNotWanted) {
  Held held;
  TestServer server(held.handler(), {}, [](const HttpRequest& head) {
    return head.path == "/yes" && *head.Header("content-length") == "4";
  });
  const std::string_view headers =
      " HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n";
  TestClient wanted(server.port());
  wanted.Send("POST /yes" + std::string(headers));
  ASSERT_TRUE(wanted.ReceiveUntil("100 Continue\r\n\r\n"));
  wanted.Send("body");
  held.Next()->Respond({});
  EXPECT_EQ(held.request(0).body, "body");
  TestClient unwanted(server.port());
  unwanted.Send("POST /no" + std::string(headers));
  held.Next()->Respond({.status = 401, .body = "no"});
  unwanted.Send("body");  // sent all the same: not the next request
  EXPECT_EQ(Status(unwanted.ReceiveAll()), "HTTP/1.1 401");
  EXPECT_EQ(BodyOf(unwanted.received), "no");
  EXPECT_NE(unwanted.received.find("\r\nconnection: close\r\n"), std::string::npos);
  EXPECT_EQ(held.n_requests(), 2u);
  EXPECT_EQ(held.request(1).path, "/no");
  EXPECT_EQ(held.request(1).body, "");
}

TEST(Http, SendsLargeBodiesBothWays) {
  TestServer server(Echo);
  TestClient client(server.port());
  const std::string body(size_t{3} << 20, 'b');
  client.Send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(body.size()) +
              "\r\n\r\n" + body);
  EXPECT_TRUE(BodyOf(client.ReceiveAnswer()) == "POST /?\n" + body);
}

TEST(Http, SendsTheAnswerInProgressAndNoPipelinedOne) {
  Held held;
  TestServer server(held.handler());
  TestClient together(server.port());
  together.Send(std::string(kGet) + std::string(kGet));
  held.Next()->Respond({.body = "one"});
  EXPECT_EQ(BodyOf(together.ReceiveAll()), "one");
  EXPECT_NE(together.received.find("\r\nconnection: close\r\n"), std::string::npos);
  TestClient later(server.port());
  later.Send(kGet);
  const auto exchange = held.Next();
  exchange->StartStream({});
  ASSERT_TRUE(later.ReceiveUntil("\r\n\r\n"));
  later.Send(kGet);
  exchange->Write("data: x\n\n");
  exchange->EndStream();
  EXPECT_EQ(DecodeChunks(BodyOf(later.ReceiveAll())), "data: x\n\n");
  EXPECT_EQ(held.n_requests(), 2u);
}

TEST(Http, Answers500WhenNobodyAnswers) {
  TestServer server([](const HttpRequest&, const std::shared_ptr<HttpExchange>&) {});
  TestClient client(server.port());
  for (int i = 0; i < 2; ++i) {
    client.Send(kGet);
    const std::string answer = client.ReceiveAnswer();
    EXPECT_EQ(Status(answer), "HTTP/1.1 500");
    EXPECT_EQ(BodyOf(answer), "error: the request was not answered");
  }
}

// ---- Limits -------------------------------------------------------------------------------------

TEST(HttpLimits, RefusesLargeBodiesBeforeReadingThem) {
  Held held;
  TestServer server(held.handler(), {.max_body_bytes = 10});
  TestClient told(server.port());
  told.Send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n");
  EXPECT_EQ(Status(told.ReceiveAll()), "HTTP/1.1 413");
  EXPECT_EQ(BodyOf(told.received), "error: body: more than 10 bytes");
  // A client that has sent much already still gets the answer, not a reset.
  TestClient grown(server.port());
  grown.Send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n" +
             std::string(100'000, 'x'));
  EXPECT_EQ(Status(grown.ReceiveAll()), "HTTP/1.1 413");
  EXPECT_EQ(held.n_requests(), 0u);
}

TEST(HttpLimits, RefusesLargeHeaders) {
  TestServer server(Echo, {.max_header_bytes = 200});
  TestClient client(server.port());
  client.Send("GET / HTTP/1.1\r\nHost: a\r\nA: " + std::string(200, 'a'));
  EXPECT_EQ(BodyOf(client.ReceiveAll()), "error: headers: more than 200 bytes");
  EXPECT_EQ(Status(client.received), "HTTP/1.1 431");
}

TEST(HttpLimits, TellsThatThereAreTooManyConnections) {
  TestServer server(Echo, {.max_connections = 2});
  TestClient first(server.port());
  TestClient second(server.port());
  ASSERT_TRUE(Eventually([&] { return server->n_connections() == 2; }));
  TestClient third(server.port());
  third.Send(kGet);
  EXPECT_EQ(Status(third.ReceiveAll()), "HTTP/1.1 503");
  EXPECT_EQ(BodyOf(third.received), "error: more than 2 connections");
  third.Close();
  first.Close();
  ASSERT_TRUE(Eventually([&] { return server->n_connections() == 1; }));
  TestClient fourth(server.port());
  fourth.Send(kGet);
  EXPECT_EQ(Status(fourth.ReceiveAnswer()), "HTTP/1.1 200");
}

TEST(HttpLimits, WaitsForDescriptors) {
  TestServer server(Echo);
  const int lowest_free = ::dup(STDERR_FILENO);
  ::close(lowest_free);
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlim_t before = std::exchange(limit.rlim_cur, static_cast<rlim_t>(lowest_free) + 1);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  TestClient client(server.port());  // takes the last one
  client.Send(kGet);
  pollfd wait{client.fd(), POLLIN, 0};
  EXPECT_EQ(::poll(&wait, 1, 100), 0);
  limit.rlim_cur = before;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(Status(client.ReceiveAnswer()), "HTTP/1.1 200");
}

TEST(HttpLimits, EndsConnectionsThatAreIdleTooLong) {
  TestServer server(Echo, {.idle_timeout_s = 0.5});
  TestClient client(server.port());
  client.Send(kGet);
  EXPECT_EQ(Status(client.ReceiveAnswer()), "HTTP/1.1 200");
  EXPECT_EQ(client.ReceiveAll(), "");
  EXPECT_FALSE(client.timed_out);
}

TEST(HttpLimits, EndsSlowHeaders) {
  TestServer server(Echo, {.header_timeout_s = 0.3});
  TestClient client(server.port());
  const auto start = std::chrono::steady_clock::now();
  // A byte now and then does not help.
  client.Send("GET / HTTP/1.1\r\nHost: a\r\nx: ");
  pollfd wait{client.fd(), POLLIN, 0};
  int n_sent = 0;
  while (::poll(&wait, 1, 20) == 0 && ++n_sent < 1000) {
    client.Send("y");
  }
  EXPECT_EQ(BodyOf(client.ReceiveAll()), "error: the request's headers did not come in time");
  EXPECT_EQ(Status(client.received), "HTTP/1.1 408");
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(300));
}

TEST(HttpLimits, EndsSlowBodies) {
  TestServer server(Echo, {.body_timeout_s = 0.1});
  TestClient client(server.port());
  client.Send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nab");
  EXPECT_EQ(BodyOf(client.ReceiveAll()), "error: the request's body did not come in time");
  EXPECT_EQ(Status(client.received), "HTTP/1.1 408");
}

std::string PostOf(size_t n_bytes) {
  return "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(n_bytes) + "\r\n\r\n" +
         std::string(n_bytes, 'b');
}

TEST(HttpLimits, HoldsBodiesUpToASum) {
  Held held;
  TestServer server(held.handler(), {.max_body_bytes = 400'000, .max_buffered_bytes = 600'000});
  TestClient first(server.port());
  first.Send(PostOf(400'000));
  auto exchange = held.Next();
  TestClient second(server.port());
  second.Send(PostOf(300'000));
  EXPECT_EQ(Status(second.ReceiveAll()), "HTTP/1.1 503");
  EXPECT_EQ(BodyOf(second.received), "error: the server holds too many bodies and answers");
  TestClient without(server.port());
  without.Send(kGet);
  held.Next()->Respond({.body = "small"});
  EXPECT_EQ(BodyOf(without.ReceiveAnswer()), "small");
  // The client's leave does not end it: the handler has the body.
  first.Reset();
  ASSERT_TRUE(Eventually([&] { return server->n_connections() <= 2; }));
  TestClient third(server.port());
  third.Send(PostOf(300'000));
  EXPECT_EQ(Status(third.ReceiveAll()), "HTTP/1.1 503");
  exchange.reset();
  TestClient fourth(server.port());
  fourth.Send(PostOf(300'000));
  held.Next()->Respond({.body = "taken"});
  EXPECT_EQ(BodyOf(fourth.ReceiveAnswer()), "taken");
}

TEST(HttpLimits, LetsAnswersTakeTheirTime) {
  Held held;
  TestServer server(held.handler(),
                    {.header_timeout_s = 0.05, .body_timeout_s = 0.05, .write_timeout_s = 0.05});
  TestClient client(server.port());
  client.Send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\na");
  const Watched watched(held.Next());
  pollfd wait{client.fd(), POLLIN, 0};
  EXPECT_EQ(::poll(&wait, 1, 200), 0);
  watched.exchange->Respond({.body = "late"});
  EXPECT_EQ(BodyOf(client.ReceiveAnswer()), "late");
  EXPECT_EQ(*watched.n_closed, 0);
}

// ---- Streams ------------------------------------------------------------------------------------

TEST(HttpStream, SendsChunksAsTheyCome) {
  Held held;
  TestServer server(held.handler());
  TestClient client(server.port());
  for (int i = 0; i < 2; ++i) {
    client.Send(kGet);
    const Watched watched(held.Next());
    watched.exchange->StartStream({{"x-id", "7"}});
    ASSERT_TRUE(client.ReceiveUntil("\r\n\r\n"));
    watched.exchange->Write("data: 1\n\n");
    ASSERT_TRUE(client.ReceiveUntil("9\r\ndata: 1\n\n\r\n"));
    watched.exchange->Write("data: 2\n\n");
    watched.exchange->EndStream();
    watched.exchange->Write("late");
    ASSERT_TRUE(client.ReceiveUntil("0\r\n\r\n"));
    for (const char* header : {"content-type: text/event-stream; charset=utf-8",
                               "transfer-encoding: chunked", "cache-control: no-cache",
                               "x-accel-buffering: no", "x-id: 7", "connection: keep-alive"}) {
      EXPECT_NE(client.received.find(std::string("\r\n") + header + "\r\n"), std::string::npos)
          << header;
    }
    EXPECT_EQ(DecodeChunks(BodyOf(client.received)), "data: 1\n\ndata: 2\n\n");
    client.received.clear();
    EXPECT_EQ(*watched.n_closed, 0);
  }
}

TEST(HttpStream, EndsWithTheConnectionForOldClients) {
  Held held;
  TestServer server(held.handler());
  TestClient client(server.port());
  client.Send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  const auto exchange = held.Next();
  exchange->StartStream({});
  exchange->Write("data: 1\n\n");
  exchange->Write("data: 2\n\n");
  exchange->EndStream();
  EXPECT_EQ(BodyOf(client.ReceiveAll()), "data: 1\n\ndata: 2\n\n");
  EXPECT_EQ(client.received.find("transfer-encoding"), std::string::npos);
  EXPECT_NE(client.received.find("\r\nconnection: close\r\n"), std::string::npos);
}

TEST(HttpStream, IsEmptyForHead) {
  Held held;
  TestServer server(held.handler());
  TestClient client(server.port());
  client.Send("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
  const auto exchange = held.Next();
  exchange->StartStream({});
  exchange->Write("data: 1\n\n");
  exchange->EndStream();
  ASSERT_TRUE(client.ReceiveUntil("\r\n\r\n"));
  client.Send(kGet);
  held.Next()->Respond({.body = "next"});
  ASSERT_TRUE(client.ReceiveUntil("next"));
  EXPECT_EQ(client.received.find("data: 1"), std::string::npos);
}

TEST(HttpStream, BeatsWhileItIsSilent) {
  Held held;
  TestServer server(held.handler(), {.heartbeat_s = 0.05});
  TestClient client(server.port());
  client.Send(kGet);
  const auto exchange = held.Next();
  exchange->StartStream({});
  ASSERT_TRUE(client.ReceiveUntil("4\r\n: \n\n\r\n4\r\n: \n\n\r\n"));
  exchange->EndStream();
  ASSERT_TRUE(client.ReceiveUntil("0\r\n\r\n"));
  EXPECT_EQ(DecodeChunks(BodyOf(client.received)).substr(0, 8), ": \n\n: \n\n");
}

TEST(HttpStream, IsCutWhenItsWriterLeaves) {
  Held held;
  TestServer server(held.handler());
  TestClient client(server.port());
  client.Send(kGet);
  auto exchange = held.Next();
  exchange->StartStream({});
  exchange->Write("data: 1\n\n");
  exchange.reset();
  EXPECT_EQ(client.ReceiveAll().find("0\r\n\r\n"), std::string::npos);
  EXPECT_FALSE(client.timed_out);
}

TEST(HttpStream, NoticesClientsThatGo) {
  Held held;
  TestServer server(held.handler());
  const auto go = [&](const std::function<void(TestClient&)>& leave, bool streams) {
    TestClient client(server.port());
    client.Send(kGet);
    const Watched watched(held.Next());
    if (streams) {
      watched.exchange->StartStream({});
      watched.exchange->Write("data: 1\n\n");
      EXPECT_TRUE(client.ReceiveUntil("data: 1"));
    }
    EXPECT_EQ(*watched.n_closed, 0);
    leave(client);
    EXPECT_TRUE(Eventually([&] { return *watched.n_closed == 1; }));
    watched.exchange->Respond({});
    watched.exchange->Write("more");
    watched.exchange->EndStream();
  };
  for (const bool streams : {false, true}) {
    go([](TestClient& client) { client.Close(); }, streams);
    go([](TestClient& client) { client.Reset(); }, streams);
    go([](TestClient& client) { client.EndSending(); }, streams);
  }
  EXPECT_TRUE(Eventually([&] { return server->n_connections() == 0; }));
}

/// Writes to a client that does not read until it is dropped; how many bytes it took.
size_t FillUntilDropped(const Watched& watched, const std::string& piece) {
  size_t n_written = 0;
  watched.exchange->StartStream({});
  const bool dropped = Eventually([&] {
    watched.exchange->Write(piece);
    n_written += piece.size();
    return *watched.n_closed == 1;
  });
  EXPECT_TRUE(dropped);
  return n_written;
}

TEST(HttpStream, DropsClientsThatLagBehind) {
  Held held;
  TestServer server(held.handler(), {.max_unsent_bytes = size_t{256} << 10});
  TestClient lagging(server.port(), 4096);
  lagging.Send(kGet);
  const Watched lags(held.Next());
  TestClient other(server.port());
  other.Send(kGet);
  const auto others = held.Next();
  others->StartStream({});
  const std::string piece(size_t{32} << 10, 'x');
  const size_t n_written = FillUntilDropped(lags, piece);
  // What the system's buffers hold, the limit, and what was said before the news came round.
  EXPECT_LE(n_written, size_t{64} << 20);
  others->Write("data: on\n\n");
  EXPECT_TRUE(other.ReceiveUntil("data: on"));
  EXPECT_EQ(server->n_connections(), 1u);
}

TEST(HttpStream, DropsClientsThatLagWhileOthersHoldTheSum) {
  Held held;
  TestServer server(held.handler(), {.max_body_bytes = 400'000,
                                     .max_unsent_bytes = size_t{1} << 30,
                                     .max_buffered_bytes = 600'000});
  TestClient holding(server.port());
  holding.Send(PostOf(400'000));
  const auto exchange = held.Next();
  TestClient lagging(server.port(), 4096);
  lagging.Send(kGet);
  const size_t n_written =
      FillUntilDropped(Watched(held.Next()), std::string(size_t{32} << 10, 'x'));
  EXPECT_LE(n_written, size_t{64} << 20);
}

TEST(HttpStream, DropsClientsThatTakeTheEndTooSlowly) {
  Held held;
  TestServer server(held.handler(), {.write_timeout_s = 0.2});
  TestClient slow(server.port(), 4096);
  slow.Send(kGet);
  const Watched watched(held.Next());
  watched.exchange->StartStream({});
  watched.exchange->Write(std::string(size_t{32} << 20, 'x'));
  watched.exchange->EndStream();
  char buffer[512];
  EXPECT_TRUE(Eventually([&] {
    (void)::recv(slow.fd(), buffer, sizeof(buffer), MSG_DONTWAIT);
    return *watched.n_closed == 1;
  }));
}

TEST(HttpStream, DropsClientsThatTakeNothing) {
  Held held;
  TestServer server(held.handler(), {.write_timeout_s = 0.2, .max_unsent_bytes = size_t{1} << 30});
  TestClient stuck(server.port(), 4096);
  stuck.Send(kGet);
  const Watched watched(held.Next());
  watched.exchange->Respond({.body = std::string(size_t{16} << 20, 'x')});
  EXPECT_TRUE(Eventually([&] { return *watched.n_closed == 1; }));
  // The client sees that it did not get the whole.
  EXPECT_LT(stuck.ReceiveAll().size(), size_t{16} << 20);
  EXPECT_FALSE(stuck.timed_out);
}

TEST(HttpStream, TakesALargePieceFromAFreshWriter) {
  Held held;
  TestServer server(held.handler(), {.max_unsent_bytes = 1000});
  TestClient client(server.port());
  client.Send(kGet);
  const Watched watched(held.Next());
  watched.exchange->StartStream({});
  ASSERT_TRUE(client.ReceiveUntil("\r\n\r\n"));
  const std::string piece(size_t{4} << 20, 'x');
  watched.exchange->Write(piece);
  while (client.received.size() < piece.size() && client.Receive()) {
  }
  EXPECT_GE(client.received.size(), piece.size());
  EXPECT_EQ(*watched.n_closed, 0);
}

/// Resident memory of this process in bytes.
size_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  size_t n_pages = 0;
  file >> n_pages >> n_pages;
  return n_pages * 4096;
}

TEST(HttpStream, ServesFiveHundredAtOnce) {
  constexpr int kClients = 500;
  constexpr int kEvents = 20;
  Held held;
  TestServer server(held.handler());
  std::vector<std::unique_ptr<TestClient>> clients;
  clients.reserve(kClients);
  const size_t before = ResidentBytes();
  for (int i = 0; i < kClients; ++i) {
    clients.push_back(std::make_unique<TestClient>(server.port()));
    ASSERT_TRUE(clients.back()->is_connected());
  }
  ASSERT_TRUE(Eventually([&] { return server->n_connections() == kClients; }));
  RecordProperty("bytes_per_idle_connection",
                 std::to_string((ResidentBytes() - before) / kClients));
  for (const auto& client : clients) {
    client->Send(kGet);
  }
  std::vector<Watched> watched;
  watched.reserve(kClients);
  for (int i = 0; i < kClients; ++i) {
    watched.emplace_back(held.Next());
    watched.back().exchange->StartStream({});
  }
  std::string expected;
  for (int event = 0; event < kEvents; ++event) {
    const std::string text = "data: " + std::to_string(event) + "\n\n";
    expected += text;
    for (const Watched& one : watched) {
      one.exchange->Write(text);
    }
  }
  for (const Watched& one : watched) {
    one.exchange->EndStream();
  }
  for (const auto& client : clients) {
    ASSERT_TRUE(client->ReceiveUntil("0\r\n\r\n"));
    EXPECT_EQ(DecodeChunks(BodyOf(client->received)), expected);
  }
  for (const Watched& one : watched) {
    EXPECT_EQ(*one.n_closed, 0);
  }
  RecordProperty("bytes_per_stream", std::to_string((ResidentBytes() - before) / kClients));
}

// ---- The end ------------------------------------------------------------------------------------

TEST(HttpStop, LetsAnswersEnd) {
  Held held;
  TestServer server(held.handler());
  TestClient idle(server.port());
  TestClient streaming(server.port());
  streaming.Send(kGet);
  const Watched stream(held.Next());
  stream.exchange->StartStream({});
  ASSERT_TRUE(streaming.ReceiveUntil("\r\n\r\n"));
  TestClient waiting(server.port());
  waiting.Send(kGet);
  const Watched answer(held.Next());
  server->Stop(1000);
  EXPECT_EQ(idle.ReceiveAll(), "");
  EXPECT_FALSE(server.has_ended());
  stream.exchange->Write("data: last\n\n");
  stream.exchange->EndStream();
  answer.exchange->Respond({.body = "answer"});
  EXPECT_EQ(DecodeChunks(BodyOf(streaming.ReceiveAll())), "data: last\n\n");
  EXPECT_EQ(BodyOf(waiting.ReceiveAll()), "answer");
  EXPECT_NE(waiting.received.find("\r\nconnection: close\r\n"), std::string::npos);
  streaming.Close();
  waiting.Close();
  server.Join();
  EXPECT_EQ(*stream.n_closed + *answer.n_closed, 0);
  EXPECT_FALSE(TestClient(server.port()).is_connected());
}

TEST(HttpStop, CutsAtTheDeadline) {
  Held held;
  TestServer server(held.handler());
  TestClient client(server.port());
  client.Send(kGet);
  const Watched watched(held.Next());
  watched.exchange->StartStream({});
  ASSERT_TRUE(client.ReceiveUntil("\r\n\r\n"));
  const auto start = std::chrono::steady_clock::now();
  server->Stop(0.1);
  server.Join();
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(100));
  EXPECT_EQ(*watched.n_closed, 1);
  EXPECT_EQ(DecodeChunks(BodyOf(client.ReceiveAll())), "<BROKEN>");
}

TEST(HttpStop, ComesSoonerWhenAskedAgain) {
  Held held;
  TestServer server(held.handler());
  TestClient client(server.port());
  client.Send(kGet);
  const Watched watched(held.Next());
  server->Stop(1000);
  server->Stop(2000);
  server->Stop(0);
  server.Join();
  EXPECT_EQ(*watched.n_closed, 1);
}

TEST(HttpStop, MayComeBeforeRun) {
  const auto server = ListenOrDie({});
  server->Stop(1);
  server->Run();
  EXPECT_EQ(server->n_connections(), 0u);
}

TEST(HttpStop, LeavesExchangesHarmless) {
  Held held;
  std::unique_ptr<Watched> streaming;
  std::unique_ptr<Watched> silent;
  {
    TestServer server(held.handler());
    TestClient first(server.port());
    first.Send(kGet);
    streaming = std::make_unique<Watched>(held.Next());
    streaming->exchange->StartStream({});
    TestClient second(server.port());
    second.Send(kGet);
    silent = std::make_unique<Watched>(held.Next());
    server->Stop(0);
    server.Join();
    streaming->exchange->Write("to a stopped server");
  }
  streaming->exchange->Write("to none");
  streaming->exchange->EndStream();
  silent->exchange->Respond({});
  EXPECT_EQ(*streaming->n_closed, 1);
  EXPECT_EQ(*silent->n_closed, 1);
  int n_at_once = 0;
  silent->exchange->SetOnClosed([&n_at_once] { ++n_at_once; });
  EXPECT_EQ(n_at_once, 1);
}

TEST(HttpThreads, MayAllTalkAtOnce) {
  constexpr int kThreads = 4;
  constexpr int kRequests = 50;
  std::vector<std::thread> writers;
  std::mutex mutex;
  TestServer server([&](const HttpRequest& request, std::shared_ptr<HttpExchange> exchange) {
    const bool drops = request.path == "/drop";
    std::thread writer([exchange = std::move(exchange), drops] {
      exchange->SetOnClosed([] {});
      exchange->StartStream({});
      for (int i = 0; i < 20; ++i) {
        exchange->Write("data: x\n\n");
      }
      if (!drops) {
        exchange->EndStream();
      }
    });
    const std::lock_guard lock(mutex);
    writers.push_back(std::move(writer));
  });
  std::vector<std::thread> clients;
  clients.reserve(kThreads);
  for (int thread = 0; thread < kThreads; ++thread) {
    clients.emplace_back([&server, thread] {
      for (int i = 0; i < kRequests; ++i) {
        TestClient client(server.port());
        const bool drops = i % 5 == thread;
        client.Send(drops ? "GET /drop HTTP/1.1\r\nHost: a\r\n\r\n" : kGet);
        if (i % 7 == 0) {
          client.Reset();
          continue;
        }
        EXPECT_EQ(client.ReceiveUntil("0\r\n\r\n"), !drops);
      }
    });
  }
  for (std::thread& client : clients) {
    client.join();
  }
  server->Stop(0);
  server.Join();
  for (std::thread& writer : writers) {
    writer.join();
  }
}

}  // namespace
}  // namespace facet
