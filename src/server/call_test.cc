// SPDX-License-Identifier: Apache-2.0
#include "server/call.h"

#include <gtest/gtest.h>

#include <optional>

#include "server/exchange_testing.h"

namespace facet {
namespace {

using testing::FakeExchange;

std::string HeaderOf(const HttpResponse& response, std::string_view name) {
  for (const auto& [key, value] : response.headers) {
    if (key == name) {
      return value;
    }
  }
  return "none";
}

struct Told {
  std::vector<RequestRecord> records;
  Call::OnDone sink = [this](const RequestRecord& record) { records.push_back(record); };
};

HttpRequest Request() {
  HttpRequest request;
  request.method = "POST";
  request.path = "/tokenize";
  request.peer = "127.0.0.1:5000";
  return request;
}

TEST(Call, TellsOnceAndCarriesItsHeaders) {
  const auto exchange = std::make_shared<FakeExchange>();
  Told told;
  {
    Call call(Request(), exchange, "id-1", {{"vary", "origin"}}, told.sink);
    call.Respond(Json::MakeObject({{"a", 1}}));
    EXPECT_EQ(told.records.size(), 1U);
  }
  ASSERT_EQ(told.records.size(), 1U);
  EXPECT_EQ(told.records[0].status, 200);
  EXPECT_EQ(told.records[0].peer, "127.0.0.1");
  const HttpResponse response = exchange->WaitForAnswer();
  EXPECT_EQ(response.body, R"({"a":1})");
  EXPECT_EQ(HeaderOf(response, "x-request-id"), "id-1");
  EXPECT_EQ(HeaderOf(response, "vary"), "origin");
}

TEST(Call, FailsWithItsKind) {
  const auto exchange = std::make_shared<FakeExchange>();
  Told told;
  Call call(Request(), exchange, "id", {}, told.sink);
  call.Fail({.status = 503, .message = "full", .type = "server_error", .code = "queue_full"});
  EXPECT_EQ(told.records.at(0).status, 503);
  EXPECT_EQ(told.records.at(0).error, "queue_full");
  EXPECT_EQ(HeaderOf(exchange->WaitForAnswer(), "retry-after"), "1");
}

TEST(Call, StreamsWithItsHeaders) {
  const auto exchange = std::make_shared<FakeExchange>();
  Told told;
  Call call(Request(), exchange, "id", {}, told.sink);
  call.StartStream();
  call.Write("data: 1\n\n");
  EXPECT_TRUE(told.records.empty());
  call.EndStream(nullptr);
  EXPECT_EQ(told.records.at(0).status, 200);
  const HttpResponse response = exchange->WaitForAnswer();
  EXPECT_EQ(response.body, "data: 1\n\n");
  EXPECT_EQ(response.headers, (HttpHeaders{{"x-request-id", "id"}}));
}

TEST(Call, ThatIsClosedOrDroppedIsToldToo) {
  Told told;
  {
    Call closed(Request(), std::make_shared<FakeExchange>(), "id", {}, told.sink);
    closed.MarkClosed();
    closed.EndStream(nullptr);
    const Call dropped(Request(), std::make_shared<FakeExchange>(), "id", {}, told.sink);
  }
  ASSERT_EQ(told.records.size(), 2U);
  EXPECT_EQ(told.records[0].status, 499);
  EXPECT_EQ(told.records[1].status, 500);
}

TEST(GivenRequestId, TakesOnlySafeOnes) {
  const auto given = [](std::string id) {
    HttpRequest request;
    request.headers = {{"x-request-id", std::move(id)}};
    return GivenRequestId(request);
  };
  EXPECT_EQ(given("abc-1._:Z"), "abc-1._:Z");
  EXPECT_EQ(given(std::string(128, 'a')), std::string(128, 'a'));
  EXPECT_EQ(given(std::string(129, 'a')), "");
  EXPECT_EQ(given("a b"), "");
  EXPECT_EQ(given("a\r\nb"), "");
  EXPECT_EQ(given(""), "");
  EXPECT_EQ(GivenRequestId(HttpRequest()), "");
}

}  // namespace
}  // namespace facet
