// SPDX-License-Identifier: Apache-2.0
// Weights that are arranged for the processor while loading: what is told of it, and that it
// changes nothing.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/json.h"
#include "cli/process.h"
#include "compute/context.h"
#include "compute/cpu.h"
#include "compute/packed_weights.h"
#include "support/testing.h"

namespace facet::testing {
namespace {

std::string QuantizedModel() { return TestdataPath("tiny-gguf/facet-tiny-q8_0.gguf"); }

bool CanPack() { return HasPackedKernel(KernelsFor(BestIsa()), TensorType::kQ8_0); }

TEST(Packing, InspectListsTheInstructionSetsAndTheOneInUse) {
  const Finished text = RunFacet({"inspect", QuantizedModel()});
  ASSERT_EQ(text.exit_code, 0) << text.err;
  std::string line = " ";
  for (const Isa isa : SupportedIsas()) {
    line += " " + std::string(NameOf(isa)) + (isa == BestIsa() ? " (in use)" : "");
  }
  EXPECT_NE(text.out.find("\nInstruction sets\n" + line + "\n"), std::string::npos) << text.out;
  const Json json = *ParseJson(RunFacet({"inspect", "--json", QuantizedModel()}).out, "json");
  EXPECT_EQ(json["compute"]["isa"].as_string(), NameOf(BestIsa()));
  EXPECT_EQ(json["compute"]["supported"].items().size(), SupportedIsas().size());
}

TEST(Packing, InspectTellsWhatIsPackedAndWhatItTakes) {
  const Json json = *ParseJson(RunFacet({"inspect", "--json", QuantizedModel()}).out, "json");
  const Json& packed = json["packed_weights"];
  const std::string text = RunFacet({"inspect", QuantizedModel()}).out;
  if (!CanPack()) {
    EXPECT_EQ(packed["matrices"].as_int(), 0);
    EXPECT_EQ(text.find("arranged"), std::string::npos);
    return;
  }
  ASSERT_EQ(packed["types"].items().size(), 1U);
  EXPECT_EQ(packed["types"].items()[0].as_string(), "Q8_0");
  const std::string line = "\n  " + std::to_string(packed["matrices"].as_int()) +
                           " matrices are arranged for it while loading: Q8_0\n";
  EXPECT_NE(text.find(line), std::string::npos) << text;
  EXPECT_GT(packed["bytes"].as_int(), 0);
  EXPECT_LE(100 * packed["bytes"].as_int(), 102 * packed["file_bytes"].as_int());
}

TEST(Packing, NothingIsPackedOfFloats) {
  const Json json =
      *ParseJson(RunFacet({"inspect", "--json", TestdataPath("tiny-hf")}).out, "json");
  EXPECT_EQ(json["packed_weights"]["matrices"].as_int(), 0);
  EXPECT_EQ(json["packed_weights"]["bytes"].as_int(), 0);
}

TEST(Packing, ChangesNoReply) {
  const std::vector<std::string> arguments = {"run", "-m", QuantizedModel(),  "--seed", "3",
                                              "-n",  "40", "Tell me a story."};
  const Finished packed = RunFacet(arguments);
  EXPECT_EQ(packed.exit_code, 0) << packed.err;
  std::vector<std::string> without = arguments;
  without.insert(without.begin() + 1, "--no-pack");
  const Finished plain = RunFacet(without);
  EXPECT_EQ(plain.exit_code, 0) << plain.err;
  EXPECT_FALSE(packed.out.empty());
  EXPECT_EQ(packed.out, plain.out);
}

TEST(Packing, IsShownOnATerminalOnly) {
  const Finished run = RunFacet({"run", "-m", QuantizedModel(), "-n", "1", "Hello"});
  EXPECT_EQ(run.err.find("arranging"), std::string::npos) << run.err;
}

}  // namespace
}  // namespace facet::testing
