// SPDX-License-Identifier: Apache-2.0
#include "format/names.h"

#include <gtest/gtest.h>

namespace facet {
namespace {

TEST(NamesTest, QuotedCannotHarmATerminalAndStaysShort) {
  EXPECT_EQ(Quoted("blk.0.attn_q"), "\"blk.0.attn_q\"");
  EXPECT_EQ(Quoted(std::string_view("a\x1b[31m\0\x7f", 7)), "\"a\\x1b[31m\\x00\"");
  EXPECT_EQ(Quoted("a\x7f"), "\"a\\x7f\"");
  EXPECT_EQ(Quoted("\xff\xc3\xa9"), "\"\xef\xbf\xbd\xc3\xa9\"");
  EXPECT_EQ(Quoted(std::string(81, 'x')), "\"" + std::string(80, 'x') + "...\"");
  EXPECT_EQ(Quoted(std::string(80, 'x')), "\"" + std::string(80, 'x') + "\"");
}

TEST(NamesTest, FindRepeatedGivesTheSmallest) {
  EXPECT_EQ(FindRepeated({}), std::nullopt);
  EXPECT_EQ(FindRepeated({"b", "a", "c"}), std::nullopt);
  EXPECT_EQ(FindRepeated({"c", "b", "a", "c", "b"}), "b");
}

TEST(NamesTest, FindNameGivesPositionsBeforeSorting) {
  const NameIndex index = *IndexShards({"b", "a", "cc"}, "f");
  EXPECT_EQ(FindName(index, "a"), 1u);
  EXPECT_EQ(FindName(index, "b"), 0u);
  EXPECT_EQ(FindName(index, "cc"), 2u);
  EXPECT_EQ(FindName(index, "c"), std::nullopt);
  EXPECT_EQ(FindName(index, "d"), std::nullopt);
  EXPECT_EQ(FindName({}, "a"), std::nullopt);
  EXPECT_EQ(IndexShards({"b", "a", "b"}, "f").error().Message(),
            "f: tensor \"b\" in two shards, wanted each name once");
}

}  // namespace
}  // namespace facet
