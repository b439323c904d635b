// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <set>

#include "app/options.h"

namespace facet {
namespace {

TEST(OptionTable, NamesKeysAndLettersAreUniqueWithinACommand) {
  for (const CommandSpec& command : CommandTable()) {
    std::set<std::string> seen;
    for (const OptionSpec& spec : OptionTable()) {
      if (!spec.IsFor(command.id)) {
        continue;
      }
      EXPECT_TRUE(spec.name.starts_with("--")) << spec.name;
      EXPECT_TRUE(seen.insert(std::string(spec.name)).second) << spec.name;
      EXPECT_TRUE(spec.letter == 0 || seen.insert(std::string(1, spec.letter)).second)
          << spec.letter;
      EXPECT_TRUE(spec.key.empty() || seen.insert("key " + std::string(spec.key)).second)
          << spec.key;
      for (const std::string_view alias : spec.aliases) {
        EXPECT_TRUE(seen.insert(std::string(alias)).second) << alias;
      }
      EXPECT_EQ(spec.is_flag(), spec.placeholder.empty()) << spec.name;
      EXPECT_FALSE(spec.help.empty()) << spec.name;
    }
  }
}

TEST(CommandTable, HasEveryCommandOnce) {
  std::set<std::string_view> names;
  for (const CommandSpec& command : CommandTable()) {
    EXPECT_TRUE(names.insert(command.name).second);
    EXPECT_EQ(&SpecOf(command.id), &command);
    for (const Example& example : command.examples) {
      const bool is_first = &example == command.examples.data();
      const std::string wanted = "facet " + (is_first ? std::string(command.name) : "");
      EXPECT_NE(example.line.find(wanted), std::string_view::npos);
    }
  }
  EXPECT_EQ(names.size(), 14U);
}

}  // namespace
}  // namespace facet
