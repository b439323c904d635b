// SPDX-License-Identifier: Apache-2.0
// `facet inspect` on files that other programs made; the numbers are those that gguf-py reads.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "base/file.h"
#include "base/json.h"
#include "base/utf8.h"
#include "cli/process.h"
#include "support/testing.h"

namespace facet::testing {
namespace {

std::string GgufPath(const std::string& name) { return TestdataPath("text/gguf/" + name); }

Json InspectJson(std::vector<std::string> arguments, int exit_code) {
  arguments.insert(arguments.begin(), {"inspect", "--json"});
  const Finished finished = RunFacet(arguments);
  EXPECT_EQ(finished.exit_code, exit_code) << finished.err;
  const Result<Json> json = ParseJson(finished.out, "json");
  EXPECT_TRUE(json.ok()) << finished.out;
  return json.ok() ? *json : Json();
}

/// The item of a list whose `member` is `value`.
const Json& ItemWith(const Json& list, const std::string& member, const std::string& value) {
  static const Json kNone;
  for (const Json& item : list.items()) {
    if (item[member].as_string() == value) {
      return item;
    }
  }
  ADD_FAILURE() << "no " << member << " " << value;
  return kNone;
}

void ExpectLines(const std::string& text, const std::vector<std::string>& lines) {
  for (const std::string& line : lines) {
    EXPECT_NE(("\n" + text).find("\n" + line + "\n"), std::string::npos) << line << "\n" << text;
  }
}

size_t LongestLine(const std::string& text) {  // in characters
  std::istringstream stream(text);
  size_t longest = 0;
  for (std::string line; std::getline(stream, line);) {
    longest = std::max(longest, CountCodePoints(line));
  }
  return longest;
}

TEST(Inspect, TellsTheTypesOfTheTensors) {
  const Json json = InspectJson({GgufPath("dense-k256-Q4_K_M.gguf")}, 0);
  EXPECT_EQ(json["file"]["tensors"].as_int(), 30);
  EXPECT_EQ(json["file"]["parameters"].as_int(), 1362402);
  EXPECT_EQ(json["file"]["architecture"].as_string(), "gemma4");
  EXPECT_TRUE(json["refused"].is_null());
  const Json& type = ItemWith(json["tensor_types"], "type", "Q6_K");
  EXPECT_EQ(type["tensors"].as_int(), 3);
  EXPECT_EQ(type["bytes"].as_int(), 497280);
  EXPECT_NEAR(type["share"].as_double(), 497280.0 / (497280 + 423936 + 10120), 1e-9);
  EXPECT_FALSE(json.contains("tensors"));
}

TEST(Inspect, ListsTensorsAndMetadata) {
  const std::string path = GgufPath("etype-sharing-assistant-Q4_0.gguf");
  const Json json = InspectJson({"--tensors", path}, 0);
  ASSERT_EQ(json["tensors"].items().size(), 49U);
  const Json& tensor = ItemWith(json["tensors"], "name", "blk.3.attn_q.weight");
  EXPECT_EQ(tensor["shape"], Json::MakeArray({256, 32}));
  EXPECT_EQ(tensor["type"].as_string(), "Q4_0");
  EXPECT_EQ(tensor["bytes"].as_int(), 4608);
  EXPECT_EQ(tensor["offset"].as_int(), 194304);
  EXPECT_EQ(tensor["file"].as_int(), 0);
  ASSERT_EQ(json["metadata"].items().size(), 43U);
  const Json& key = ItemWith(json["metadata"], "key", "gemma4-assistant.embedding_length_out");
  EXPECT_EQ(key["type"].as_string(), "uint32");
  EXPECT_EQ(key["value"].as_int(), 64);
  const Json& tokens = ItemWith(json["metadata"], "key", "tokenizer.ggml.tokens");
  EXPECT_EQ(tokens["type"].as_string(), "[string]");
  EXPECT_EQ(tokens["count"].as_int(), 2048);
  EXPECT_EQ(tokens["value"].items().size(), 1024U);
  EXPECT_EQ(tokens["value"].items()[2].as_string(), "<bos>");

  const Finished text = RunFacet({"inspect", "--tensors", path});
  EXPECT_EQ(text.exit_code, 0);
  ExpectLines(text.out,
              {"  uint32     gemma4-assistant.embedding_length_out = 64",
               "  float32    general.sampling.top_p = 0.95",
               "  [bool]     gemma4-assistant.attention.sliding_window_pattern = [4] true, tr...",
               "  blk.3.attn_q.weight                256x32  Q4_0     4.61 kB       194304"});
  EXPECT_LE(LongestLine(text.out.substr(text.out.find("\nMetadata\n"))), 80U);
}

TEST(Inspect, ShowsFilesThatAreNoTextModel) {
  const std::string drafter = GgufPath("etype-sharing-assistant-Q4_0.gguf");
  const Finished text = RunFacet({"inspect", drafter});
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_EQ(text.err, "");
  const std::string reason = drafter +
                             ", general.architecture: \"gemma4-assistant\" (a drafter), wanted "
                             "\"gemma4\"";
  ExpectLines(
      text.out,
      {"Etype Sharing Assistant", "  architecture  gemma4-assistant",
       "  does not run  general.architecture: \"gemma4-assistant\" (a drafter), wanted \"gemma4\"",
       "  Q8_0          1    69.6 kB   54.9%"});
  const Json json = InspectJson({drafter}, 0);
  EXPECT_EQ(json["refused"].as_string(), reason);
  EXPECT_FALSE(json.contains("model"));

  const Json imatrix = InspectJson({"--tensors", TestdataPath("imatrix/tiny-q8_0.gguf")}, 0);
  EXPECT_EQ(imatrix["file"]["parameters"].as_int(), 12176);
  EXPECT_EQ(imatrix["tensors"].items()[0]["name"].as_string(), "blk.0.attn_k.weight.in_sum2");
  EXPECT_EQ(imatrix["tensors"].items()[0]["offset"].as_int(), 9728);
  EXPECT_EQ(ItemWith(imatrix["metadata"], "key", "imatrix.chunk_size")["value"].as_int(), 256);
}

TEST(Inspect, ShowsAProjector) {
  const auto path = SharedPath("models/gguf/mmproj-facet-tiny-bf16.gguf");
  if (!path.has_value()) {
    GTEST_SKIP() << kNoShared;
  }
  const Json json = InspectJson({"--check", *path}, 0);
  EXPECT_EQ(json["file"]["architecture"].as_string(), "clip");
  EXPECT_EQ(json["file"]["tensors"].as_int(), 258);
  EXPECT_EQ(json["check"]["values"].as_int(), 581908);
}

TEST(Inspect, ShowsAHuggingFaceDirectory) {
  const std::string folder = TestdataPath("text/etype-sharing-assistant");
  const Json json = InspectJson({"--tensors", folder}, 0);
  EXPECT_EQ(json["file"]["format"].as_string(), "safetensors");
  EXPECT_EQ(ItemWith(json["tensors"], "source_name", "pre_projection.weight")["shape"],
            Json::MakeArray({32, 128}));
  EXPECT_EQ(ItemWith(json["metadata"], "key", "backbone_hidden_size")["value"].as_int(), 64);
}

TEST(Inspect, ChecksEveryValue) {
  const std::string path = GgufPath("etype-sharing-assistant-centroids-Q8_0.gguf");
  const Json check = InspectJson({"--check", path}, 0)["check"];
  EXPECT_EQ(check["values"].as_int(), 164580);
  EXPECT_EQ(check["nan"].as_int(), 0);
  EXPECT_EQ(check["zero_rows"].as_int(), 0);
  EXPECT_EQ(check["unread"], Json::MakeArray({"I32"}));
  ExpectLines(
      RunFacet({"inspect", "--check", path}).out,
      {"  164580 values read, all are numbers", "  note: tensors of type I32 were not read"});
}

/// The tiny model with other bytes at some places.
std::string Patched(const std::vector<std::pair<size_t, std::string>>& patches) {
  std::string bytes = ReadOrDie(TestdataPath("tiny-gguf/facet-tiny-q8_0.gguf"));
  for (const auto& [offset, patch] : patches) {
    bytes.replace(offset, patch.size(), patch);
  }
  const std::string path = MakeTempDir() + "/patched.gguf";
  EXPECT_TRUE(WriteFile(path, bytes).ok());
  return path;
}

constexpr size_t kEmbeddingOffset = 86848;  // [2048, 128] in blocks of 32 values and 34 bytes
constexpr size_t kEmbeddingRow = 136;

TEST(Inspect, FindsBrokenValues) {
  const std::string path =
      Patched({{kEmbeddingOffset + 7 * kEmbeddingRow + 34, std::string("\x00\x7e", 2)},
               {kEmbeddingOffset + 9 * kEmbeddingRow, std::string(kEmbeddingRow, '\0')}});
  const Json check = InspectJson({"--check", path}, 1)["check"];
  EXPECT_EQ(check["nan"].as_int(), 32);
  EXPECT_EQ(check["infinite"].as_int(), 0);
  ASSERT_EQ(check["findings"].items().size(), 20U);
  EXPECT_EQ(check["findings"].items()[0],
            Json::MakeObject(
                {{"tensor", "token_embd.weight"}, {"row", 7}, {"column", 32}, {"value", "NaN"}}));
  EXPECT_EQ(check["findings"].items()[19]["column"].as_int(), 51);
  EXPECT_EQ(check["zeros"],
            Json::MakeArray({Json::MakeObject(
                {{"tensor", "token_embd.weight"}, {"rows", 1}, {"of", 2048}, {"first", 9}})}));
  const Finished text = RunFacet({"inspect", "--check", path});
  EXPECT_EQ(text.exit_code, 1);
  ExpectLines(text.out, {"  2964490 values read: 32 are NaN, 0 are infinite",
                         "  NaN   token_embd.weight, row 7, column 32", "  and 12 more",
                         "  note: token_embd.weight, 1 of 2048 rows are zero, the first is 9"});
}

TEST(Inspect, RowsOfZerosAreNoFault) {
  const std::string path =
      Patched({{kEmbeddingOffset + 9 * kEmbeddingRow, std::string(kEmbeddingRow, '\0')}});
  EXPECT_EQ(InspectJson({"--check", path}, 0)["check"]["zero_rows"].as_int(), 1);
}

TEST(Inspect, AFileIsLikeItself) {
  const std::string path = GgufPath("moe-keqv-Q4_0.gguf");
  const Json diff = InspectJson({"--diff", path, path}, 0)["diff"];
  EXPECT_EQ(diff["metadata"], Json(Json::Array()));
  EXPECT_EQ(diff["tensors"], Json(Json::Array()));
  EXPECT_EQ(diff["same_tensors"].as_int(), 134);
}

TEST(Inspect, TellsHowFarQuantisedValuesAreApart) {
  const std::string here = GgufPath("dense-k256-Q4_K_M.gguf");
  const std::string there = GgufPath("dense-k256-IQ4_XS.gguf");
  const Json diff = InspectJson({"--diff", there, here}, 1)["diff"];
  EXPECT_EQ(diff["same_tensors"].as_int(), 17);
  ASSERT_EQ(diff["tensors"].items().size(), 13U);
  const Json& k = ItemWith(diff["tensors"], "name", "blk.0.attn_k.weight");
  EXPECT_NEAR(k["max_difference"].as_double(), 0.03047943115234375, 1e-7);
  EXPECT_NEAR(k["relative_difference"].as_double(), 0.10366829590952312, 1e-7);
  const Json& type = ItemWith(diff["metadata"], "key", "general.file_type");
  EXPECT_EQ(type["here"].as_string(), "uint32 15");
  EXPECT_EQ(type["there"].as_string(), "uint32 30");
  const Finished text = RunFacet({"inspect", "--diff", there, here});
  ExpectLines(text.out, {"  general.file_type", "    A: uint32 15", "    B: uint32 30",
                         "Metadata: 1 key differs", "Tensors: 13 differ, 17 are the same",
                         "    values: at most 0.0305 apart, 10.4% of their size"});
}

TEST(Inspect, TellsWhatOnlyOneFileHas) {
  const Json diff = InspectJson({"--diff", GgufPath("etype-sharing-assistant-Q4_0.gguf"),
                                 GgufPath("etype-sharing-assistant-centroids-Q8_0.gguf")},
                                1)["diff"];
  const Json& ordering = ItemWith(diff["tensors"], "name", "masked_embd_ordering");
  EXPECT_EQ(ordering["here"].as_string(), "I32 2048");
  EXPECT_TRUE(ordering["there"].is_null());
  EXPECT_TRUE(ordering["max_difference"].is_null());
}

TEST(Inspect, TellsWhereArraysDiffer) {
  const std::string path = TestdataPath("tiny-gguf/facet-tiny-q8_0.gguf");
  const std::string bytes = ReadOrDie(path);
  const size_t token = bytes.find("<mask>");
  ASSERT_NE(token, std::string::npos);
  const Json diff = InspectJson({"--diff", Patched({{token, "<musk>"}}), path}, 1)["diff"];
  ASSERT_EQ(diff["metadata"].items().size(), 1U);
  EXPECT_EQ(diff["metadata"].items()[0], Json::MakeObject({{"key", "tokenizer.ggml.tokens"},
                                                           {"here", "\"<mask>\""},
                                                           {"there", "\"<musk>\""},
                                                           {"index", 4}}));
}

TEST(Inspect, RefusesWhatCannotBeRead) {
  const std::string folder = MakeTempDir();
  const std::string good = GgufPath("moe-keqv-Q4_0.gguf");
  ASSERT_TRUE(WriteFile(folder + "/cut.gguf", ReadOrDie(good).substr(0, 90000)).ok());
  EXPECT_EQ(RunFacet({"inspect", folder + "/cut.gguf"}).exit_code, 2);
  EXPECT_EQ(RunFacet({"inspect", "--diff", folder + "/cut.gguf", good}).exit_code, 2);
  const std::string empty = MakeTempDir();
  EXPECT_EQ(RunFacet({"inspect", empty}).err,
            "facet: " + empty +
                ": no weights, wanted model.safetensors or model.safetensors.index.json\n");
}

}  // namespace
}  // namespace facet::testing
