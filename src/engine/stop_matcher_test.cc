// SPDX-License-Identifier: Apache-2.0
#include "engine/stop_matcher.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace facet {
namespace {

std::string Text(const std::vector<TextPiece>& pieces) {
  std::string text;
  for (const TextPiece& piece : pieces) {
    text += "<" + piece.bytes + ">";
  }
  return text;
}

/// Pushes one token per text until a stop; "|" marks what each push released, "!" the stop.
std::string Play(std::vector<std::string> stops, const std::vector<std::string>& tokens) {
  StopMatcher matcher(std::move(stops));
  std::string told;
  for (size_t n = 0; n < tokens.size(); ++n) {
    std::vector<TextPiece> released;
    const bool is_stopped = matcher.Push(static_cast<int32_t>(n), tokens[n], released);
    told += Text(released) + "|";
    if (is_stopped) {
      return told + "!";
    }
  }
  std::vector<TextPiece> released;
  matcher.Flush(released);
  return told + Text(released);
}

TEST(StopMatcher, WithoutStopTextsNothingIsHeld) {
  EXPECT_EQ(Play({}, {"a", "", "b"}), "<a>|<>|<b>|");
}

TEST(StopMatcher, HoldsWhatMayBecomeAStopText) {
  EXPECT_EQ(Play({"STOP"}, {"a", "S", "T", "x"}), "<a>|||<S><T><x>|");
  EXPECT_EQ(Play({"STOP"}, {"a", "S", "T"}), "<a>|||<S><T>") << "released at any other end";
}

TEST(StopMatcher, AStopTextAcrossTokensIsCutOut) {
  EXPECT_EQ(Play({"STOP"}, {"abS", "TO", "P!", "more"}), "||<ab>|!");
  EXPECT_EQ(Play({"STOP"}, {"STOP"}), "|!");
  EXPECT_EQ(Play({"STOP"}, {"ab", "xSTOPy"}), "<ab>|<x>|!");
  EXPECT_EQ(Play({"\n\n"}, {"a\n", "\nb"}), "|<a>|!");
}

TEST(StopMatcher, AFailedBeginningMayHoldTheRealOne) {
  EXPECT_EQ(Play({"aab"}, {"a", "a", "a", "b"}), "||<a>||!");
  EXPECT_EQ(Play({"abcabd"}, {"abcab", "cabd"}), "|<abc>|!");
}

TEST(StopMatcher, TheStopTextThatIsCompleteFirstCounts) {
  EXPECT_EQ(Play({"abcd", "bc"}, {"a", "b", "c", "d"}), "||<a>|!");
  EXPECT_EQ(Play({"bc", "abc"}, {"xa", "bc"}), "|<x>|!") << "at the same byte the longest";
}

TEST(StopMatcher, TokensWithoutBytesKeepTheirPlace) {
  EXPECT_EQ(Play({"ab"}, {"a", "", "c"}), "||<a><><c>|");
  EXPECT_EQ(Play({"ab"}, {"x", "", "a", "", "b"}), "<x>|<>||||!");
}

TEST(StopMatcher, PartsOfCharactersAreBytesLikeAnyOther) {
  EXPECT_EQ(Play({"\xc3\xa9"}, {"caf\xc3", "\xa9s"}), "|<caf>|!");
  EXPECT_EQ(Play({"\xc3\xa9"}, {"caf\xc3", "\xa8s"}), "|<caf\xc3><\xa8s>|");
}

/// By brute force: the end of the first complete stop text and its beginning.
std::pair<size_t, size_t> FindStop(const std::string& text, const std::vector<std::string>& stops) {
  for (size_t end = 1; end <= text.size(); ++end) {
    size_t longest = 0;
    for (const std::string& stop : stops) {
      if (stop.size() <= end && text.compare(end - stop.size(), stop.size(), stop) == 0) {
        longest = std::max(longest, stop.size());
      }
    }
    if (longest > 0) {
      return {end - longest, end};
    }
  }
  return {text.size(), std::string::npos};
}

TEST(StopMatcher, RandomTextsAgreeWithBruteForce) {
  std::mt19937 random(7);
  const auto letters = [&](size_t n_most) {
    std::string text(random() % (n_most + 1), 'a');
    for (char& c : text) {
      c = static_cast<char>('a' + random() % 2);
    }
    return text;
  };
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::string> stops(random() % 4);
    for (std::string& stop : stops) {
      stop = "a" + letters(6);
    }
    StopMatcher matcher(stops);
    std::string text;
    std::vector<TextPiece> released;
    std::vector<std::string> tokens;
    bool is_stopped = false;
    while (!is_stopped && tokens.size() < 12) {
      tokens.push_back(letters(4));
      text += tokens.back();
      is_stopped = matcher.Push(static_cast<int32_t>(tokens.size() - 1), tokens.back(), released);
      std::string told;
      for (const TextPiece& piece : released) {
        told += piece.bytes;
      }
      const auto [begin, end] = FindStop(text, stops);
      ASSERT_EQ(is_stopped, end != std::string::npos);
      ASSERT_LE(told.size(), begin);
      ASSERT_EQ(told, text.substr(0, told.size()));
      ASSERT_TRUE(!is_stopped || told.size() == begin) << "all before the stop text is released";
    }
    if (!is_stopped) {
      matcher.Flush(released);
      ASSERT_EQ(released.size(), tokens.size());
    }
    for (size_t n = 0; n < released.size(); ++n) {
      ASSERT_EQ(released[n].token, static_cast<int32_t>(n)) << "in order, none left out";
    }
  }
}

}  // namespace
}  // namespace facet
