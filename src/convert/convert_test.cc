// SPDX-License-Identifier: Apache-2.0
#include "convert/convert.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/json.h"
#include "format/gguf.h"
#include "model/checkpoint.h"
#include "support/testing.h"

namespace facet {
namespace {

using testing::MakeTempDir;
using testing::ReadOrDie;
using testing::SourcePath;
using testing::TestdataPath;

ConvertOptions Tiny(const std::string& out, const std::string& outtype) {
  ConvertOptions options;
  options.in = TestdataPath("tiny-hf");
  options.out = out;
  options.name = "Facet Tiny";
  options.outtype = outtype;
  return options;
}

TEST(ConvertToGguf, MakesTheEmbeddedModelByteForByte) {
  const std::string out = MakeTempDir() + "/tiny.gguf";
  const auto summary = ConvertToGguf(Tiny(out, "auto"));
  ASSERT_TRUE(summary.ok()) << summary.error().Message();
  EXPECT_EQ(summary->paths, std::vector{out});
  EXPECT_GT(summary->n_left_out, 200U);
  EXPECT_TRUE(ReadOrDie(out) == ReadOrDie(SourcePath("models/tiny/facet-tiny.gguf")));
  EXPECT_FALSE(FileExists(out + ".part"));
}

/// llama.cpp's converter is the second opinion: the same tensors with the same bytes, and the same
/// keys that matter.
TEST(ConvertToGguf, AgreesWithLlamaCppsConverter) {
  const std::string out = MakeTempDir() + "/tiny-q8_0.gguf";
  ASSERT_TRUE(ConvertToGguf(Tiny(out, "q8_0")).ok());
  const auto ours = gguf::File::Open(out);
  const auto theirs = gguf::File::Open(TestdataPath("tiny-gguf/facet-tiny-q8_0.gguf"));
  ASSERT_TRUE(ours.ok());
  ASSERT_TRUE(theirs.ok());
  ASSERT_EQ(ours->tensors().size(), theirs->tensors().size());
  for (const gguf::TensorView& tensor : theirs->tensors()) {
    const gguf::TensorView* mine = ours->Find(tensor.name);
    ASSERT_NE(mine, nullptr) << tensor.name;
    EXPECT_EQ(mine->type, tensor.type) << tensor.name;
    EXPECT_EQ(mine->shape, tensor.shape) << tensor.name;
    EXPECT_TRUE(
        std::equal(mine->data.begin(), mine->data.end(), tensor.data.begin(), tensor.data.end()))
        << tensor.name;
  }
  int n_same = 0;
  for (const auto& [key, value] : theirs->metadata().entries()) {
    // Not ours: a name for the number of parameters, and a token that no text path uses.
    if (key == "general.size_label" || key == "tokenizer.ggml.mask_token_id") {
      continue;
    }
    const gguf::Value* mine = ours->metadata().Find(key);
    ASSERT_NE(mine, nullptr) << key;
    if (key == "gemma4.attention.head_count_kv") {
      EXPECT_EQ(mine->IntAt(9), value.AsInt());  // theirs is a scalar where all layers are alike
    } else if (value.is_array()) {
      EXPECT_TRUE(mine->data == value.data) << key;
    } else if (value.AsDouble().has_value()) {
      EXPECT_EQ(mine->AsDouble(), value.AsDouble()) << key;
    } else {
      EXPECT_TRUE(mine->data == value.data) << key;
    }
    ++n_same;
  }
  EXPECT_GE(n_same, 36);
}

/// llama.cpp's converter, and the centroid head beside.
TEST(ConvertToGguf, ADrafterHasTheTensorsOfLlamaCppsConverter) {
  ConvertOptions options = Tiny(MakeTempDir() + "/drafter.gguf", "q8_0");
  options.in = TestdataPath("tiny-assistant");
  const auto summary = ConvertToGguf(options);
  ASSERT_TRUE(summary.ok()) << summary.error().Message();
  EXPECT_TRUE(summary->is_drafter);
  EXPECT_FALSE(summary->has_tokenizer);
  const auto ours = gguf::File::Open(options.out);
  const auto theirs =
      gguf::File::Open(TestdataPath("tiny-gguf/facet-tiny-assistant-centroids-q8_0.gguf"));
  ASSERT_TRUE(ours.ok() && theirs.ok());
  ASSERT_EQ(ours->tensors().size(), theirs->tensors().size());
  for (const gguf::TensorView& tensor : theirs->tensors()) {
    const gguf::TensorView* mine = ours->Find(tensor.name);
    ASSERT_NE(mine, nullptr) << tensor.name;
    EXPECT_EQ(mine->shape, tensor.shape) << tensor.name;
    if (tensor.name != "masked_embd_centroids.weight") {  // theirs are added as F32
      EXPECT_TRUE(
          std::equal(mine->data.begin(), mine->data.end(), tensor.data.begin(), tensor.data.end()))
          << tensor.name;
    }
  }
  for (const auto& [key, value] : theirs->metadata().entries()) {
    if (key.starts_with("gemma4-assistant.")) {
      const gguf::Value* mine = ours->metadata().Find(key);
      ASSERT_NE(mine, nullptr) << key;
      EXPECT_TRUE(mine->is_array() || mine->AsDouble() == value.AsDouble()) << key;
    }
  }
  options.tokenizer = TestdataPath("text/etype-sharing");
  EXPECT_FALSE(ConvertToGguf(options).ok());
  options.tokenizer = TestdataPath("tiny-gguf/facet-tiny-q8_0.gguf");
  ASSERT_TRUE(ConvertToGguf(options).ok());
}

TEST(ConvertToGguf, TheNameIsTheDirectorysUnlessGiven) {
  ConvertOptions options = Tiny(MakeTempDir() + "/tiny.gguf", "auto");
  options.name = "";
  ASSERT_TRUE(ConvertToGguf(options).ok());
  const auto file = gguf::File::Open(options.out);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(*file->metadata().Find("general.name")->AsString(), "tiny-hf");
}

TEST(ConvertToGguf, RefusesAndLeavesNothing) {
  const std::string folder = MakeTempDir();
  const std::string hf = TestdataPath("tiny-hf");
  const auto error_of = [](const std::string& in, const std::string& out,
                           const std::string& outtype = "auto") {
    ConvertOptions options = Tiny(out, outtype);
    options.in = in;
    options.on_paths = [](const std::vector<std::string>&) { FAIL() << "writes all the same"; };
    const auto summary = ConvertToGguf(options);
    EXPECT_FALSE(FileExists(out + ".part"));
    return summary.ok() ? std::string("accepted") : summary.error().Message();
  };
  const std::string out = folder + "/x.gguf";
  EXPECT_EQ(error_of(hf, out, "q9"), "--outtype: \"q9\", wanted auto, f32, f16, bf16 or q8_0");
  EXPECT_EQ(error_of(hf + "/config.json", out),
            hf + "/config.json: not a directory, wanted a Hugging Face directory with config.json "
                 "and safetensors");
  EXPECT_EQ(error_of(hf, folder), folder + ": a directory, wanted the name of a file");
  EXPECT_EQ(error_of(hf, folder + "/x"), folder + "/x: a name of another kind, wanted NAME.gguf");
  const std::string no_tokenizer = TestdataPath("text/dense-keqv");
  EXPECT_EQ(error_of(no_tokenizer, out),
            no_tokenizer + ": no tokenizer.json, wanted the tokenizer beside the weights");
  EXPECT_FALSE(FileExists(out));
}

TEST(ConvertToGguf, TellsTheFilesBeforeItWritesThem) {
  ConvertOptions options = Tiny(MakeTempDir() + "/t.gguf", "auto");
  options.max_file_bytes = 2'000'000;
  std::vector<std::string> told;
  options.on_paths = [&told](const std::vector<std::string>& paths) {
    told = paths;
    EXPECT_FALSE(FileExists(paths[0] + ".part"));
  };
  const auto summary = ConvertToGguf(options);
  ASSERT_TRUE(summary.ok()) << summary.error().Message();
  EXPECT_EQ(summary->paths, told);
  EXPECT_GT(told.size(), 2U);
  for (const std::string& path : told) {
    EXPECT_LE(ReadOrDie(path).size(), 2'000'000U);
  }
}

TEST(ConvertToGguf, ReportsProgressToTheEnd) {
  uint64_t last = 0;
  uint64_t total = 0;
  ConvertOptions options = Tiny(MakeTempDir() + "/t.gguf", "f16");
  options.on_progress = [&](uint64_t done, uint64_t all) {
    EXPECT_GE(done, last);
    last = done;
    total = all;
  };
  ASSERT_TRUE(ConvertToGguf(options).ok());
  EXPECT_GT(total, 0U);
  EXPECT_EQ(last, total);
}

}  // namespace
}  // namespace facet
