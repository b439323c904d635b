// SPDX-License-Identifier: Apache-2.0
// `facet check --bits` on the embedded model: the verdict, JSON, and what is refused.
#include <gtest/gtest.h>

#include "base/json.h"
#include "cli/process.h"
#include "compute/cpu.h"
#include "support/testing.h"

namespace facet::testing {
namespace {

const std::string kModel = SourcePath("models/tiny/facet-tiny.gguf");

TEST(Check, SaysThatAllIsEqual) {
  const Finished finished =
      RunFacet({"check", "--bits", "-m", kModel, "--seconds", "2", "--seed", "7", "-t", "2"});
  EXPECT_EQ(finished.exit_code, 0) << finished.out << finished.err;
  EXPECT_EQ(finished.out.find("reference  "), 0U) << finished.out;
  EXPECT_NE(finished.out.find(" comparisons, all equal (seed 7)\n"), std::string::npos)
      << finished.out;
  EXPECT_EQ(finished.err, "");
}

TEST(Check, TellsProgramsWhatItDid) {
  const Finished finished = RunFacet({"check", "--bits", "--json", "--seconds", "1", "--seed", "9",
                                      "--kv-type", "q8_0", "--no-pack"});
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  const Result<Json> json = ParseJson(finished.out, "result");
  ASSERT_TRUE(json.ok()) << finished.out;
  EXPECT_EQ((*json)["model"].as_string(), "embedded model");
  EXPECT_EQ((*json)["seed"].as_int(), 9);
  EXPECT_TRUE((*json)["equal"].as_bool());
  EXPECT_TRUE((*json)["difference"].is_null());
  EXPECT_EQ((*json)["reference"]["isa"].as_string(), NameOf(BestIsa()));
  int64_t n_rows = 0;
  for (const Json& one : (*json)["checked"].items()) {
    EXPECT_EQ(one["kv_type"].as_string(), "q8_0");
    EXPECT_FALSE(one["packed"].as_bool(true));
    n_rows += one["rows"].as_int();
  }
  EXPECT_GT(n_rows, 0);
  EXPECT_EQ((*json)["comparisons"].as_int(), n_rows);
}

TEST(Check, KeepsToOneSetWhereItIsAsked) {
  const Finished finished = RunFacet({"check", "--bits", "--json", "--seconds", "0", "-m", kModel,
                                      "--cpu-isa", "scalar", "-t", "1", "--no-pack"});
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  const Result<Json> json = ParseJson(finished.out, "result");
  ASSERT_TRUE(json.ok()) << finished.out;
  ASSERT_EQ((*json)["checked"].items().size(), 1U);
  EXPECT_EQ((*json)["checked"].items()[0]["isa"].as_string(), "scalar");
  EXPECT_EQ((*json)["settings_left_out"].as_int(-1), 0);
}

std::string ErrorOf(const std::vector<std::string>& arguments, int exit_code) {
  const Finished finished = RunFacet(arguments);
  EXPECT_EQ(finished.exit_code, exit_code);
  EXPECT_EQ(finished.out, "");
  return finished.err;
}

TEST(Check, RefusesWhatItCannotDo) {
  EXPECT_EQ(ErrorOf({"check"}, 1), "facet: facet check: nothing to check, wanted --bits\n");
  EXPECT_EQ(ErrorOf({"check", "--bits", "-m", "/nothing/here.gguf"}, 2),
            "facet: /nothing/here.gguf: cannot open: No such file or directory\n");
  EXPECT_EQ(ErrorOf({"check", "--bits", "--seconds", "-1"}, 1),
            "facet: --seconds: \"-1\", wanted a whole number from 0 to 1000000\n");
  EXPECT_NE(ErrorOf({"check", "--bits", "--cpu-isa", "mmx", "-m", kModel}, 1).find("\"mmx\""),
            std::string::npos);
}

}  // namespace
}  // namespace facet::testing
