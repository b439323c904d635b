// SPDX-License-Identifier: Apache-2.0
#include "server/access.h"

#include <gtest/gtest.h>

#include <optional>

namespace facet {
namespace {

HttpRequest With(HttpHeaders headers) {
  HttpRequest request;
  request.headers = std::move(headers);
  return request;
}

std::string HeaderOf(const HttpHeaders& headers, std::string_view name) {
  for (const auto& [key, value] : headers) {
    if (key == name) {
      return value;
    }
  }
  return "none";
}

TEST(Access, AsksForAKeyOnlyWhereThereIsOne) {
  EXPECT_TRUE(Access({}, {}, "127.0.0.1").HasKey(With({})));
  const Access access({"first", "second-key"}, {}, "127.0.0.1");
  EXPECT_FALSE(access.HasKey(With({})));
  EXPECT_TRUE(access.HasKey(With({{"authorization", "Bearer first"}})));
  EXPECT_TRUE(access.HasKey(With({{"authorization", "bearer   second-key"}})));
  EXPECT_TRUE(access.HasKey(With({{"x-api-key", "second-key"}})));
  for (const char* wrong : {"Bearer", "Bearer ", "Bearer firs", "Bearer firstt", "Bearer firsu",
                            "Basic first", "first", "Bearer first second-key"}) {
    EXPECT_FALSE(access.HasKey(With({{"authorization", wrong}}))) << wrong;
  }
}

TEST(Access, RefusesPagesThatAreNotListed) {
  const Access none({}, {}, "127.0.0.1");
  EXPECT_TRUE(none.AllowsOrigin(With({})));
  EXPECT_FALSE(none.AllowsOrigin(With({{"origin", "https://a.example"}})));
  EXPECT_FALSE(none.AllowsOrigin(With({{"origin", "null"}})));
  // The server's own address, unless a name server may have given its name to anybody.
  EXPECT_TRUE(
      none.AllowsOrigin(With({{"origin", "http://127.0.0.1:8080"}, {"host", "127.0.0.1:8080"}})));
  EXPECT_TRUE(none.AllowsOrigin(With({{"origin", "http://[::1]:80"}, {"host", "[::1]:80"}})));
  EXPECT_FALSE(
      none.AllowsOrigin(With({{"origin", "http://a.example:8080"}, {"host", "a.example:8080"}})));
  const Access one({}, {"https://a.example"}, "127.0.0.1");
  EXPECT_TRUE(one.AllowsOrigin(With({{"origin", "https://a.example"}})));
  EXPECT_FALSE(one.AllowsOrigin(With({{"origin", "https://a.example.evil"}})));
  EXPECT_TRUE(Access({}, {"*"}, "127.0.0.1").AllowsOrigin(With({{"origin", "https://b.example"}})));
}

TEST(Access, RefusesNamesThatANameServerMayHaveGiven) {
  const auto allows = [](const Access& access, const char* host) {
    return access.AllowsHost(With({{"host", host}}));
  };
  const Access local({}, {}, "127.0.0.1");
  for (const char* host : {"127.0.0.1:8080", "127.0.0.2", "localhost", "LocalHost:8080", "[::1]:80",
                           "facet.localhost:8080"}) {
    EXPECT_TRUE(allows(local, host)) << host;
  }
  for (const char* host : {"a.example", "a.example:8080", "127.0.0.1.a.example", "localhost.a",
                           "notlocalhost", "192.168.0.1", ""}) {
    EXPECT_FALSE(allows(local, host)) << host;
  }
  EXPECT_TRUE(local.AllowsHost(With({})));
  EXPECT_TRUE(allows(Access({"key"}, {}, "127.0.0.1"), "a.example"));
  EXPECT_TRUE(allows(Access({}, {"*"}, "127.0.0.1"), "a.example"));
  EXPECT_FALSE(allows(Access({}, {"https://b.example"}, "localhost"), "a.example"));
  EXPECT_TRUE(allows(Access({}, {}, "0.0.0.0"), "a.example"));
}

TEST(Access, GivesHeadersToListedOrigins) {
  EXPECT_TRUE(
      Access({}, {}, "127.0.0.1").HeadersFor(With({{"origin", "https://a.example"}})).empty());
  const Access one({}, {"https://a.example"}, "127.0.0.1");
  const HttpHeaders allowed = one.HeadersFor(With({{"origin", "https://a.example"}}));
  EXPECT_EQ(HeaderOf(allowed, "access-control-allow-origin"), "https://a.example");
  EXPECT_EQ(HeaderOf(allowed, "vary"), "origin");
  const HttpHeaders refused = one.HeadersFor(With({{"origin", "https://b.example"}}));
  EXPECT_EQ(HeaderOf(refused, "access-control-allow-origin"), "none");
  EXPECT_EQ(HeaderOf(refused, "vary"), "origin");
  const HttpHeaders all =
      Access({}, {"*"}, "127.0.0.1").HeadersFor(With({{"origin", "https://b.example"}}));
  EXPECT_EQ(HeaderOf(all, "access-control-allow-origin"), "*");
  EXPECT_EQ(HeaderOf(all, "vary"), "none");
}

TEST(Access, AnswersPreflight) {
  const Access access({"key"}, {"https://a.example"}, "127.0.0.1");
  const HttpHeaders asked = {{"origin", "https://a.example"},
                             {"access-control-request-method", "POST"},
                             {"access-control-request-headers", "authorization, x-stainless-os"}};
  const HttpResponse allowed = access.AnswerOptions(With(asked), "POST");
  EXPECT_EQ(allowed.status, 204);
  EXPECT_EQ(HeaderOf(allowed.headers, "access-control-allow-methods"), "POST, OPTIONS");
  EXPECT_EQ(HeaderOf(allowed.headers, "access-control-allow-headers"),
            "authorization, x-stainless-os");
  HttpHeaders split = asked;
  split[2].second = "a\r\nset-cookie: b";
  EXPECT_EQ(
      HeaderOf(access.AnswerOptions(With(split), "POST").headers, "access-control-allow-headers"),
      "authorization, content-type, x-api-key, x-request-id");
  HttpHeaders other = asked;
  other[0].second = "https://b.example";
  const HttpResponse refused = access.AnswerOptions(With(other), "POST");
  EXPECT_EQ(HeaderOf(refused.headers, "access-control-allow-methods"), "none");
  EXPECT_EQ(HeaderOf(refused.headers, "allow"), "POST, OPTIONS");
}

TEST(IsLoopback, KnowsThisMachineOnly) {
  for (const char* host : {"127.0.0.1", "127.1.2.3", "::1", "[::1]", "localhost", "a.localhost"}) {
    EXPECT_TRUE(IsLoopback(host)) << host;
  }
  for (const char* host : {"0.0.0.0", "::", "127.evil.example", "127.0.0.1.evil", "192.168.0.1",
                           "127.0", "host", ""}) {
    EXPECT_FALSE(IsLoopback(host)) << host;
  }
}

TEST(ParseKeys, ReadsLines) {
  const auto keys = ParseKeys("# for whom\n  one\t\r\n\ntwo", "keys.txt");
  ASSERT_TRUE(keys.ok()) << keys.error().Message();
  EXPECT_EQ(*keys, (std::vector<std::string>{"one", "two"}));
  const auto error_of = [](std::string_view text) {
    return ParseKeys(text, "keys.txt").error().Message();
  };
  EXPECT_EQ(error_of("# none\n"), "keys.txt: no keys, wanted one a line");
  EXPECT_EQ(error_of("a\nb c\n"),
            "keys.txt:2: a key with blanks or characters that are not ASCII, wanted letters, "
            "digits and signs");
  EXPECT_EQ(error_of(std::string(513, 'a')), "keys.txt:1: a key of 513 bytes, wanted 1 to 512");
}

TEST(CheckOrigin, WantsAnOrigin) {
  for (const char* origin :
       {"*", "https://a.example", "http://localhost:3000", "chrome-extension://abc"}) {
    EXPECT_TRUE(CheckOrigin(origin, "--cors").ok()) << origin;
  }
  EXPECT_EQ(CheckOrigin("https://a.example/", "--cors").error().Message(),
            "--cors: \"https://a.example/\", wanted * or an origin such as https://host:port");
  for (const char* origin : {"", "a.example", "https://", "://a", "https://a b"}) {
    EXPECT_FALSE(CheckOrigin(origin, "--cors").ok()) << origin;
  }
}

}  // namespace
}  // namespace facet
