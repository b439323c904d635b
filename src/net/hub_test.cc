// SPDX-License-Identifier: Apache-2.0
#include "net/hub.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/sha256.h"

namespace facet {
namespace {

using ::testing::ElementsAre;

std::vector<HubFile> Files(const std::vector<std::string>& paths) {
  std::vector<HubFile> files;
  for (const std::string& path : paths) {
    files.push_back({.path = path, .size = 1'500'000'000});
  }
  return files;
}

std::vector<std::string> Chosen(const std::vector<std::string>& paths,
                                const std::string& tag = {}) {
  const auto choice = ChooseModel(Files(paths), tag, "o/r");
  if (!choice.ok()) {
    return {choice.error().Message()};
  }
  std::vector<std::string> chosen = {choice->model};
  for (const HubFile& file : choice->files) {
    chosen.push_back(file.path);
  }
  return chosen;
}

std::string Refusal(const std::string& json) {
  const auto files = ParseListing(json, "o/r");
  return files.ok() ? "accepted" : files.error().Message();
}

TEST(ParseListing, ReadsPathsSizesAndDigests) {
  const std::string digest = Sha256Hex("x");
  const auto files = ParseListing(
      R"({"id": "o/r", "siblings": [{"rfilename": "a/b.gguf", "size": 12, "blobId": "q",
          "lfs": {"sha256": ")" +
          digest + R"(", "size": 12, "pointerSize": 135}},
          {"rfilename": "README.md"}, {"rfilename": "c", "size": "1", "lfs": null},
          {"rfilename": "d", "size": -1, "lfs": {"sha256": "abc"}}]})",
      "o/r");
  ASSERT_TRUE(files.ok());
  EXPECT_THAT(*files, ElementsAre(HubFile{"a/b.gguf", 12, digest}, HubFile{.path = "README.md"},
                                  HubFile{.path = "c"}, HubFile{.path = "d"}));
}

TEST(ParseListing, RefusesHostileListings) {
  EXPECT_EQ(Refusal("{}"), "o/r: siblings: null, wanted an array");
  EXPECT_EQ(Refusal("[]"), "o/r: siblings: null, wanted an array");
  EXPECT_EQ(Refusal(R"({"siblings": {"a": 1}})"), "o/r: siblings: an object, wanted an array");
  for (const std::string path :
       {"../x", "a/../../x", "/etc/passwd", "a//b", "a\\\\b", "x.part", "", "a\\u0001", "a/"}) {
    const std::string message = Refusal(R"({"siblings": [{"rfilename": ")" + path + R"("}]})");
    EXPECT_TRUE(message.starts_with("o/r: file name \"")) << message;
    EXPECT_TRUE(message.ends_with("\", wanted a path within the repository")) << message;
  }
  EXPECT_EQ(Refusal(R"({"siblings": [1]})"),
            "o/r: file name \"\", wanted a path within the repository");
  EXPECT_EQ(Refusal(R"({"siblings": [{"rfilename": 7}]})"),
            "o/r: file name \"\", wanted a path within the repository");
  std::string many = R"({"siblings": [1)";
  for (int i = 0; i < 20000; ++i) {
    many += ",1";
  }
  EXPECT_EQ(Refusal(many + "]}"), "o/r: siblings: 20001 files, wanted at most 20000");
  EXPECT_NE(Refusal(std::string(1000, '[')), "accepted");
  EXPECT_NE(Refusal("{\"siblings\": " + std::string(kMaxListingBytes, ' ') + "[]}"), "accepted");
  EXPECT_NE(Refusal("<html>"), "accepted");
}

TEST(ChooseModel, TakesTheOnlyModel) {
  EXPECT_THAT(Chosen({"README.md", "m-Q8_0.gguf", "mmproj-m-F16.gguf", "m.imatrix.gguf"}),
              ElementsAre("m-Q8_0.gguf", "m-Q8_0.gguf"));
  EXPECT_THAT(
      Chosen({"d/m-00002-of-00002.gguf", "d/m-00001-of-00002.gguf"}),
      ElementsAre("d/m-00001-of-00002.gguf", "d/m-00001-of-00002.gguf", "d/m-00002-of-00002.gguf"));
}

TEST(ChooseModel, TakesADrafterOnlyWhereThereIsNothingElse) {
  EXPECT_THAT(Chosen({"m-Q8_0.gguf", "m-Assistant-Q4_K_M.gguf"}),
              ElementsAre("m-Q8_0.gguf", "m-Q8_0.gguf"));
  EXPECT_THAT(Chosen({"m-Q8_0.gguf", "m-assistant-Q8_0.gguf"}, "Q8_0"),
              ElementsAre("m-Q8_0.gguf", "m-Q8_0.gguf"));
  EXPECT_THAT(Chosen({"m-assistant-Q8_0.gguf", "m-assistant-Q4_K_M.gguf"}),
              ElementsAre("m-assistant-Q4_K_M.gguf", "m-assistant-Q4_K_M.gguf"));
}

