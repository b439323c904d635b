// SPDX-License-Identifier: Apache-2.0
// Requests that no client sends in good faith, over the wire: each is answered once with an error
// or not at all, none reaches the handler, and the server goes on.
#include <gtest/gtest.h>

#include <random>

#include "server/http_testing.h"

namespace facet {
namespace {

using testing::Echo;
using testing::TestClient;
using testing::TestServer;

struct Hostile {
  std::string request;
  int status;  ///< 0: the connection ends without an answer
};

std::string WithHost(std::string_view headers) {
  return "GET / HTTP/1.1\r\nHost: a\r\n" + std::string(headers) + "\r\n";
}

std::string Chunked(std::string_view chunks) {
  return "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + std::string(chunks);
}

std::vector<Hostile> HostileLines() {
  using namespace std::string_literals;
  return {
      {"\r\n\r\n", 400},
      {"\n", 400},
      {"\0"s, 400},
      {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"s, 400},  // TLS
      {"GET\r\n\r\n", 400},
      {"GET /\r\n\r\n", 400},
      {"GET / \r\n\r\n", 400},
      {"GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"GET /  HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"GET / HTTP/1.1 \r\nHost: a\r\n\r\n", 400},
      {"GET\t/\tHTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {" GET / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"GET / HTTP/1.1\nHost: a\n\n", 400},
      {"GET / HTTP/1.1\rHost: a\r\r", 400},
      {"GET /\0 HTTP/1.1\r\nHost: a\r\n\r\n"s, 400},
      {"GET /%00 HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"GET /% HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"GET /%0d%0aX:y HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"GET /%ff HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"GET /\xff HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"GET /#a HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"GET a HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"GET * HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"GET http:// HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"GET file:///etc/passwd HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"CONNECT example.com:443 HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"G{T / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505},
      {"GET / HTTP/0.9\r\nHost: a\r\n\r\n", 505},
      {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
      {"GET / HTTP/11\r\nHost: a\r\n\r\n", 400},
      {"GET / HTTP/1.x\r\nHost: a\r\n\r\n", 400},
      {"GET / XTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: a/../b\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: a@b\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400},
      {"GET /" + std::string(40'000, 'a') + " HTTP/1.1\r\nHost: a\r\n\r\n", 431},
      {std::string(40'000, 'A'), 431},
      {"GET / HT", 0},
      {"", 0},
  };
}

std::vector<Hostile> HostileHeaders() {
  using namespace std::string_literals;
  std::string many;
  for (int i = 0; i < 5000; ++i) {
    many += "a:\r\n";
  }
  return {
      {WithHost("a: b\r\n c\r\n"), 400},
      {WithHost("a: b\r\n\tc\r\n"), 400},
      {WithHost("a: b\nc: d\r\n"), 400},
      {WithHost("a: b\rc: d\r\n"), 400},
      {WithHost("a: \0\r\n"s), 400},
      {WithHost("a: \x1b[31m\r\n"), 400},
      {WithHost("a\0b: c\r\n"s), 400},
      {WithHost("no colon\r\n"), 400},
      {WithHost(": no name\r\n"), 400},
      {WithHost("a b: c\r\n"), 400},
      {WithHost("\xc3\xa4: c\r\n"), 400},
      {WithHost(many), 431},
      {WithHost("a: " + std::string(40'000, 'a') + "\r\n"), 431},
      {WithHost("Expect: 200-ok\r\n"), 417},
      {WithHost("Content-Length: 4\r\nTransfer-Encoding: chunked\r\n") + "0\r\n\r\n", 400},
      {WithHost("Transfer-Encoding: chunked\r\nContent-Length: 4\r\n") + "0\r\n\r\n", 400},
      {WithHost("Content-Length: 4\r\nContent-Length: 4\r\n") + "abcd", 400},
      {WithHost("Content-Length: 4\r\nContent-Length: 5\r\n") + "abcde", 400},
      {WithHost("Content-Length: 4, 4\r\n") + "abcd", 400},
      {WithHost("Content-Length: +4\r\n") + "abcd", 400},
      {WithHost("Content-Length: -4\r\n"), 400},
      {WithHost("Content-Length: 4x\r\n") + "abcd", 400},
      {WithHost("Content-Length: 0x4\r\n") + "abcd", 400},
      {WithHost("Content-Length: \r\n"), 400},
      {WithHost("Content-Length: 99999999999999999999\r\n"), 400},
      {WithHost("Content-Length: 18446744073709551615\r\n"), 413},
      {WithHost("Content-Length: 1001\r\n"), 413},
      {WithHost("Transfer-Encoding: xchunked\r\n"), 501},
      {WithHost("Transfer-Encoding: chunked, identity\r\n"), 501},
      {WithHost("Transfer-Encoding: chunked, chunked\r\n"), 501},
      {WithHost("Transfer-Encoding:\r\n"), 501},
      {WithHost("Transfer-Encoding: \"chunked\"\r\n"), 501},
      {WithHost("Transfer-Encoding : chunked\r\n"), 400},
      {WithHost("Transfer-Encoding:\x0b"
                "chunked\r\n"),
       400},
      {"GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
      {WithHost("Content-Length: 4\r\n") + "ab", 0},
  };
}

std::vector<Hostile> HostileChunks() {
  using namespace std::string_literals;
  return {
      {Chunked("\r\n"), 400},
      {Chunked("g\r\n"), 400},
      {Chunked("-1\r\n"), 400},
      {Chunked("0x1\r\na\r\n"), 400},
      {Chunked(" 1\r\na\r\n"), 400},
      {Chunked("1 \r\na\r\n"), 400},
      {Chunked("1\na\r\n"), 400},
      {Chunked("1\ra"), 400},
      {Chunked("1\r\nab\r\n"), 400},
      {Chunked("1\r\na0\r\n\r\n"), 400},
      {Chunked("2\r\na\r\n0\r\n\r\n"), 400},
      {Chunked("0000000000000001\r\na\r\n0\r\n\r\n"), 400},
      {Chunked("10000000000000000\r\n"), 400},
      {Chunked("fffffffffffffff\r\n"), 413},
      {Chunked("3e9\r\n"), 413},
      {Chunked("1;\0\r\na\r\n"s), 400},
      {Chunked("1;" + std::string(40'000, 'x')), 431},
      {Chunked("0\r\nx: " + std::string(40'000, 'x')), 431},
      {Chunked("0\r\na: b\n\r\n"), 400},
      {Chunked("0\r\na: b\rc\r\n\r\n"), 400},
      {Chunked("5\r\nab"), 0},
  };
}

void CheckAlive(const TestServer& server) {
  TestClient client(server.port());
  client.Send("GET /alive HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(testing::BodyOf(client.ReceiveAnswer()), "GET /alive?\n");
}

class HttpHostile : public ::testing::TestWithParam<std::vector<Hostile> (*)()> {};

TEST_P(HttpHostile, IsRefusedOnce) {
  std::atomic<int> n_handled = 0;
  TestServer server(
      [&n_handled](const HttpRequest& request, const std::shared_ptr<HttpExchange>& exchange) {
        ++n_handled;
        Echo(request, exchange);
      },
      {.max_body_bytes = 1000});
  int n_alive = 0;
  for (const Hostile& hostile : GetParam()()) {
    SCOPED_TRACE(hostile.request.substr(0, 100));
    TestClient client(server.port());
    client.Send(hostile.request);
    if (hostile.status == 0) {
      client.EndSending();
    }
    const std::string& answer = client.ReceiveAll();
    EXPECT_FALSE(client.timed_out);
    EXPECT_EQ(answer.substr(0, 13),
              hostile.status == 0 ? "" : "HTTP/1.1 " + std::to_string(hostile.status) + " ");
    EXPECT_EQ(answer.find("HTTP/1.1 ", 1), std::string::npos);
    EXPECT_EQ(n_handled, n_alive);
    CheckAlive(server);
    ++n_alive;
  }
}

INSTANTIATE_TEST_SUITE_P(Corpus, HttpHostile,
                         ::testing::Values(&HostileLines, &HostileHeaders, &HostileChunks));

/// Changes a few bytes: sets, doubles, removes, cuts, or puts in what parsers trip over.
std::string Mutate(std::string text, std::mt19937_64& random) {
  using namespace std::string_literals;
  static const std::vector<std::string> kPieces = {"\r\n",
                                                   "\r",
                                                   "\n",
                                                   "\0"s,
                                                   " ",
                                                   "\t",
                                                   ":",
                                                   ",",
                                                   "%",
                                                   "%00",
                                                   "0",
                                                   "ffffffff",
                                                   "Content-Length: 3\r\n",
                                                   "Transfer-Encoding: chunked\r\n",
                                                   "HTTP/1.1",
                                                   "\xff",
                                                   ";",
                                                   "-1"};
  const auto below = [&random](size_t n) { return static_cast<size_t>(random() % n); };
  const size_t n_changes = 1 + below(4);
  for (size_t i = 0; i < n_changes && !text.empty(); ++i) {
    const size_t at = below(text.size());
    switch (below(5)) {
      case 0:
        text[at] = static_cast<char>(random());
        break;
      case 1:
        text.erase(at, 1 + below(8));
        break;
      case 2:
        text.insert(at, text.substr(at, 1 + below(20)));
        break;
      case 3:
        text.insert(at, kPieces[below(kPieces.size())]);
        break;
      default:
        text.resize(at + 1);
        break;
    }
  }
  return text;
}

TEST(HttpMutations, NeverStopTheServer) {
  const std::vector<std::string> kValid = {
      "GET /v1/models?a=b HTTP/1.1\r\nHost: localhost:8080\r\nAccept: */*\r\n\r\n",
      "POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
      "Content-Length: 13\r\n\r\n{\"stream\":1}\n",
      Chunked("4\r\nbody\r\n5;a=b\r\n, yes\r\n0\r\nt: u\r\n\r\n"),
      "POST / HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 3\r\n\r\nabc",
      "GET http://a/%41 HTTP/1.1\r\nHost: a\r\nConnection: close\r\nExpect: 100-continue\r\n\r\n",
  };
  TestServer server(Echo);
  std::mt19937_64 random(20240607);
  for (int i = 0; i < 2000; ++i) {
    const std::string request = Mutate(kValid[static_cast<size_t>(i) % kValid.size()], random);
    SCOPED_TRACE(request);
    TestClient client(server.port());
    client.Send(request);
    client.EndSending();
    const std::string& answer = client.ReceiveAll();
    EXPECT_FALSE(client.timed_out);
    EXPECT_TRUE(answer.empty() || answer.substr(0, 9) == "HTTP/1.1 ") << answer;
    if (i % 100 == 0) {
      CheckAlive(server);
    }
  }
  EXPECT_TRUE(testing::Eventually([&] { return server->n_connections() == 0; }));
}

}  // namespace
}  // namespace facet
