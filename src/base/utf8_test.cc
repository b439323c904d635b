// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <vector>

namespace facet {
namespace {

using Kind = Utf8Step::Kind;
using namespace std::string_literals;

constexpr std::string_view kMark = "\xEF\xBF\xBD";  // U+FFFD

std::string Encoded(char32_t character) {
  std::string out;
  AppendUtf8(out, character);
  return out;
}

bool IsSurrogate(char32_t c) { return c >= 0xD800 && c <= 0xDFFF; }

TEST(Utf8Test, EveryScalarValueComesBack) {
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    if (IsSurrogate(c)) {
      continue;
    }
    const std::string text = Encoded(c);
    const Utf8Step step = DecodeUtf8(text);
    ASSERT_EQ(step.kind, Kind::kCharacter) << std::hex << static_cast<uint32_t>(c);
    ASSERT_EQ(step.character, c);
    ASSERT_EQ(step.size, c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4);
    ASSERT_EQ(step.size, static_cast<int>(text.size()));
  }
}

TEST(Utf8Test, EncodesAsTheStandardSays) {
  EXPECT_EQ(Encoded('A'), "A");
  EXPECT_EQ(Encoded(0), "\0"s);
  EXPECT_EQ(Encoded(0xE9), "\xC3\xA9");
  EXPECT_EQ(Encoded(0x20AC), "\xE2\x82\xAC");
  EXPECT_EQ(Encoded(0x1F600), "\xF0\x9F\x98\x80");
  EXPECT_EQ(Encoded(0x10FFFF), "\xF4\x8F\xBF\xBF");
}

/// Every proper prefix of a well-formed character, and the characters: the definition of a maximal
/// subpart needs only these two sets, so it can be checked without a table of byte ranges.
struct Language {
  Language() {
    for (char32_t c = 0; c <= 0x10FFFF; ++c) {
      if (!IsSurrogate(c)) {
        const std::string text = Encoded(c);
        characters.insert(text);
        for (size_t size = 1; size < text.size(); ++size) {
          prefixes.insert(text.substr(0, size));
        }
      }
    }
  }
  [[nodiscard]] Utf8Step Step(const std::string& text) const {
    size_t size = 1;
    while (size <= text.size() && size <= 4) {
      const std::string part = text.substr(0, size);
      if (characters.count(part) != 0) {
        return {Kind::kCharacter, static_cast<int>(size), 0};
      }
      if (prefixes.count(part) == 0) {
        return {Kind::kBroken, static_cast<int>(size == 1 ? 1 : size - 1), kReplacementCharacter};
      }
      ++size;
    }
    return {Kind::kIncomplete, static_cast<int>(text.size()), kReplacementCharacter};
  }
  std::set<std::string> characters;
  std::set<std::string> prefixes;
};

void ExpectSameStep(const Language& language, const std::string& text) {
  const Utf8Step wanted = language.Step(text);
  const Utf8Step step = DecodeUtf8(text);
  ASSERT_EQ(static_cast<int>(step.kind), static_cast<int>(wanted.kind))
      << ::testing::PrintToString(text);
  ASSERT_EQ(step.size, wanted.size) << ::testing::PrintToString(text);
  if (step.kind == Kind::kCharacter) {
    ASSERT_EQ(Encoded(step.character), text.substr(0, static_cast<size_t>(step.size)));
  } else {
    ASSERT_EQ(step.character, kReplacementCharacter);
  }
}

TEST(Utf8Test, AgreesWithTheDefinitionOfMaximalSubparts) {
  const Language language;
  const auto byte = [](int value) { return static_cast<char>(value); };
  for (int a = 0; a < 256; ++a) {
    ExpectSameStep(language, std::string{byte(a)});
    for (int b = 0; b < 256; ++b) {
      ExpectSameStep(language, std::string{byte(a), byte(b)});
    }
  }
  // Each border of Unicode table 3-7, and both sides of it.
  const std::vector<int> borders = {0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF,
                                    0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xEC, 0xED,
                                    0xEE, 0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF};
  for (const int a : borders) {
    for (const int b : borders) {
      for (const int c : borders) {
        ExpectSameStep(language, std::string{byte(a), byte(b), byte(c)});
        if (::testing::Test::HasFatalFailure()) {
          return;
        }
        for (const int d : borders) {
          ExpectSameStep(language, std::string{byte(a), byte(b), byte(c), byte(d)});
        }
      }
    }
  }
}

struct RepairCase {
  std::string_view text;
  int n_marks;  ///< Python: bytes.decode("utf-8", "replace").count("\ufffd")
};

TEST(Utf8Test, RepairPutsOneMarkPerMaximalPart) {
  const RepairCase cases[] = {
      {"\xC0\xAF", 2},                      // overlong slash
      {"\xE0\x80\xAF", 3},                  // overlong in three
      {"\xF0\x80\x80\xAF", 4},              // overlong in four
      {"\xED\xA0\x80", 3},                  // surrogate D800
      {"\xED\xBF\xBF", 3},                  // surrogate DFFF
      {"\xF4\x90\x80\x80", 4},              // above 10FFFF
      {"\xF8\x88\x80\x80\x80", 5},          // five-byte form
      {"\xFF", 1},                          // never a byte of UTF-8
      {"\xE2\x82", 1},                      // unfinished
      {"\xF0\x9F\x98", 1},                  // unfinished
      {"\xE2\x82\xE2\x82", 2},              // two unfinished
      {"\x80", 1},                          // a stray continuation
      {"\xF0\x9F\x98\xF0\x9F\x98\x80", 1},  // unfinished, then whole
  };
  for (const RepairCase& test : cases) {
    const std::string repaired = RepairUtf8(test.text);
    int n_marks = 0;
    for (size_t at = repaired.find(kMark); at != std::string::npos;
         at = repaired.find(kMark, at + 1)) {
      ++n_marks;
    }
    EXPECT_EQ(n_marks, test.n_marks) << ::testing::PrintToString(std::string(test.text));
    EXPECT_TRUE(IsValidUtf8(repaired));
    EXPECT_FALSE(IsValidUtf8(test.text));
  }
  // The example of the standard (table 3-8, maximal subparts).
  EXPECT_EQ(RepairUtf8("\x61\xF1\x80\x80\xE1\x80\xC2\x62\x80\x63\x80\xBF\x64"),
            "a\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"
            "b\xEF\xBF\xBD"
            "c\xEF\xBF\xBD\xEF\xBF\xBD"
            "d");
}

TEST(Utf8Test, ValidTextIsLeftAlone) {
  const std::string text = "na\xC3\xAFve \xE2\x82\xAC \xF0\x9F\x98\x80 \0 end"s;
  EXPECT_TRUE(IsValidUtf8(text));
  EXPECT_TRUE(IsValidUtf8(""));
  EXPECT_EQ(RepairUtf8(text), text);
  EXPECT_EQ(CountCodePoints(text), 15u);
  EXPECT_EQ(CountCodePoints(""), 0u);
}

TEST(Utf8StreamTest, HoldsBackOnlyWhatIsUnfinished) {
  Utf8Stream stream;
  EXPECT_EQ(stream.Push("a\xF0"), "a");
  EXPECT_TRUE(stream.has_pending());
  EXPECT_EQ(stream.Push("\x9F\x98"), "");
  EXPECT_EQ(stream.Push("\x80z"), "\xF0\x9F\x98\x80z");
  EXPECT_FALSE(stream.has_pending());
  EXPECT_EQ(stream.Flush(), "");
}

TEST(Utf8StreamTest, ABrokenPartIsMarkedAsSoonAsItIsKnown) {
  Utf8Stream stream;
  EXPECT_EQ(stream.Push("\xE2\x82"), "");
  EXPECT_EQ(stream.Push("x"), std::string(kMark) + "x");
  EXPECT_EQ(stream.Push("\xFF"), kMark);
  EXPECT_EQ(stream.Push("\xC3"), "");
  EXPECT_EQ(stream.Flush(), kMark);
  EXPECT_FALSE(stream.has_pending());
  EXPECT_EQ(stream.Push("again"), "again");
}

TEST(Utf8StreamTest, AnySplitGivesTheSameText) {
  const std::string text =
      "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\xE2\x82\xF0\x9F\xC0\xAFz\xED\xA0\x80\xF4\x8F\xBF";
  const std::string wanted = RepairUtf8(text);
  for (size_t first = 0; first <= text.size(); ++first) {
    for (size_t second = first; second <= text.size(); ++second) {
      Utf8Stream stream;
      std::string released = stream.Push(text.substr(0, first));
      released += stream.Push(text.substr(first, second - first));
      ASSERT_TRUE(IsValidUtf8(released));
      released += stream.Push(text.substr(second));
      released += stream.Flush();
      ASSERT_EQ(released, wanted) << first << " " << second;
    }
  }
}

}  // namespace
}  // namespace facet