TEST(ChooseModel, PrefersQ4KMAmongSeveral) {
  const auto files = Files({"m-Q8_0.gguf", "m-Q4_K_M.gguf", "m-Q4_K_S.gguf"});
  const auto choice = ChooseModel(files, "", "o/r");
  ASSERT_TRUE(choice.ok());
  EXPECT_EQ(choice->model, "m-Q4_K_M.gguf");
  EXPECT_EQ(choice->n_candidates, 3u);
  EXPECT_THAT(Chosen({"m-Q8_0.gguf", "BF16/m-BF16-00001-of-00002.gguf",
                      "BF16/m-BF16-00002-of-00002.gguf", "n-00001-of-00002.gguf"}),
              ElementsAre("o/r: 2 models, wanted one, by :TAG or /FILE; there are "
                          "BF16/m-BF16-00001-of-00002.gguf (3.00 GB), m-Q8_0.gguf (1.50 GB)"));
}

TEST(ChooseModel, FindsTagsAsWords) {
  const std::vector<std::string> paths = {"m-Q4_K_M.gguf", "m-UD-Q4_K_XL.gguf", "m.q8_0.gguf",
                                          "m-Q4_0.gguf", "q6_k/m-other.gguf"};
  EXPECT_THAT(Chosen(paths, "q4_k_m"), ElementsAre("m-Q4_K_M.gguf", "m-Q4_K_M.gguf"));
  EXPECT_THAT(Chosen(paths, "Q8_0"), ElementsAre("m.q8_0.gguf", "m.q8_0.gguf"));
  EXPECT_THAT(Chosen(paths, "UD-Q4_K_XL"), ElementsAre("m-UD-Q4_K_XL.gguf", "m-UD-Q4_K_XL.gguf"));
  EXPECT_THAT(Chosen({"m-Q4_K_M.gguf"}, "Q4_K"),
              ElementsAre("o/r: 0 models with \"Q4_K\", wanted one, by :TAG or /FILE; there are "
                          "m-Q4_K_M.gguf (1.50 GB)"));
  EXPECT_THAT(Chosen({"a-Q8_0.gguf", "b-Q8_0.gguf"}, "Q8_0"),
              ElementsAre("o/r: 2 models with \"Q8_0\", wanted one, by :TAG or /FILE; there are "
                          "a-Q8_0.gguf (1.50 GB), b-Q8_0.gguf (1.50 GB)"));
  EXPECT_THAT(Chosen({"config.json", "model.safetensors"}, "Q8_0"),
              ElementsAre("o/r: 0 models with \"Q8_0\", wanted one"));
}

TEST(ChooseModel, TakesADirectoryWhereThereIsNoGguf) {
  EXPECT_THAT(
      Chosen({"README.md", "config.json", "model-00001-of-00002.safetensors",
              "model-00002-of-00002.safetensors", "model.safetensors.index.json", "tokenizer.json",
              "tokenizer_config.json", "chat_template.jinja", "generation_config.json",
              "original/model.safetensors", "adapter.safetensors", "pytorch_model.bin"}),
      ElementsAre("", "config.json", "model-00001-of-00002.safetensors",
                  "model-00002-of-00002.safetensors", "model.safetensors.index.json",
                  "tokenizer.json", "tokenizer_config.json", "chat_template.jinja",
                  "generation_config.json"));
  const std::string none =
      ", none of them a model, wanted a .gguf file, or config.json and model*.safetensors";
  EXPECT_THAT(Chosen({"config.json", "README.md"}), ElementsAre("o/r: 2 files" + none));
  EXPECT_THAT(Chosen({"model.safetensors"}), ElementsAre("o/r: 1 files" + none));
  EXPECT_THAT(Chosen({}), ElementsAre("o/r: 0 files" + none));
}

TEST(ChooseModel, ListsNotMoreThanCanBeRead) {
  std::vector<std::string> paths;
  for (int i = 0; i < 40; ++i) {
    paths.push_back("m" + std::to_string(100 + i) + ".gguf");
  }
  const std::string message = Chosen(paths)[0];
  EXPECT_TRUE(message.ends_with("m129.gguf (1.50 GB) and 10 more")) << message;
  auto files = Files({"a.gguf", "b.gguf"});
  files[1].size = std::nullopt;
  EXPECT_EQ(ChooseModel(files, "", "o/r").error().Message(),
            "o/r: 2 models, wanted one, by :TAG or /FILE; there are a.gguf (1.50 GB), b.gguf");
}

}  // namespace
}  // namespace facet
