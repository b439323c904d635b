// SPDX-License-Identifier: Apache-2.0
#include "server/http_wire.h"

#include <gtest/gtest.h>

#include <regex>

namespace facet {
namespace {

std::string PathOf(std::string_view target) {
  const auto parsed = ParseTarget(target);
  return parsed.ok() ? parsed->path + "?" + parsed->query : parsed.error().Message();
}

TEST(HttpWire, ReadsTargets) {
  EXPECT_EQ(PathOf("/"), "/?");
  EXPECT_EQ(PathOf("/v1/models?a=%20b&c"), "/v1/models?a=%20b&c");
  EXPECT_EQ(PathOf("/a%20b%2Fc%c3%A4"), "/a b/c\xc3\xa4?");
  EXPECT_EQ(PathOf("/a?b?c"), "/a?b?c");
  EXPECT_EQ(PathOf("/a/../b"), "/a/../b?");
  EXPECT_EQ(PathOf("/a?"), "/a?");
  EXPECT_EQ(PathOf("*"), "*?");
  EXPECT_EQ(PathOf("http://localhost:8080/a?b"), "/a?b");
  EXPECT_EQ(PathOf("HTTPS://[::1]:8080/a"), "/a?");
  EXPECT_EQ(PathOf("http://localhost"), "/?");
  EXPECT_EQ(PathOf("http://localhost?q"), "/?q");
  EXPECT_EQ(PathOf("/see?http://x/"), "/see?http://x/");
}

TEST(HttpWire, RefusesTargets) {
  const std::string kEscape = "path: \"%\" without two hexadecimal digits, wanted \"%25\"";
  EXPECT_EQ(PathOf("/%"), kEscape);
  EXPECT_EQ(PathOf("/%4"), kEscape);
  EXPECT_EQ(PathOf("/%4g"), kEscape);
  EXPECT_EQ(PathOf("/%-1"), kEscape);
  EXPECT_EQ(PathOf("/a%00"), "path: a control character");
  EXPECT_EQ(PathOf("/a%0d%0aX"), "path: a control character");
  EXPECT_EQ(PathOf("/a%ff"), "path: broken UTF-8");
  EXPECT_EQ(PathOf("/a%c0%af"), "path: broken UTF-8");
  EXPECT_EQ(PathOf("/\xc3\xa4"),
            "target: a character that a URL cannot hold, wanted percent-encoding");
  EXPECT_EQ(PathOf("/a#b"), "target: a character that a URL cannot hold, wanted percent-encoding");
  EXPECT_EQ(PathOf(""), "target: no path, wanted \"/...\"");
  EXPECT_EQ(PathOf("a/b"), "target: no path, wanted \"/...\"");
  EXPECT_EQ(PathOf("localhost:80"), "target: no path, wanted \"/...\"");
  EXPECT_EQ(PathOf("ftp://localhost/"), "target: no path, wanted \"/...\"");
  EXPECT_EQ(PathOf("http://"), "target: a URL without a host");
  EXPECT_EQ(PathOf("http:///a"), "target: a URL without a host");
  EXPECT_EQ(PathOf("http://user@host/"), "target: a URL without a host");
}

TEST(HttpWire, FindsTokensOfLists) {
  EXPECT_TRUE(HasToken("close", "close"));
  EXPECT_TRUE(HasToken("Keep-Alive, Close", "close"));
  EXPECT_TRUE(HasToken(" ,\tCLOSE ,x", "close"));
  EXPECT_FALSE(HasToken("closed, not-close", "close"));
  EXPECT_FALSE(HasToken("", "close"));
}

TEST(HttpWire, FormatsHeads) {
  const HttpHeaders headers = {{"x-id", "a\r\nset-cookie: b"}};
  const std::string head = FormatHead({.status = 404,
                                       .content_type = "text/plain",
                                       .length = 12,
                                       .keeps_alive = false,
                                       .headers = &headers});
  EXPECT_TRUE(std::regex_match(
      head,
      std::regex("HTTP/1\\.1 404 Not Found\r\n"
                 "date: [A-Z][a-z]{2}, \\d{2} [A-Z][a-z]{2} \\d{4} \\d\\d:\\d\\d:\\d\\d GMT\r\n"
                 "content-type: text/plain\r\ncontent-length: 12\r\nconnection: close\r\n"
                 "x-id: a  set-cookie: b\r\n\r\n")))
      << head;
  const std::string bare = FormatHead({.status = 204, .framing = HttpFraming::kNone});
  EXPECT_EQ(bare.find("content-"), std::string::npos) << bare;
  EXPECT_NE(FormatHead({.status = 599}).find("HTTP/1.1 599 Other\r\n"), std::string::npos);
}

TEST(HttpWire, FormatsChunks) {
  std::string out = "x";
  AppendChunk(out, std::string(26, 'a'));
  EXPECT_EQ(out, "x1a\r\n" + std::string(26, 'a') + "\r\n");
}

}  // namespace
}  // namespace facet
