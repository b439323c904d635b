// SPDX-License-Identifier: Apache-2.0
#include "server/http_parser.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace facet {
namespace {

constexpr HttpLimits kLimits = {.max_header_bytes = 4096, .max_body_bytes = 1000};

/// What a parser made of `pieces`, as a line of text: the request, or the failure, and how many
/// bytes were left over.
std::string Read(const std::vector<std::string_view>& pieces, HttpLimits limits = kLimits) {
  HttpParser parser(limits);
  size_t n_given = 0;
  size_t n_taken = 0;
  for (const std::string_view piece : pieces) {
    n_given += piece.size();
    if (parser.state() == HttpParser::State::kHead || parser.state() == HttpParser::State::kBody) {
      n_taken += parser.Feed(piece);
    }
  }
  if (parser.state() == HttpParser::State::kFailed) {
    return std::to_string(parser.failure_status()) + " " + parser.failure();
  }
  if (parser.state() != HttpParser::State::kDone) {
    return "incomplete";
  }
  std::string text = parser.is_http_1_0() ? "1.0" : "1.1";
  text += parser.keeps_alive() ? " keep" : " close";
  text += parser.expects_continue() ? " continue " : " ";
  const HttpRequest request = parser.Take();
  EXPECT_FALSE(parser.has_begun());
  text += request.method + " " + request.path + " [";
  for (const auto& [name, value] : request.headers) {
    text += name + "=" + value + ";";
  }
  return text + "] " + request.body + " +" + std::to_string(n_given - n_taken);
}

/// The same however it is split; long inputs at some places only.
std::string ReadSplit(std::string_view bytes) {
  std::string whole = Read({bytes});
  std::vector<std::string_view> single;
  single.reserve(bytes.size());
  const size_t step = 1 + bytes.size() / 500;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (i % step == 0) {
      EXPECT_EQ(Read({bytes.substr(0, i), bytes.substr(i)}), whole) << "split at " << i;
    }
    single.push_back(bytes.substr(i, 1));
  }
  EXPECT_EQ(Read(single), whole);
  return whole;
}

std::string Get(std::string_view headers) {
  return ReadSplit("GET / HTTP/1.1\r\nHost: a\r\n" + std::string(headers) + "\r\n");
}

std::string PostChunks(std::string_view chunks) {
  return ReadSplit("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" +
                   std::string(chunks));
}

TEST(HttpParser, ReadsRequests) {
  EXPECT_EQ(Get(""), "1.1 keep GET / [host=a;]  +0");
  EXPECT_EQ(Get("X-A:  b\tc \r\nx-a:\r\n"), "1.1 keep GET / [host=a;x-a=b\tc;x-a=;]  +0");
  EXPECT_EQ(ReadSplit("\r\nBREW /a%20b HTTP/1.0\r\n\r\nrest"), "1.0 close BREW /a b []  +4");
  EXPECT_EQ(ReadSplit("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello+"),
            "1.1 keep POST /x [host=a;content-length=5;] hello +1");
  EXPECT_EQ(ReadSplit("OPTIONS * HTTP/1.1\r\nHost:\r\n\r\n"), "1.1 keep OPTIONS * [host=;]  +0");
  EXPECT_EQ(ReadSplit("GET http://a:1/b HTTP/1.1\r\nHost: a:1\r\n\r\n"),
            "1.1 keep GET /b [host=a:1;]  +0");
}

TEST(HttpParser, KnowsWhetherTheConnectionGoesOn) {
  EXPECT_EQ(Get("Connection: x, Close\r\n").substr(0, 9), "1.1 close");
  EXPECT_EQ(Get("Connection: close\r\nConnection: keep-alive\r\n").substr(0, 9), "1.1 close");
  EXPECT_EQ(ReadSplit("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n").substr(0, 8), "1.0 keep");
  EXPECT_EQ(Get("Expect: 100-Continue\r\n").substr(0, 17), "1.1 keep continue");
  EXPECT_EQ(Get("Expect: cake\r\n"), "417 expect: an unknown expectation, wanted \"100-continue\"");
}

