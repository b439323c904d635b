// SPDX-License-Identifier: Apache-2.0
#include "net/retry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace facet {
namespace {

using ::testing::ElementsAre;
using Kind = FetchResult::Kind;

class RetryTest : public ::testing::Test {
 protected:
  std::string Next(const FetchResult& result, uint64_t n_bytes = 0) {
    const Status status = retry_.Next(result, n_bytes);
    return status.ok() ? "again" : status.error().Message();
  }
  static FetchResult Answered(int status) {
    return {.kind = Kind::kDone, .head = {.status = status}};
  }
  static FetchResult Failed(Kind kind, int status = 0) {
    return {.kind = kind, .head = {.status = status}, .error = {"URL", "broken", ""}};
  }

  std::vector<int64_t> waits_ms_;
  DownloadHooks hooks_{
      .on_progress = [](uint64_t, uint64_t) {},
      .on_note = [](const std::string&) {},
      .wait = [this](std::chrono::milliseconds time) { waits_ms_.push_back(time.count()); }};
  Retry retry_{"URL", false, hooks_};
};

TEST_F(RetryTest, ServerThatWasNeverReachedIsNotTriedAgain) {
  EXPECT_EQ(Next(Failed(Kind::kUnreachable)), "URL: broken");
}

TEST_F(RetryTest, ServerThatAnsweredOnceComesBack) {
  EXPECT_EQ(Next(Failed(Kind::kLost, 200)), "again");
  EXPECT_EQ(Next(Failed(Kind::kUnreachable)), "again");
}

TEST_F(RetryTest, RefusalsAndOtherStatusesStand) {
  EXPECT_EQ(Next(Failed(Kind::kRefused, 200)), "URL: broken");
  EXPECT_EQ(Next(Answered(404)), "URL: 404: not there");
  EXPECT_EQ(Next(Answered(501)), "URL: the server answered 501, wanted 200");
  EXPECT_THAT(waits_ms_, ElementsAre());
}

TEST_F(RetryTest, CountsOnlyFailuresWithoutProgress) {
  for (uint64_t n_bytes = 1 << 20; n_bytes <= (20 << 20); n_bytes += 1 << 20) {
    EXPECT_EQ(Next(Failed(Kind::kLost, 206), n_bytes), "again");
  }
  EXPECT_EQ(waits_ms_, std::vector<int64_t>(20, 500));
  // Starting over is no progress until it has come further than before.
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(Next(Failed(Kind::kLost, 206), 3 << 20), "again");
  }
  EXPECT_EQ(
      Next(Failed(Kind::kLost, 206), 3 << 20),
      "URL: given up after 6 tries (broken), 3145728 bytes are there, wanted the same command "
      "again, which goes on from there");
}

TEST_F(RetryTest, WaitsForWhatTheServerAsks) {
  FetchResult busy = Answered(429);
  busy.retry_after_s = 120;
  EXPECT_EQ(Next(busy), "again");
  busy.retry_after_s = 121;
  EXPECT_EQ(Next(busy),
            "URL: the server answered 429, and wants to be left alone for 121 s, wanted the same "
            "command again by then");
  EXPECT_THAT(waits_ms_, ElementsAre(120'000));
}

}  // namespace
}  // namespace facet
