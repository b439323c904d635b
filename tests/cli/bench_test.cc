// SPDX-License-Identifier: Apache-2.0
// facet bench as a user runs it, on the embedded model. What is tested is that the figures are
// there and agree with one another, never how large they are.
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "cli/process.h"
#include "support/testing.h"

namespace facet::testing {
namespace {

using Arguments = std::vector<std::string>;

Finished Bench(Arguments arguments, const RunOptions& options = {}) {
  arguments.insert(arguments.begin(), "bench");
  return RunFacet(arguments, options);
}

Json BenchJson(Arguments arguments) {
  arguments.insert(arguments.end(), {"--json"});
  const Finished finished = Bench(arguments);
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  Result<Json> json = ParseJson(finished.out, "result");
  EXPECT_TRUE(json.ok()) << finished.out;
  return json.ok() ? *std::move(json) : Json();
}

void ExpectConsistent(const Json& result, const Json& machine) {
  const double seconds = result["seconds"]["median"].as_double();
  const double tokens = result["tokens"].as_double();
  EXPECT_GT(seconds, 0);
  EXPECT_LE(result["seconds"]["min"].as_double(), seconds);
  EXPECT_GE(result["seconds"]["max"].as_double(), seconds);
  const double slowest = tokens / result["seconds"]["max"].as_double();
  EXPECT_NEAR(result["tokens_per_second"]["min"].as_double(), slowest, 1e-6 * slowest);
  EXPECT_GT(result["operations_per_second"].as_double(), 0);
  const bool is_memory = result["limit"].as_string() == "memory";
  EXPECT_TRUE(is_memory || result["limit"].as_string() == "arithmetic");
  const char* rate = is_memory ? "bytes_per_second" : "operations_per_second";
  const char* most = is_memory ? "read_bytes_per_second" : "operations_per_second";
  const double share = result[rate].as_double() / machine[most].as_double();
  EXPECT_NEAR(result["share_of_limit"].as_double(), share, 1e-6 * share);
}

TEST(Bench, MeasuresTheEmbeddedModel) {
  const Json json = BenchJson({"--quick"});
  EXPECT_TRUE(json["complete"].as_bool());
  EXPECT_EQ(json["model"]["file"].as_string(), "embedded model");
  EXPECT_GT(json["model"]["bytes"].as_int(), 1 << 20);
  EXPECT_GT(json["machine"]["cores"].as_int(), 0);
  EXPECT_GT(json["machine"]["read_bytes_per_second"].as_double(), 0);
  EXPECT_GT(json["threads"].as_int(), 0);
  ASSERT_EQ(json["results"].items().size(), 3U);
  Arguments names;
  for (const Json& result : json["results"].items()) {
    ExpectConsistent(result, json["machine"]);
    EXPECT_EQ(result["repetitions"].items().size(), 2U);
    names.push_back(result["name"].as_string());
  }
  EXPECT_EQ(names, (Arguments{"prefill 128", "decode 8", "decode 4 x 8"}));
}

TEST(Bench, MeasuresDrafting) {
  const Arguments only = {"-p", "0", "-n", "0", "-d", "8", "-r", "1", "-t", "1", "--drafting"};
  const Json json = BenchJson(only);
  EXPECT_TRUE(json["results"].items().empty());
  ASSERT_EQ(json["drafting"].items().size(), 2U);
  int n_sequences = 1;
  for (const Json& costs : json["drafting"].items()) {
    EXPECT_EQ(costs["parallel"].as_int(), std::exchange(n_sequences, 4));
    EXPECT_EQ(costs["n_depth"].as_int(), 8);
    ASSERT_EQ(costs["verify_seconds"].items().size(), 16U);
    ASSERT_EQ(costs["draft_seconds"].items().size(), 8U);
    ASSERT_EQ(costs["gains"].items().size(), 8U);
    const double plain = costs["verify_seconds"].items()[0].as_double();
    const double round = costs["verify_seconds"].items()[4].as_double() +
                         costs["draft_seconds"].items()[3].as_double();
    EXPECT_GT(plain, 0);
    const Json& gain = costs["gains"].items()[3];
    EXPECT_EQ(gain["drafts"].as_int(), 4);
    EXPECT_NEAR(gain["speed_up_all_accepted"].as_double(), 5 * plain / round, 1e-9);
    EXPECT_NEAR(gain["break_even_acceptance"].as_double(), (round / plain - 1) / 4, 1e-9);
  }
  Arguments others = only;
  others.insert(others.end(), {"--spec", "ngram", "--draft", "/nothing/here.gguf"});
  const Finished table = Bench(others);
  EXPECT_EQ(table.exit_code, 0);
  EXPECT_NE(table.err.find("\n--draft: not loaded, for --spec is ngram\n"), std::string::npos);
  EXPECT_NE(table.out.find("\n4 sequences at 8 "), std::string::npos) << table.out;
  EXPECT_NE(table.out.find("\n16 rows, 15 drafts "), std::string::npos) << table.out;
}

TEST(Bench, TakesWhatItIsTold) {
  const Json json = BenchJson({"-p", "0", "-n", "2", "-d", "5", "--npl", "3", "-r", "1", "-t", "1",
                               "--cpu-isa", "scalar", "--kv-type", "q8_0", "--no-pack"});
  EXPECT_EQ(json["isa"].as_string(), "scalar");
  EXPECT_EQ(json["threads"].as_int(), 1);
  EXPECT_EQ(json["kv_type"].as_string(), "q8_0");
  EXPECT_FALSE(json["packed"].as_bool(true));
  ASSERT_EQ(json["results"].items().size(), 1U);
  const Json& result = json["results"].items()[0];
  EXPECT_EQ(result["kind"].as_string(), "decode");
  EXPECT_EQ(result["n_depth"].as_int(), 5);
  EXPECT_EQ(result["parallel"].as_int(), 3);
  EXPECT_EQ(result["tokens"].as_int(), 6);
}

TEST(Bench, PrintsATableForPeople) {
  const Finished finished = Bench({"-p", "16", "-n", "2", "-d", "0", "--parallel", "1", "-r", "1"});
  EXPECT_EQ(finished.exit_code, 0);
  for (const char* wanted : {"model    ", "\nmachine  ", "\ncompute  ", "\nlimits   ", "\nwork ",
                             "\nprefill 16 ", "\ndecode 2 "}) {
    EXPECT_NE(finished.out.find(wanted), std::string::npos) << wanted << " in " << finished.out;
  }
  EXPECT_EQ(finished.out.find('\x1b'), std::string::npos);
  EXPECT_EQ(finished.err,
            "no model given: using the embedded tiny model (a toy; -m MODEL for a real one)\n");
}

TEST(Bench, UsesACheckpointThatIsInTheCache) {
  const std::string cache = MakeTempDir();
  std::filesystem::create_directory(cache + "/synthetic");
  std::filesystem::copy_file(SourcePath("models/tiny/facet-tiny.gguf"),
                             cache + "/synthetic/e2b-15-q4_0.gguf");
  const Json json = BenchJson({"--quick", "--synth", "e2b:15", "--cache-dir", cache});
  EXPECT_EQ(json["model"]["file"].as_string(), cache + "/synthetic/e2b-15-q4_0.gguf");
  EXPECT_EQ(json["model"]["name"].as_string(), "Facet Tiny");
}

TEST(Bench, MakesNothingOfWhatIsNoShape) {
  const std::string cache = MakeTempDir();
  EXPECT_EQ(Bench({"--synth", "e3b", "--cache-dir", cache}).err,
            "facet: --synth: \"e3b\", wanted e2b, e4b, 12b, 26b-a4b or 31b\n");
  EXPECT_EQ(Bench({"--synth", "e2b", "--type", "../q4_0", "--cache-dir", cache}).err,
            "facet: --type: \"../q4_0\", wanted a type that facet synth knows\n");
  EXPECT_TRUE(std::filesystem::is_empty(cache));
}

std::string ErrorOf(const Arguments& arguments) {
  const Finished finished = Bench(arguments);
  EXPECT_EQ(finished.exit_code, 1);
  EXPECT_EQ(finished.out, "");
  const size_t begin = finished.err.find("facet: ");
  return begin == std::string::npos ? finished.err : finished.err.substr(begin);
}

TEST(Bench, RefusesWhatCannotBeMeasured) {
  EXPECT_EQ(ErrorOf({"-p", "1,x"}),
            "facet: --n-prompt: \"x\", wanted whole numbers from 0 to 1048576, with commas "
            "between\n");
  EXPECT_EQ(ErrorOf({"-p", "0", "-n", "0"}),
            "facet: facet bench: nothing to measure, wanted --n-prompt or --n-gen that the model's "
            "context holds, or --drafting\n");
  EXPECT_EQ(ErrorOf({"-p", "0", "-d", "1000000"}),
            "facet: --n-depth: decode 32 at 1000000: 1000032 positions, wanted at most the 4096 of "
            "the model\n");
  EXPECT_EQ(ErrorOf({"--type", "q4_0"}),
            "facet: --type: given without --synth, wanted a shape to be made\n");
  EXPECT_EQ(ErrorOf({"-r", "0"}),
            "facet: --repetitions: \"0\", wanted a whole number from 1 to 1000\n");
  const Finished missing = Bench({"-m", "missing.gguf"});
  EXPECT_EQ(missing.exit_code, 2);
}

TEST(Bench, CtrlCEndsItWithWhatIsThere) {
  if (!HasTerminals()) {
    GTEST_SKIP() << kNoTerminals;
  }
  TerminalProcess process({"bench", "-p", "256", "-n", "0", "-r", "1000"}, {"TERM=xterm"});
  process.ReadUntil("prefill 256: ");
  process.ReadUntil(" of 1000, 256 of 256 tokens");  // a repetition is whole
  process.Signal(SIGINT);
  EXPECT_EQ(process.Wait(), 130);
  EXPECT_NE(process.raw().find("prefill 256            \x1b[1m"), std::string::npos);
}

}  // namespace
}  // namespace facet::testing
