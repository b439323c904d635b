// SPDX-License-Identifier: Apache-2.0
#include "jinja/marked_string.h"

#include <gtest/gtest.h>

namespace facet::jinja {
namespace {

constexpr Origin kT = Origin::kTemplate;
constexpr Origin kU = Origin::kUser;

TEST(MarkedStringTest, NeighboursOfOneOriginAreOneRun) {
  MarkedString text;
  text.Append("", kU);
  text.Append("ab", kT);
  text.Append("c", kT);
  text.Append("d", kU);
  text.Append("", kT);
  text.Append("e", kU);
  EXPECT_EQ(text.Runs(), (std::vector<jinja::Run>{{"abc", kT}, {"de", kU}}));
  EXPECT_EQ(JoinRuns(text.Runs()), "abcde");
  EXPECT_EQ(text.OriginAt(2), kT);
  EXPECT_EQ(text.OriginAt(3), kU);
}

TEST(MarkedStringTest, EverySubstringHasTheOriginsOfItsBytes) {
  MarkedString text;
  const std::string pattern = "TUUTTTUTUU";
  for (const char c : pattern) {
    text.Append(std::string(1, c), c == 'T' ? kT : kU);
  }
  for (size_t begin = 0; begin <= pattern.size(); ++begin) {
    for (size_t end = begin; end <= pattern.size(); ++end) {
      MarkedString part("U", kU);
      part.Append(text, begin, end);
      std::string seen;
      for (const jinja::Run& run : part.Runs()) {
        seen += std::string(run.text.size(), run.origin == kT ? 'T' : 'U');
      }
      EXPECT_EQ(seen, "U" + pattern.substr(begin, end - begin));
      EXPECT_EQ(part.text(), seen);
    }
  }
}

}  // namespace
}  // namespace facet::jinja
