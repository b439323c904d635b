// SPDX-License-Identifier: Apache-2.0
// Drafting as a user sees it: the same bytes with and without it, what is refused at the start, and
// what --verbose tells.
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "cli/process.h"
#include "support/testing.h"

namespace facet::testing {
namespace {

using Arguments = std::vector<std::string>;

constexpr std::string_view kEmbedded =
    "no model given: using the embedded tiny model (a toy; -m MODEL for a real one)\n";

Finished Story(const Arguments& options) {
  Arguments arguments = {"run", "-n", "60"};
  arguments.insert(arguments.end(), options.begin(), options.end());
  arguments.emplace_back("Tell me a story about a fox.");
  return RunFacet(arguments);
}

TEST(Drafting, ChangesNoByteOfAReply) {
  const std::string drafter = SourcePath("models/tiny/facet-tiny-drafter.gguf");
  for (const Arguments& drawing :
       {Arguments{"--temp", "0"}, Arguments{"--temp", "0.8", "--seed", "5"}}) {
    const auto with = [&drawing](Arguments options) {
      options.insert(options.end(), drawing.begin(), drawing.end());
      const Finished finished = Story(options);
      EXPECT_EQ(finished.exit_code, 0) << finished.err;
      EXPECT_EQ(finished.err.substr(0, kEmbedded.size()), kEmbedded);
      const bool has_drafts = finished.err.find("\ndrafts    ") != std::string::npos;
      EXPECT_EQ(has_drafts, options[1] == "mtp") << finished.err;
      return finished.out;
    };
    const std::string plain = with({"--spec", "off"});
    EXPECT_GT(plain.size(), 100U);
    EXPECT_EQ(with({"--spec", "auto"}), plain);
    EXPECT_EQ(with({"--spec", "mtp", "--spec-max", "16", "-v"}), plain);
    EXPECT_EQ(with({"--spec", "ngram"}), plain);
    EXPECT_EQ(with({"-md", drafter, "--spec-max", "1"}), plain);
  }
}

TEST(Drafting, RefusesADrafterOfAnotherModelBeforeItRuns) {
  const std::string other = TestdataPath("text/dense-keqv-assistant");
  const std::string model = TestdataPath("text/dense-keqv");
  for (const char* command : {"run", "serve"}) {
    const auto fails = [command](Arguments arguments, const std::string& message,
                                 int exit_code = 2) {
      arguments.insert(arguments.begin(), command);
      const Finished finished = RunFacet(arguments);
      EXPECT_EQ(finished.exit_code, exit_code) << message;
      EXPECT_EQ(finished.out, "");
      EXPECT_TRUE(finished.err.ends_with("facet: " + message + "\n")) << finished.err;
    };
    const bool serves = std::string(command) == "serve";
    const Arguments more = serves ? Arguments{"--port", "0"} : Arguments{"-p", "Hi"};
    const auto plus = [&more](Arguments arguments) {
      arguments.insert(arguments.end(), more.begin(), more.end());
      return arguments;
    };
    fails(plus({"--draft", other}),
          other + ": a drafter for width 64, wanted 128, the width of embedded model");
    fails(plus({"--draft", "/nothing/here.gguf"}),
          "/nothing/here.gguf: cannot open: No such file or directory");
    const std::string target = SourcePath("models/tiny/facet-tiny.gguf");
    fails(
        plus({"--draft", target}),
        target +
            ", general.architecture: \"gemma4\" (a language model), wanted \"gemma4-assistant\", a "
            "drafter");
    fails(plus({"-m", target, "--spec", "mtp"}),
          "--spec: mtp without a drafter, wanted --draft MODEL, or --spec auto", 1);
    fails(plus({"--draft", "16"}),
          "--draft: \"16\", wanted a drafter; --spec-max N is how many tokens it guesses", 1);
  }
}

TEST(Drafting, LeavesADrafterThatIsNotAskedAlone) {
  const Finished finished =
      RunFacet({"run", "--temp", "0", "--spec", "ngram", "--draft", "/nothing/here.gguf", "Hello"});
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_EQ(finished.err, std::string(kEmbedded) + "--draft: not loaded, for --spec is ngram\n");
}

TEST(Drafting, IsToldByVerbose) {
  const Finished off = Story({"--temp", "0", "--spec", "off", "-v"});
  EXPECT_NE(off.err.find("\ndrafting  off\n"), std::string::npos) << off.err;
  EXPECT_EQ(off.err.find("\ndrafts "), std::string::npos) << off.err;
  const Finished on = Story({"--temp", "0", "--spec", "mtp", "-v"});
  EXPECT_NE(on.err.find("\ndrafting  mtp, at most 8 tokens at a time, with embedded drafter ("),
            std::string::npos)
      << on.err;
  const std::regex line(
      "\ndrafts    [0-9]+ rounds, [0-9]+ drafted, [0-9]+ accepted \\([0-9.]+%\\), [0-9.]+ tokens a "
      "round\n");
  EXPECT_TRUE(std::regex_search(on.err, line)) << on.err;
}

TEST(Drafting, IsTakenFromTheFolderThatIsNamedAsTheModel) {
  const std::string folder = MakeTempDir();
  for (const char* name : {"facet-tiny.gguf", "facet-tiny-drafter.gguf"}) {
    ASSERT_TRUE(WriteFile(folder + "/" + name, ReadOrDie(SourcePath("models/tiny/") + name)).ok());
  }
  const Finished folder_run = Story({"--temp", "0", "-m", folder, "-v"});
  EXPECT_TRUE(folder_run.err.starts_with(
      folder + ": using facet-tiny.gguf with the drafter facet-tiny-drafter.gguf\n"))
      << folder_run.err;
  ASSERT_TRUE(WriteFile(folder + "/mmproj-facet-tiny.gguf",
                        ReadOrDie(SourcePath("models/tiny/mmproj-facet-tiny.gguf")))
                  .ok());
  EXPECT_TRUE(Story({"--temp", "0", "-m", folder})
                  .err.starts_with(folder + ": using facet-tiny.gguf with the projector "
                                            "mmproj-facet-tiny.gguf and the drafter "
                                            "facet-tiny-drafter.gguf\n"));
  const Finished file_run = Story({"--temp", "0", "-m", folder + "/facet-tiny.gguf", "-v"});
  EXPECT_NE(file_run.err.find("\ndrafting  auto, at most 8 tokens at a time, no drafter\n"),
            std::string::npos)
      << file_run.err;
  EXPECT_EQ(file_run.out, folder_run.out);
}

TEST(Drafting, AFolderIsRefusedOnlyForADrafterThatWouldBeUsed) {
  const std::string folder = MakeTempDir();
  const std::string drafter = ReadOrDie(SourcePath("models/tiny/facet-tiny-drafter.gguf"));
  const auto put = [&folder](const std::string& name, const std::string& bytes) {
    ASSERT_TRUE(WriteFile(folder + "/" + name, bytes).ok());
  };
  put("m.gguf", ReadOrDie(SourcePath("models/tiny/facet-tiny.gguf")));
  put("d.gguf", drafter.substr(0, 1000));
  const Finished without = Story({"-n", "2", "-m", folder});
  EXPECT_EQ(without.exit_code, 0) << without.err;
  EXPECT_TRUE(without.err.starts_with("left out: " + folder + "/d.gguf")) << without.err;
  put("d.gguf", drafter);
  put("e.gguf", drafter);
  const Finished several = Story({"-m", folder});
  EXPECT_EQ(several.exit_code, 2);
  EXPECT_EQ(several.err, "facet: " + folder + ": two drafters, " + folder + "/d.gguf and " +
                             folder + "/e.gguf, wanted one of them named with --draft\n");
  EXPECT_EQ(Story({"-n", "2", "-m", folder, "--spec", "off"}).exit_code, 0);
  EXPECT_EQ(Story({"-n", "2", "-m", folder, "--draft", folder + "/e.gguf"}).exit_code, 0);
  EXPECT_EQ(Story({"-n", "2", "-m", folder + "/m.gguf", "--draft", folder}).exit_code, 2);
  put("e.gguf", ReadOrDie(TestdataPath("text/gguf/dense-keqv-assistant-Q8_0.gguf")));
  std::filesystem::remove(folder + "/d.gguf");
  const Finished other = Story({"-n", "2", "-m", folder});
  EXPECT_EQ(other.exit_code, 0);
  EXPECT_NE(other.err.find("drafter left out: " + folder + "/e.gguf: "), std::string::npos)
      << other.err;
  EXPECT_EQ(Story({"-m", folder, "--spec", "mtp"}).exit_code, 2);
  put("e.gguf", drafter);
  const Finished named = Story({"-n", "2", "-m", folder + "/m.gguf", "--draft", folder, "-v"});
  EXPECT_NE(named.err.find(", with e.gguf ("), std::string::npos) << named.err;
}

TEST(Drafting, OfABatchIsInItsSummaryAlone) {
  const std::string file = MakeTempDir() + "/in.jsonl";
  const auto counts_drafts = [&file](const std::string& spec) {
    const std::string line =
        R"({"prompt":"Tell me a story about a fox.","temperature":0,"spec":")" + spec + "\"}\n";
    EXPECT_TRUE(WriteFile(file, line + line).ok());
    const Finished finished =
        RunFacet({"run", "--batch", file, "-n", "60", "--output", file + "." + spec});
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    return finished.err.find("drafted tokens accepted") != std::string::npos;
  };
  EXPECT_FALSE(counts_drafts("off"));
  EXPECT_TRUE(counts_drafts("mtp"));
}

TEST(Drafting, IsTheLinesOwnInABatch) {
  const std::string file = MakeTempDir() + "/in.jsonl";
  std::string lines;
  for (const char* spec : {"off", "auto", "mtp", "ngram"}) {
    lines += std::string(R"({"prompt":"Tell me a story about a fox.","temperature":0,"spec":")") +
             spec + "\"}\n";
  }
  lines += R"({"prompt":"x","spec":"on"})";
  ASSERT_TRUE(WriteFile(file, lines).ok());
  const Finished finished =
      RunFacet({"run", "--batch", file, "--seed", "1", "--output", file + "o"});
  EXPECT_EQ(finished.exit_code, 1);
  EXPECT_NE(finished.err.find("line 5: spec: \"on\", wanted auto, mtp, ngram or off"),
            std::string::npos)
      << finished.err;
  std::vector<std::string> contents;
  for (const Json& line : JsonLinesOrDie(file + "o")) {
    if (line.contains("content")) {
      contents.push_back(line["content"].as_string());
    }
  }
  ASSERT_EQ(contents.size(), 4U);
  EXPECT_EQ(contents, std::vector<std::string>(4, contents[0]));
}

}  // namespace
}  // namespace facet::testing
