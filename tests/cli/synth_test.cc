// SPDX-License-Identifier: Apache-2.0
// `facet synth`: the program makes a file that it runs.
#include <gtest/gtest.h>

#include <cstdio>

#include "base/file.h"
#include "cli/process.h"
#include "support/testing.h"

namespace facet::testing {
namespace {

void ExpectFailure(const std::vector<std::string>& arguments, int exit_code,
                   const std::string& message) {
  const Finished finished = RunFacet(arguments);
  EXPECT_EQ(finished.exit_code, exit_code) << message;
  EXPECT_EQ(finished.err, "facet: " + message + "\n");
}

TEST(Synth, MakesASoundDrafter) {
  const std::string path = MakeTempDir() + "/drafter.gguf";
  const Finished made = RunFacet({"synth", "--shape", "e4b", "--drafter", "--seed", "7", path});
  EXPECT_EQ(made.exit_code, 0);
  EXPECT_EQ(made.out + made.err, "");
  const Finished check = RunFacet({"inspect", "--check", path});
  EXPECT_EQ(check.exit_code, 0) << check.out;
  EXPECT_NE(check.out.find("Gemma 4 E4B drafter, random weights\n"), std::string::npos);
  EXPECT_NE(check.out.find("all are numbers\n"), std::string::npos) << check.out;
  const std::string ordering = "note: tensors of type I32 were not read\n";
  ASSERT_NE(check.out.find(ordering), std::string::npos) << check.out;
  EXPECT_EQ(check.out.find("note:"), check.out.rfind(ordering)) << check.out;
  EXPECT_EQ(check.out.rfind("note:"), check.out.rfind(ordering)) << check.out;
  std::remove(path.c_str());
}

TEST(Synth, RefusesWrongUsage) {
  const std::string folder = MakeTempDir();
  ExpectFailure({"synth", folder + "/a.bin"}, 1,
                "facet synth: \"" + folder + "/a.bin\", wanted a name that ends in .gguf");
  ExpectFailure({"synth", "--shape", "e2b:99", folder + "/a.gguf"}, 1,
                "--shape: \"e2b:99\", wanted 5 to 35 layers of e2b");
  const Finished type = RunFacet({"synth", "--type", "q7", folder + "/a.gguf"});
  EXPECT_EQ(type.exit_code, 1);
  EXPECT_NE(type.err.find("\"q7\""), std::string::npos) << type.err;
  const std::string imatrix = TestdataPath("imatrix/tiny-q8_0.gguf");
  ExpectFailure({"synth", "--vocab", imatrix, folder + "/a.gguf"}, 2,
                imatrix + ", tokenizer.ggml.tokens: missing, wanted the tokenizer's array");
  EXPECT_FALSE(FileExists(folder + "/a.gguf"));
}

}  // namespace
}  // namespace facet::testing
