// SPDX-License-Identifier: Apache-2.0
#include "app/help.h"

#include <gtest/gtest.h>

#include "support/testing.h"

namespace facet {
namespace {

TEST(CommandHelp, ListsEveryOptionAndExample) {
  for (const CommandSpec& command : CommandTable()) {
    const std::string help = CommandHelp(command.id);
    for (const OptionSpec& spec : OptionTable()) {
      if (spec.IsFor(command.id) && !spec.is_hidden) {
        EXPECT_NE(help.find(std::string(spec.name)), std::string::npos)
            << command.name << " " << spec.name;
      }
    }
    for (const Example& example : command.examples) {
      EXPECT_NE(help.find(std::string(example.line)), std::string::npos) << example.line;
    }
  }
}

TEST(CommandHelp, FitsAScreen) {
  for (const CommandSpec& command : CommandTable()) {
    const std::string help = CommandHelp(command.id);
    for (size_t begin = 0; begin < help.size();) {
      const size_t end = help.find('\n', begin);
      ASSERT_NE(end, std::string::npos);
      EXPECT_LE(end - begin, 96U) << help.substr(begin, end - begin);
      begin = end + 1;
    }
  }
}

TEST(ProgramHelp, ListsEveryCommand) {
  const std::string help = ProgramHelp();
  for (const CommandSpec& command : CommandTable()) {
    EXPECT_NE(help.find(std::string(command.summary)), std::string::npos);
  }
}

TEST(MarkdownHelp, IsTheManual) {
  EXPECT_EQ(testing::ReadOrDie(testing::SourcePath("docs/usage.md")), MarkdownHelp())
      << "facet help --markdown > docs/usage.md";
}

}  // namespace
}  // namespace facet
