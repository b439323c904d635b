// SPDX-License-Identifier: Apache-2.0
// `facet perplexity`: the figures of llama-perplexity (testdata/perplexity/README.md), and what is
// refused.
#include <gtest/gtest.h>

#include <cmath>

#include "base/file.h"
#include "base/json.h"
#include "cli/process.h"
#include "support/testing.h"

namespace facet::testing {
namespace {

const std::string kText = TestdataPath("perplexity/text.txt");
const std::string kModel = SourcePath("models/tiny/facet-tiny.gguf");
const std::string kQuantised = TestdataPath("tiny-gguf/facet-tiny-q8_0.gguf");

Json Measure(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"perplexity", "--json"});
  arguments.push_back(kText);
  const Finished finished = RunFacet(arguments);
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  Result<Json> json = ParseJson(finished.out, "result");
  EXPECT_TRUE(json.ok()) << finished.out;
  return json.ok() ? *std::move(json) : Json();
}

/// The windows of llama-perplexity.
std::vector<std::string> PeerWindows(int64_t window, int64_t n_chunks) {
  return {"--raw",
          "-c",
          std::to_string(window),
          "--stride",
          std::to_string(window),
          "--skip",
          std::to_string(window / 2),
          "--chunks",
          std::to_string(n_chunks)};
}

TEST(Perplexity, IsThatOfThePeer) {
  const Json peer = JsonOrDie(TestdataPath("perplexity/peer.json"));
  for (const Json& figure : peer["perplexity"].items()) {
    const int64_t window = figure["window"].as_int();
    auto arguments = PeerWindows(window, figure["chunks"].as_int());
    arguments.insert(arguments.begin(), {"-m", SourcePath(figure["model"].as_string())});
    const Json result = Measure(arguments);
    const double expected = figure["perplexity"].as_double();
    EXPECT_NEAR(result["perplexity"]["value"].as_double(), expected, 0.005 * expected)
        << figure.Dump();
    EXPECT_NEAR(result["perplexity"]["error"].as_double(), figure["error"].as_double(),
                0.01 * figure["error"].as_double());
    EXPECT_EQ(result["windows"].as_int(), figure["chunks"].as_int());
    EXPECT_EQ(result["scored"].as_int(), figure["chunks"].as_int() * (window / 2 - 1));
  }
}

TEST(Perplexity, TellsHowFarTwoModelsAreApart) {
  const Json peer = JsonOrDie(TestdataPath("perplexity/peer.json"))["divergence"];
  auto arguments = PeerWindows(peer["window"].as_int(), 11);
  arguments.insert(arguments.begin(), {"-m", kQuantised, "--against", kModel});
  const Json result = Measure(arguments)["against"];
  const double mean = result["kl_divergence"]["value"].as_double();
  EXPECT_GT(mean, 0.5 * peer["mean"].as_double());
  EXPECT_LT(mean, 2 * peer["mean"].as_double());
  EXPECT_NEAR(result["perplexity_ratio"]["value"].as_double(), peer["ratio"].as_double(), 0.004);
  EXPECT_NEAR(result["same_top"]["value"].as_double(), peer["same_top_percent"].as_double() / 100,
              0.01);
  EXPECT_LT(result["kl_divergence"]["median"].as_double(), mean);
  EXPECT_LE(result["kl_divergence"]["p99"].as_double(), result["kl_divergence"]["max"].as_double());
}

TEST(Perplexity, OfAModelAgainstItselfIsNoDifference) {
  const Json result = Measure({"-m", kModel, "--against", kModel, "-c", "128", "--chunks", "2"});
  const Json& against = result["against"];
  EXPECT_EQ(against["perplexity"], result["perplexity"]);
  EXPECT_EQ(against["perplexity_ratio"]["value"].as_double(), 1.0);
  EXPECT_EQ(against["kl_divergence"]["max"].as_double(), 0.0);
  EXPECT_EQ(against["same_top"]["value"].as_double(), 1.0);
}

TEST(Perplexity, ScoresEveryTokenOnceByDefault) {
  const Json result = Measure({"-c", "256"});
  EXPECT_EQ(result["scored"], result["tokens"]);
  EXPECT_EQ(result["stride"].as_int(), 128);
  EXPECT_GT(result["frame_tokens"].as_int(), 5);
  // Questions and answers of its own kind are easier within turns, and with more before them.
  EXPECT_LT(result["perplexity"]["value"].as_double(),
            Measure({"-c", "64", "--stride", "32"})["perplexity"]["value"].as_double());
}

