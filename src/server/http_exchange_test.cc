// SPDX-License-Identifier: Apache-2.0
#include "server/http_exchange.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace facet {
namespace {

/// A channel whose I/O thread is the test.
struct Fixture {
  std::vector<HttpMailbox::Task> tasks;
  std::shared_ptr<HttpMailbox> mailbox = std::make_shared<HttpMailbox>(
      [this](HttpMailbox::Task task) { tasks.push_back(std::move(task)); });
  int n_woken = 0;
  std::shared_ptr<HttpChannel> channel =
      std::make_shared<HttpChannel>(mailbox, [this] { ++n_woken; });
  HttpByteCount::Sum sum = std::make_shared<std::atomic<size_t>>(0);
  HttpByteCount body{sum};
  std::shared_ptr<HttpExchange> exchange = channel->MakeExchange(std::move(body));
};

TEST(HttpByteCount, IsPartOfItsSumUntilItsEnd) {
  const auto sum = std::make_shared<std::atomic<size_t>>(0);
  {
    HttpByteCount one(sum);
    HttpByteCount other(sum);
    one.Set(10);
    other.Set(5);
    one.Set(7);
    EXPECT_EQ(*sum, 12u);
    const HttpByteCount moved(std::move(one));
    EXPECT_EQ(*sum, 12u);
  }
  EXPECT_EQ(*sum, 0u);
}

TEST(HttpChannel, CountsTheBodyUntilItsExchangeIsDropped) {
  Fixture f;
  HttpByteCount body(f.sum);
  body.Set(10);
  std::shared_ptr<HttpExchange> exchange = f.channel->MakeExchange(std::move(body));
  f.channel->SetGone();
  EXPECT_EQ(*f.sum, 10u);
  exchange.reset();
  EXPECT_EQ(*f.sum, 0u);
}

TEST(HttpChannel, GathersWordsAndWakesOnce) {
  Fixture f;
  f.exchange->StartStream({{"x", "y"}});
  f.exchange->Write("a");
  f.exchange->Write("");
  f.exchange->Write("b");
  ASSERT_EQ(f.tasks.size(), 1u);
  f.tasks[0]();
  EXPECT_EQ(f.n_woken, 1);
  const HttpWords words = f.channel->Take();
  ASSERT_TRUE(words.stream.has_value());
  EXPECT_EQ(words.stream->at(0).second, "y");
  EXPECT_EQ(words.bytes, "ab");
  EXPECT_FALSE(words.ends);
  f.exchange->EndStream();
  EXPECT_EQ(f.tasks.size(), 2u);
  EXPECT_TRUE(f.channel->Take().ends);
}

TEST(HttpChannel, DropsWordsOutOfOrder) {
  Fixture f;
  f.exchange->Write("early");
  f.exchange->EndStream();
  EXPECT_TRUE(f.tasks.empty());
  f.exchange->Respond({.status = 201});
  f.exchange->Respond({.status = 202});
  f.exchange->StartStream({});
  f.exchange->Write("late");
  const HttpWords words = f.channel->Take();
  EXPECT_EQ(words.response->status, 201);
  EXPECT_FALSE(words.stream.has_value());
  EXPECT_TRUE(words.bytes.empty());
}

TEST(HttpChannel, TellsThatNobodyAnswers) {
  Fixture f;
  f.exchange.reset();
  EXPECT_TRUE(f.channel->Take().is_dropped);
  Fixture answered;
  answered.exchange->Respond({});
  answered.exchange.reset();
  EXPECT_FALSE(answered.channel->Take().is_dropped);
}

TEST(HttpChannel, CallsOnClosedOnce) {
  Fixture f;
  int n = 0;
  f.exchange->SetOnClosed([&n] { ++n; });
  f.channel->SetGone();
  f.channel->SetGone();
  f.channel->SetSent();
  EXPECT_EQ(n, 1);
  f.exchange->SetOnClosed([&n] { n += 10; });  // at once
  EXPECT_EQ(n, 11);
  f.exchange->Respond({});
  EXPECT_TRUE(f.tasks.empty());
}

TEST(HttpChannel, DoesNotCallOnClosedAfterAllIsSent) {
  Fixture f;
  int n = 0;
  f.exchange->SetOnClosed([&n, held = f.exchange] { ++n; });  // held: no deadlock, no leak
  f.exchange->Respond({});
  const std::weak_ptr<HttpExchange> weak = std::exchange(f.exchange, nullptr);
  f.channel->SetSent();
  f.channel->SetGone();
  EXPECT_EQ(n, 0);
  EXPECT_TRUE(weak.expired());
}

TEST(HttpMailbox, ClosesUnderFire) {
  int n = 0;
  HttpMailbox mailbox([&n](const HttpMailbox::Task&) { ++n; });
  std::vector<std::thread> threads;
  threads.reserve(2);
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&mailbox] {
      for (int j = 0; j < 1000; ++j) {
        mailbox.Post([] {});
      }
    });
  }
  mailbox.Close();
  const int n_at_close = n;  // nothing is posted any more
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(n, n_at_close);
}

}  // namespace
}  // namespace facet