TEST(HttpParser, ReadsChunks) {
  const std::string head = "1.1 keep POST / [host=a;transfer-encoding=chunked;] ";
  EXPECT_EQ(PostChunks("0\r\n\r\n"), head + " +0");
  EXPECT_EQ(PostChunks("3\r\nabc\r\n0A;x=\"y\"\r\n0123456789\r\n000\r\n\r\nnext"),
            head + "abc0123456789 +4");
  EXPECT_EQ(PostChunks("1\r\na\r\n0\r\nAuthorization: x\r\nb: c\r\n\r\n"), head + "a +0");
  EXPECT_EQ(PostChunks("3e8\r\n" + std::string(1000, 'a') + "\r\n0\r\n\r\n"),
            head + std::string(1000, 'a') + " +0");
}

TEST(HttpParser, RefusesChunks) {
  const std::string kSize = "400 chunk: not a size, wanted hexadecimal digits";
  const std::string kLarge = "413 body: more than 1000 bytes";
  const std::string kMore = "400 chunk: more bytes than its size, wanted CR LF";
  for (const char* bad : {"\r\n", "x\r\n", "-1\r\n", "+1\r\n", "0x1\r\n", " 1\r\n", "1 \r\n",
                          ";\r\n", "0000000000000001\r\n", "ffffffffffffffff1\r\n", "1\n"}) {
    EXPECT_EQ(PostChunks(bad), kSize) << bad;
  }
  EXPECT_EQ(PostChunks("3e9\r\n"), kLarge);
  EXPECT_EQ(PostChunks("fffffffffffffff\r\n"), kLarge);
  EXPECT_EQ(PostChunks("3e8\r\n" + std::string(1000, 'a') + "\r\n1\r\n"), kLarge);
  EXPECT_EQ(PostChunks("1\r\nab\r\n"), kMore);
  EXPECT_EQ(PostChunks("1\r\na\n"), kMore);
  EXPECT_EQ(PostChunks("1\rx"), "400 chunk: CR without LF, wanted CR LF");
  EXPECT_EQ(PostChunks("1;a\nb\r\n"), "400 chunk: a control character in an extension");
  EXPECT_EQ(PostChunks("1;" + std::string(4097, 'a')),
            "431 chunk: extensions of more than 4096 bytes");
  EXPECT_EQ(PostChunks("0\r\na: b\n\r\n"), "400 trailer: a control character");
  EXPECT_EQ(PostChunks("0\r\na: b\r\r\n"), "400 trailer: CR without LF, wanted CR LF");
  EXPECT_EQ(PostChunks("0\r\na: " + std::string(4096, 'a')), "431 trailers: more than 4096 bytes");
  EXPECT_EQ(PostChunks("0\r\n"), "incomplete");
}

TEST(HttpParser, RefusesLinesThatOthersMayReadOtherwise) {
  const std::string kFold =
      "400 header: a line that begins with a space, wanted one line for each header";
  const std::string kLf = "400 header: LF without CR, wanted CR LF";
  const std::string kCr = "400 header: CR without LF, wanted CR LF";
  EXPECT_EQ(Get("a: b\r\n c\r\n"), kFold);
  EXPECT_EQ(Get("\tc\r\n"), kFold);
  EXPECT_EQ(ReadSplit(" GET / HTTP/1.1\r\n"), kFold);
  EXPECT_EQ(Get("a: b\nc: d\r\n"), kLf);
  EXPECT_EQ(ReadSplit("GET / HTTP/1.1\n"), kLf);
  EXPECT_EQ(Get("a: b\rc: d\r\n"), kCr);
  EXPECT_EQ(Get("a: b\r\r\n"), kCr);
  EXPECT_EQ(Get(std::string_view("a: b\0\r\n", 7)), "400 header: a control character");
  EXPECT_EQ(Get("a: \x7f\r\n"), "400 header: a control character");
  EXPECT_EQ(ReadSplit("\r\n\r\n"), "400 request line: an empty line");
  for (const char* bad : {"a : b\r\n", ": b\r\n", "a\r\n", "a b: c\r\n", "a(: c\r\n"}) {
    EXPECT_EQ(Get(bad).substr(0, 11), "400 header:") << bad;
  }
}

