// SPDX-License-Identifier: Apache-2.0
#include "base/bytes.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace facet {
namespace {

using namespace std::string_view_literals;

TEST(ByteCursorTest, ReadsLittleEndianInOrder) {
  ByteCursor cursor(AsBytes("\x01\x02\x03\x04\x05\x06\xff\x00\x00\x80\x3f"sv), "x.bin");
  EXPECT_EQ(cursor.name(), "x.bin");
  EXPECT_EQ(*cursor.Read<uint32_t>("a"), 0x04030201u);
  EXPECT_EQ(*cursor.Read<uint16_t>("b"), 0x0605u);
  EXPECT_EQ(*cursor.Read<int8_t>("c"), -1);
  EXPECT_EQ(cursor.position(), 7u);
  EXPECT_EQ(cursor.remaining(), 4u);
  EXPECT_EQ(*cursor.Read<float>("d"), 1.0f);
  EXPECT_EQ(cursor.remaining(), 0u);
}

TEST(ByteCursorTest, TakesInPlace) {
  const std::string data = "headtail";
  ByteCursor cursor(AsBytes(data), "x.bin");
  EXPECT_EQ(AsText(*cursor.Take(4, "head")), "head");
  const auto tail = *cursor.Take(4, "tail");
  EXPECT_EQ(static_cast<const void*>(tail.data()), data.data() + 4);
  EXPECT_TRUE(cursor.Take(0, "nothing")->empty());
}

TEST(ByteCursorTest, RefusesToReadPastTheEnd) {
  ByteCursor cursor(AsBytes("\x01\x02\x03"sv), "x.bin");
  ASSERT_TRUE(cursor.Read<uint8_t>("kind").ok());
  EXPECT_EQ(cursor.Read<uint32_t>("tensor count").error().Message(),
            "x.bin, byte 1: 2 bytes left for tensor count, wanted 4");
  EXPECT_EQ(cursor.Take(3, "name").error().Message(),
            "x.bin, byte 1: 2 bytes left for name, wanted 3");
  // A failed read moves nothing.
  EXPECT_EQ(*cursor.Read<uint16_t>("rest"), 0x0302u);
}

TEST(ByteCursorTest, HugeSizesDoNotWrap) {
  ByteCursor cursor(AsBytes("abc"sv), "x.bin");
  ASSERT_TRUE(cursor.Take(1, "a").ok());
  EXPECT_EQ(cursor.Take(UINT64_MAX, "name").error().Message(),
            "x.bin, byte 1: 2 bytes left for name, wanted 18446744073709551615");
  EXPECT_EQ(cursor.remaining(), 2u);
}

TEST(ByteCursorTest, AnEmptyInputHasNothing) {
  ByteCursor cursor({}, "x.bin");
  EXPECT_EQ(cursor.Read<uint8_t>("magic").error().Message(),
            "x.bin, byte 0: 0 bytes left for magic, wanted 1");
}

TEST(BytesTest, AppendWritesWhatTheCursorReads) {
  std::string out;
  Append(out, uint32_t{0x46554747});
  Append(out, int64_t{-2});
  Append(out, 0.5);
  Append(out, uint8_t{9});
  EXPECT_EQ(out.substr(0, 4), "GGUF");
  ASSERT_EQ(out.size(), 21u);
  ByteCursor cursor(AsBytes(out), "out");
  EXPECT_EQ(*cursor.Read<uint32_t>("a"), 0x46554747u);
  EXPECT_EQ(*cursor.Read<int64_t>("b"), -2);
  EXPECT_EQ(*cursor.Read<double>("c"), 0.5);
  EXPECT_EQ(*cursor.Read<uint8_t>("d"), 9);
}

}  // namespace
}  // namespace facet
