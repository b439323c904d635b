// SPDX-License-Identifier: Apache-2.0
#include "text/index_table.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace facet {
namespace {

TEST(IndexTableTest, FindsWhatWasPlacedAndNothingElse) {
  std::vector<std::string> keys;
  for (int i = 0; i < 1000; ++i) {
    keys.push_back(std::to_string(i * i));
  }
  IndexTable table;
  EXPECT_EQ(table.Find(1, [](int32_t) { return true; }), IndexTable::kNone);
  table.Reset(keys.size());
  const auto equal_to = [&](const std::string& key) {
    return [&keys, key](int32_t i) { return keys[static_cast<size_t>(i)] == key; };
  };
  for (size_t i = 0; i < keys.size(); ++i) {
    int32_t& place = table.Place(HashText(keys[i]), equal_to(keys[i]));
    EXPECT_EQ(place, IndexTable::kNone);
    place = static_cast<int32_t>(i);
  }
  for (size_t i = 0; i < keys.size(); ++i) {
    EXPECT_EQ(table.Find(HashText(keys[i]), equal_to(keys[i])), static_cast<int32_t>(i));
  }
  EXPECT_EQ(table.Find(HashText("2"), equal_to("2")), IndexTable::kNone);
}

TEST(IndexTableTest, FillsToItsLimitWithOneHash) {
  IndexTable table;
  table.Reset(5);
  for (int32_t i = 0; i < 5; ++i) {
    table.Place(7, [i](int32_t other) { return other == i; }) = i;
  }
  for (int32_t i = 0; i < 5; ++i) {
    EXPECT_EQ(table.Find(7, [i](int32_t other) { return other == i; }), i);
  }
  EXPECT_EQ(table.Find(7, [](int32_t) { return false; }), IndexTable::kNone);
}

TEST(IndexTableTest, TextsThatDifferInOneByteOrInLengthHaveOtherHashes) {
  EXPECT_NE(HashText("a"), HashText(std::string_view("a\0", 2)));
  EXPECT_NE(HashText("12345678"), HashText("12345679"));
  EXPECT_NE(HashText("123456781"), HashText("123456782"));
  EXPECT_NE(HashText("1234567812345678"), HashText("8765432112345678"));
}

}  // namespace
}  // namespace facet