TEST(HttpParser, RefusesUnclearLengths) {
  const std::string kSeveral = "400 content-length, transfer-encoding: several, wanted one";
  EXPECT_EQ(Get("Content-Length: 1\r\nContent-Length: 1\r\n"), kSeveral);
  for (const char* bad : {"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n",
                          "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n",
                          "Transfer-Encoding: gzip\r\nContent-Length: 1\r\n",
                          "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
                          "Content-Length: 1\r\nContent-Length: 2\r\n", "Content-Length: 1, 1\r\n",
                          "Content-Length: +1\r\n", "Content-Length: -1\r\n",
                          "Content-Length: 0x1\r\n", "Content-Length:\r\n",
                          "Content-Length: 18446744073709551616\r\n", "Content-Length: 1 1\r\n"}) {
    EXPECT_EQ(Get(bad).substr(0, 4), "400 ") << bad;
  }
  EXPECT_EQ(Get("Transfer-Encoding: gzip, chunked\r\n"),
            "501 transfer-encoding: unknown, wanted \"chunked\"");
  EXPECT_EQ(Get("Transfer-Encoding: identity\r\n"),
            "501 transfer-encoding: unknown, wanted \"chunked\"");
  EXPECT_EQ(ReadSplit("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"),
            "400 transfer-encoding: found in HTTP/1.0, wanted content-length");
  EXPECT_EQ(Get("Content-Length: 1001\r\n"), "413 body: more than 1000 bytes");
  EXPECT_EQ(Get("Content-Length: 18446744073709551615\r\n"), "413 body: more than 1000 bytes");
}

TEST(HttpParser, WantsOneHostAndAKnownVersion) {
  EXPECT_EQ(ReadSplit("GET / HTTP/1.1\r\n\r\n"), "400 host: none, wanted one");
  EXPECT_EQ(Get("host: b\r\n"), "400 host: several, wanted one");
  EXPECT_EQ(ReadSplit("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"), "400 host: not a host's name");
  const std::string kVersion = "505 request line: a version other than HTTP/1.0 and HTTP/1.1";
  EXPECT_EQ(ReadSplit("PRI * HTTP/2.0\r\n\r\n"), kVersion);
  EXPECT_EQ(ReadSplit("GET / HTTP/1.2\r\n\r\n"), kVersion);
  for (const char* bad :
       {"GET /\r\n\r\n", "GET / HTTP/1.1 \r\n\r\n", "GET  / HTTP/1.1\r\n\r\n",
        "GET /a b HTTP/1.1\r\n\r\n", "GET / http/1.1\r\n\r\n", "G@T / HTTP/1.1\r\n\r\n"}) {
    EXPECT_EQ(ReadSplit(bad).substr(0, 4), "400 ") << bad;
  }
  EXPECT_EQ(ReadSplit("GET * HTTP/1.1\r\nHost: a\r\n\r\n"), "400 target: \"*\", wanted \"/...\"");
}

TEST(HttpParser, LimitsHeaders) {
  std::string many;
  for (int i = 0; i < kMaxHttpHeaders - 1; ++i) {
    many += "a: b\r\n";
  }
  EXPECT_EQ(Get(many).substr(0, 8), "1.1 keep");
  EXPECT_EQ(Get(many + "a: b\r\n"), "431 headers: more than 100");
  const std::string head = "GET / HTTP/1.1\r\nHost: a\r\nb: ";
  const std::string fits = head + std::string(4096 - head.size() - 4, 'b') + "\r\n\r\n";
  EXPECT_EQ(fits.size(), 4096u);
  EXPECT_EQ(Read({fits}).substr(0, 8), "1.1 keep");
  EXPECT_EQ(Read({head + std::string(4096 - head.size() - 3, 'b') + "\r\n\r\n"}),
            "431 headers: more than 4096 bytes");
}

TEST(HttpParser, ReadsOneRequestAfterAnother) {
  HttpParser parser(kLimits);
  const std::string_view first =
      "POST /1 HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nab";
  EXPECT_EQ(parser.Feed(first), first.size());
  EXPECT_EQ(parser.Take().body, "ab");
  EXPECT_EQ(parser.state(), HttpParser::State::kHead);
  EXPECT_FALSE(parser.has_begun());
  EXPECT_EQ(parser.Feed("GET /2 HTTP/1.1\r\nHost: a\r\n\r\n"), 28u);
  EXPECT_TRUE(parser.keeps_alive());
  const HttpRequest second = parser.Take();
  EXPECT_EQ(second.path, "/2");
  EXPECT_EQ(second.headers.size(), 1u);
  EXPECT_TRUE(second.body.empty());
}

TEST(HttpParser, GivesTheHeadWithoutTheBody) {
  HttpParser parser(kLimits);
  parser.Feed("POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nbo");
  EXPECT_EQ(parser.request().path, "/a");
  const HttpRequest head = parser.TakeHead();
  EXPECT_EQ(head.method, "POST");
  EXPECT_EQ(head.body, "");
  EXPECT_FALSE(parser.has_begun());
}

}  // namespace
}  // namespace facet
