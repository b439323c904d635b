// SPDX-License-Identifier: Apache-2.0
#include "net/fetch_media.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include "support/http_server.h"

namespace facet {
namespace {

using testing::HttpReply;
using testing::HttpRequest;
using testing::HttpServer;

/// The address of the test's server, 127.0.0.1, counts as public.
bool IsAtHome(const sockaddr& address) {
  return address.sa_family == AF_INET &&
         reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr == htonl(INADDR_LOOPBACK);
}

constexpr std::string_view kError =
    "error: url: an address that is not of the public network, wanted one that is";

std::string Fetched(const std::string& url, AddressFilter allows = IsAtHome) {
  const auto bytes = FetchMedia(url, "url", {.max_bytes = 10}, allows);
  return bytes.ok() ? *bytes : "error: " + bytes.error().Message();
}

TEST(FetchMedia, TakesAFile) {
  const HttpServer server([](const HttpRequest& request) {
    return request.path == "/moved" ? HttpReply{.status = 302, .headers = {{"Location", "/a"}}}
                                    : HttpReply{.body = "0123456789"};
  });
  EXPECT_EQ(Fetched(server.url() + "/a#part"), "0123456789");
  EXPECT_EQ(Fetched(server.url() + "/moved"), "0123456789");
  for (const HttpRequest& request : server.requests()) {
    EXPECT_EQ(request.Header("authorization") + request.Header("cookie"), "");
  }
}

TEST(FetchMedia, HasLimits) {
  const HttpServer server([](const HttpRequest& request) {
    if (request.path == "/again") {
      return HttpReply{.status = 302, .headers = {{"Location", "/again"}}};
    }
    if (request.path == "/none") {
      return HttpReply{.status = 404};
    }
    return HttpReply{.body = "0123456789A", .is_chunked = request.path == "/chunked"};
  });
  EXPECT_EQ(Fetched(server.url() + "/long"), "error: url: 11 bytes or more, wanted at most 10");
  EXPECT_EQ(Fetched(server.url() + "/chunked"), "error: url: 11 bytes or more, wanted at most 10");
  EXPECT_EQ(Fetched(server.url() + "/none"),
            "error: url: the URL's server answered 404, wanted 200");
  EXPECT_EQ(Fetched(server.url() + "/again"),
            "error: url: more than 3 redirects, wanted the URL that they lead to");
  EXPECT_EQ(Fetched("file:///etc/passwd"),
            "error: url: another scheme, wanted http:// or https://");
  EXPECT_EQ(Fetched("http://user:secret@localhost/").find("secret"), std::string::npos);
}

TEST(FetchMedia, LooksOnlyAtThePublicNetwork) {
  const HttpServer server([](const HttpRequest&) { return HttpReply{.body = "secret"}; });
  const std::string port = server.url().substr(server.url().rfind(':'));
  for (const char* host : {"127.0.0.1", "localhost", "2130706433", "0x7f.1", "0.0.0.0", "[::1]",
                           "[::ffff:127.0.0.1]", "169.254.169.254", "10.0.0.1"}) {
    EXPECT_EQ(Fetched(std::string("http://") + host + port + "/", IsPublicAddress), kError) << host;
  }
  EXPECT_TRUE(server.requests().empty());
}

TEST(FetchMedia, RedirectsStayInThePublicNetwork) {
  std::string target;
  const HttpServer server([&target](const HttpRequest&) {
    return HttpReply{.status = 302, .headers = {{"Location", target}}};
  });
  target = "http://127.0.0.2" + server.url().substr(server.url().rfind(':')) + "/";
  EXPECT_EQ(Fetched(server.url() + "/"), kError);
  EXPECT_EQ(server.requests().size(), 1U);
}

}  // namespace
}  // namespace facet
