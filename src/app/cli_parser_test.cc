// SPDX-License-Identifier: Apache-2.0
#include "app/cli_parser.h"

#include <gtest/gtest.h>

namespace facet {
namespace {

using Words = std::vector<std::string>;

std::string ErrorOf(const Words& arguments) {
  const auto line = ParseCommandLine(arguments);
  return line.ok() ? "no error" : line.error().Message();
}

TEST(ParseCommandLine, TakesWordsAsTheyAre) {
  const auto line =
      ParseCommandLine(Words{"run", "convert", "[1,2]", "-", "a=b", "", "--", "--temp", "--"});
  ASSERT_TRUE(line.ok()) << line.error().Message();
  EXPECT_EQ(line->command, Command::kRun);
  EXPECT_EQ(line->words, (Words{"convert", "[1,2]", "-", "a=b", "", "--temp", "--"}));
  EXPECT_TRUE(line->options.empty());
}

TEST(ParseCommandLine, TakesValuesAsTheyAre) {
  const auto line =
      ParseCommandLine(Words{"run", "-p", "-5 + 3", "--stop", "--", "--stop", "[a,b]", "-n5"});
  ASSERT_TRUE(line.ok()) << line.error().Message();
  ASSERT_EQ(line->options.size(), 3U);
  EXPECT_EQ(line->options[0].values, Words{"-5 + 3"});
  EXPECT_EQ(line->options[1].values, Words{"5"});
  EXPECT_EQ(line->options[2].values, (Words{"--", "[a,b]"}));
}

TEST(ParseCommandLine, TheLastOfARepeatedOptionCounts) {
  const auto line = ParseCommandLine(Words{"run", "--temp", "1", "--temp", "2"});
  ASSERT_TRUE(line.ok()) << line.error().Message();
  EXPECT_EQ(line->options.at(0).values, Words{"2"});
}

TEST(ParseCommandLine, SuggestsOptions) {
  EXPECT_EQ(ErrorOf({"run", "--topk", "5"}), "unknown option --topk, did you mean --top-k");
  EXPECT_EQ(ErrorOf({"run", "--max_tokens=5"}),
            "unknown option --max_tokens, did you mean --max-tokens");
  EXPECT_EQ(ErrorOf({"run", "--verb"}), "unknown option --verb, did you mean --verbose");
  EXPECT_EQ(ErrorOf({"run", "--ids"}),
            "unknown option --ids of facet run: it is one of facet tokenize");
  EXPECT_EQ(
      ErrorOf({"run", "--xyzzy"}),
      "unknown option --xyzzy (facet run --help lists them; words that begin with - go after --)");
  EXPECT_EQ(ErrorOf({"run", "what", "is", "-3"}),
            "unknown option -3 (facet run --help lists them; words that begin with - go after --)");
}

TEST(ParseCommandLine, SuggestsCommands) {
  EXPECT_EQ(ErrorOf({}), "no command, wanted facet COMMAND [OPTIONS] (facet --help lists them)");
  EXPECT_EQ(ErrorOf({"rnu"}), "unknown command rnu, did you mean run");
  EXPECT_EQ(
      ErrorOf({"What is this?"}),
      "unknown command \"What is this?\", wanted one of run, serve, tokenize, perplexity, inspect, "
      "convert, quantize, imatrix, synth, pull, bench, check, help, version");
  EXPECT_EQ(ErrorOf({"-m", "x", "run"}),
            "option -m before a command, wanted facet COMMAND [OPTIONS]");
}

TEST(ParseCommandLine, TellsOfAMissingValue) {
  EXPECT_EQ(ErrorOf({"run", "hello", "--temp"}), "--temp: nothing after it, wanted a value");
}

TEST(ParseCommandLine, KnowsTheOptionsThatAreCommands) {
  EXPECT_EQ(ParseCommandLine(Words{"--help"})->command, Command::kHelp);
  EXPECT_EQ(ParseCommandLine(Words{"-h"})->command, Command::kHelp);
  EXPECT_EQ(ParseCommandLine(Words{"--version"})->command, Command::kVersion);
}

}  // namespace
}  // namespace facet