TEST(Perplexity, DoesNotDependOnThreadsOrTheKindOfWindowMemory) {
  const Json expected = Measure({"-c", "128", "--chunks", "3"})["perplexity"];
  EXPECT_EQ(Measure({"-c", "128", "--chunks", "3", "-t", "1"})["perplexity"], expected);
  EXPECT_EQ(Measure({"-c", "128", "--chunks", "3", "--cpu-isa", "scalar"})["perplexity"], expected);
}

TEST(Perplexity, PrintsForPeople) {
  const Finished one = RunFacet({"perplexity", "-m", kModel, "-c", "128", "--chunks", "2", kText});
  EXPECT_EQ(one.exit_code, 0);
  EXPECT_EQ(one.err, "");
  EXPECT_TRUE(one.out.starts_with("text        ")) << one.out;
  EXPECT_NE(one.out.find("\nperplexity  "), std::string::npos) << one.out;
  const Finished two = RunFacet(
      {"perplexity", "-m", kQuantised, "--against", kModel, "-c", "128", "--chunks", "2", kText});
  for (const std::string_view wanted :
       {"\nagainst     ", "\nratio       ", "\ndivergence  ", "\nright token ", "\nsame top    "}) {
    EXPECT_NE(two.out.find(wanted), std::string::npos) << wanted << " in " << two.out;
  }
}

std::string ErrorOf(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"perplexity", "-m", kModel});
  const Finished finished = RunFacet(arguments);
  EXPECT_EQ(finished.exit_code, 1);
  EXPECT_EQ(finished.out, "");
  return finished.err;
}

TEST(Perplexity, RefusesWhatCannotBeMeasured) {
  const std::string folder = MakeTempDir();
  const std::string empty = folder + "/empty";
  const std::string brief = folder + "/brief";
  ASSERT_TRUE(WriteFile(empty, "").ok());
  ASSERT_TRUE(WriteFile(brief, "a").ok());
  EXPECT_EQ(ErrorOf({empty}), "facet: " + empty + ": an empty file, wanted a text\n");
  EXPECT_EQ(ErrorOf({"--raw", brief}),
            "facet: " + brief + ": 1 tokens, wanted at least the 511 of a window of 512 (-c)\n");
  EXPECT_EQ(ErrorOf({"--raw", "-c", "2", kText}),
            "facet: --ctx-size: 2, wanted at least 3: 1 that each window begins with, and 2 of the "
            "text\n");
  EXPECT_EQ(ErrorOf({"--raw", "-c", "64", "--stride", "65", kText}),
            "facet: --stride: 65, wanted at most a window, 64\n");
  EXPECT_EQ(ErrorOf({"--raw", "-c", "64", "--skip", "63", kText}),
            "facet: --skip: 63, wanted less than the 63 tokens of text in a window\n");
  EXPECT_NE(ErrorOf({"-c", "8192", kText}).find("4096"), std::string::npos);
  EXPECT_EQ(RunFacet({"perplexity", "-m", "/nothing/here", kText}).exit_code, 2);
}

TEST(Perplexity, RefusesAnotherTokenizer) {
  std::string bytes = ReadOrDie(kModel);
  const size_t at = bytes.find("<mask>");
  ASSERT_NE(at, std::string::npos);
  bytes[at + 4] = 'x';
  const std::string other = MakeTempDir() + "/other.gguf";
  ASSERT_TRUE(WriteFile(other, bytes).ok());
  EXPECT_EQ(ErrorOf({"--against", other, kText}),
            "facet: --against: " + other + ": token 4 is \"<masx>\", wanted \"<mask>\" as in " +
                kModel + "\n");
}

TEST(Perplexity, TakesBrokenUtf8) {
  const std::string path = MakeTempDir() + "/broken";
  ASSERT_TRUE(WriteFile(path, ReadOrDie(kText) + "\xff\xfe").ok());
  const Finished finished =
      RunFacet({"perplexity", "-m", kModel, "-c", "128", "--chunks", "1", path});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
}

}  // namespace
}  // namespace facet::testing
