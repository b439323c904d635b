// SPDX-License-Identifier: Apache-2.0
#include "engine/media_encoder.h"

#include <gtest/gtest.h>

#include "engine/engine_core_testing.h"

namespace facet {
namespace {

using testing::FakeRunner;
using testing::MakeItem;
using testing::MediaInfo;
using testing::SoftTokenOf;

std::vector<std::string> HashesOf(std::initializer_list<const MediaItem*> items) {
  std::vector<std::string> hashes;
  for (const MediaItem* item : items) {
    hashes.push_back(item->hash);
  }
  return hashes;
}

void ExpectSoftTokensOf(const MediaItem& item, const Result<SoftTokens>& soft) {
  ASSERT_TRUE(soft.ok()) << soft.error().Message();
  ASSERT_EQ((*soft)->size(), static_cast<size_t>(item.n_tokens));
  for (int n = 0; n < item.n_tokens; ++n) {
    EXPECT_EQ((**soft)[static_cast<size_t>(n)], static_cast<float>(SoftTokenOf(item, n)));
  }
}

TEST(MediaEncoder, WhatIsMissingIsEncodedTogetherAndOnce) {
  FakeRunner runner(MediaInfo(), testing::HashLogits);
  MediaEncoder encoder(&runner, 1 << 20);
  const MediaItemPtr a = MakeItem(1, 3);
  const MediaItemPtr b = MakeItem(2, 5);
  const MediaItemPtr c = MakeItem(3, 2);
  const std::vector<const MediaItem*> first = {a.get(), b.get(), a.get()};
  const auto soft = encoder.Encode(first);
  ASSERT_EQ(soft.size(), 3U);
  for (size_t n = 0; n < first.size(); ++n) {
    ExpectSoftTokensOf(*first[n], soft[n]);
  }
  const std::vector<const MediaItem*> second = {c.get(), b.get()};
  const auto more = encoder.Encode(second);
  ExpectSoftTokensOf(*c, more[0]);
  ExpectSoftTokensOf(*b, more[1]);
  ASSERT_EQ(runner.encoded().size(), 2U);
  EXPECT_EQ(runner.encoded()[0], HashesOf({a.get(), b.get()}));
  EXPECT_EQ(runner.encoded()[1], HashesOf({c.get()}));
  EXPECT_EQ(encoder.n_encoded(), 3);
  EXPECT_EQ(encoder.n_remembered(), 1);
  EXPECT_EQ(encoder.n_bytes(), 4 * (3 + 5 + 2));
}

TEST(MediaEncoder, ForgetsWhatWasNotUsedForTheLongestTime) {
  FakeRunner runner(MediaInfo(), testing::HashLogits);
  MediaEncoder encoder(&runner, 4 * 8);
  const MediaItemPtr a = MakeItem(1, 3);
  const MediaItemPtr b = MakeItem(2, 5);
  const MediaItemPtr c = MakeItem(3, 4);
  const MediaItemPtr large = MakeItem(4, 9);
  const auto encode = [&](const MediaItemPtr& item) {
    const MediaItem* pointer = item.get();
    ExpectSoftTokensOf(*item, encoder.Encode({&pointer, 1}).front());
    EXPECT_LE(encoder.n_bytes(), 4 * 8);
    return encoder.n_encoded();
  };
  EXPECT_EQ(encode(a), 1);
  EXPECT_EQ(encode(b), 2);
  EXPECT_EQ(encode(a), 2);
  EXPECT_EQ(encode(c), 3);  // b goes
  EXPECT_EQ(encode(a), 3);
  EXPECT_EQ(encode(b), 4);
  EXPECT_EQ(encode(large), 5);
  EXPECT_EQ(encoder.n_bytes(), 0) << "nothing is kept that is larger than the memory";
  EXPECT_EQ(encode(large), 6);
}

TEST(MediaEncoder, OneThatCannotBeEncodedTakesNoOtherWithIt) {
  FakeRunner runner(MediaInfo(), testing::HashLogits);
  MediaEncoder encoder(&runner, 1 << 20);
  const MediaItemPtr a = MakeItem(1, 3);
  const MediaItemPtr bad = MakeItem(2, 5);
  const MediaItemPtr c = MakeItem(3, 2);
  runner.before_encode = [&](std::span<const MediaItem* const> items) -> Status {
    for (const MediaItem* item : items) {
      if (item == bad.get()) {
        return Refuse("picture", "bad", "good");
      }
    }
    return {};
  };
  const std::vector<const MediaItem*> items = {a.get(), bad.get(), c.get(), bad.get()};
  const auto soft = encoder.Encode(items);
  ExpectSoftTokensOf(*a, soft[0]);
  ExpectSoftTokensOf(*c, soft[2]);
  for (const size_t n : {1U, 3U}) {
    ASSERT_FALSE(soft[n].ok());
    EXPECT_EQ(soft[n].error().Message(), "picture: bad, wanted good");
  }
}

}  // namespace
}  // namespace facet
