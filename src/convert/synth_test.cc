// SPDX-License-Identifier: Apache-2.0
#include "convert/synth.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "quant/codec.h"
#include "support/testing.h"

namespace facet {
namespace {

gguf::Metadata TinyTokenizer() {
  const auto file = gguf::File::Open(testing::SourcePath("models/tiny/facet-tiny.gguf"));
  EXPECT_TRUE(file.ok());
  return file->metadata();
}

SynthOptions OptionsFor(const std::string& out) {
  SynthOptions options;
  options.out = out;
  options.tokenizer = TinyTokenizer();
  options.tokenizer_name = "tiny";
  return options;
}

/// The drafter of the E2B: the smallest file that there is.
SynthOptions DrafterFor(const std::string& out) {
  SynthOptions options = OptionsFor(out);
  options.part = SynthPart::kDrafter;
  return options;
}

std::vector<float> Decoded(const gguf::TensorView& tensor, int64_t n) {
  std::vector<float> values(static_cast<size_t>(n));
  FindCodec(tensor.type)->decode(tensor.data.data(), n, values.data());
  return values;
}

std::string ErrorOf(const SynthOptions& options) {
  const Status status = WriteSynthetic(options);
  return status.ok() ? "" : status.error().Message();
}

TEST(Synth, DraftersHaveTheirKeysAndWeightsTheirVariance) {
  const std::string path = testing::MakeTempDir() + "/drafter.gguf";
  SynthOptions options = DrafterFor(path);
  uint64_t last = 0;
  uint64_t total = 0;
  options.on_progress = [&](uint64_t done, uint64_t of) {
    EXPECT_GE(done, last);
    last = done;
    total = of;
  };
  ASSERT_EQ(ErrorOf(options), "");
  EXPECT_EQ(last, total);
  const auto file = gguf::File::Open(path);
  ASSERT_TRUE(file.ok());
  const auto number = [&](const char* key) { return file->metadata().Find(key)->AsInt(); };
  EXPECT_EQ(*file->metadata().Find("general.architecture")->AsString(), "gemma4-assistant");
  EXPECT_EQ(*file->metadata().Find("general.name")->AsString(),
            "Gemma 4 E2B drafter, random weights");
  EXPECT_EQ(file->n_bytes(), total);
  EXPECT_EQ(number("gemma4-assistant.embedding_length_out"), 1536);
  EXPECT_EQ(number("gemma4-assistant.nextn_predict_layers"), 4);
  EXPECT_EQ(number("gemma4-assistant.attention.shared_kv_layers"), 4);
  EXPECT_EQ(file->metadata().Find("gemma4-assistant.final_logit_softcapping"), nullptr);
  const auto& tokens = *file->metadata().Find("tokenizer.ggml.tokens")->AsStrings();
  ASSERT_EQ(tokens.size(), 262144U);
  EXPECT_EQ(tokens[2], "<bos>");
  EXPECT_EQ(tokens.back(),
            "\xe2\x96\x81"
            "filler262143");
  const gguf::TensorView& projection = *file->Find("nextn.pre_projection.weight");
  EXPECT_EQ(projection.type, TensorType::kQ4_0);
  double squares = 0;
  for (const float value : Decoded(projection, int64_t{256} * 3072)) {
    squares += double{value} * value;
  }
  EXPECT_NEAR(squares / 256, 1.0, 0.05);
  EXPECT_EQ(file->Find("masked_embd_centroids.weight")->shape, (std::vector<int64_t>{2048, 256}));
  EXPECT_EQ(file->Find("masked_embd_ordering")->type, TensorType::kI32);
  EXPECT_EQ(number("gemma4-assistant.assistant.centroid_intermediate_top_k"), 32);
  const std::vector<float> factors = Decoded(*file->Find("rope_freqs.weight"), 256);
  EXPECT_EQ(factors[63], 1.0F);
  EXPECT_EQ(factors[64], 1e30F);
  EXPECT_EQ(factors[255], 1e30F);
}

TEST(Synth, ProjectorsHaveTheirTypes) {
  const std::string path = testing::MakeTempDir() + "/mmproj.gguf";
  SynthOptions options;
  options.out = path;
  options.shape = "12b";
  options.part = SynthPart::kProjector;
  options.type = "f16";
  ASSERT_EQ(ErrorOf(options), "");
  const auto file = gguf::File::Open(path);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(*file->metadata().Find("general.architecture")->AsString(), "clip");
  EXPECT_EQ(file->metadata().Find("general.file_type")->AsInt(), 1);
  EXPECT_EQ(file->Find("mm.input_projection.weight")->type, TensorType::kF16);
  EXPECT_EQ(file->Find("v.patch_embd.weight")->type, TensorType::kF32);
  options.type = "q4_0";
  EXPECT_EQ(ErrorOf(options), "--type: \"q4_0\", wanted f32, f16, bf16 or q8_0");
}

TEST(Synth, TheSeedMakesTheFile) {
  const std::string folder = testing::MakeTempDir();
  const auto bytes_of_seed = [&](uint64_t seed) {
    SynthOptions options = DrafterFor(folder + "/d.gguf");
    options.seed = seed;
    EXPECT_EQ(ErrorOf(options), "");
    return testing::ReadOrDie(options.out);
  };
  const std::string first = bytes_of_seed(1);
  EXPECT_TRUE(first == bytes_of_seed(1));
  EXPECT_FALSE(first == bytes_of_seed(2));
}

TEST(Synth, RefusesWhatCannotBeMade) {
  const std::string folder = testing::MakeTempDir();
  SynthOptions options = DrafterFor(folder + "/a.gguf");
  options.shape = "e3b";
  EXPECT_EQ(ErrorOf(options), "--shape: \"e3b\", wanted e2b, e4b, 12b, 26b-a4b or 31b");
  options = DrafterFor(folder);
  EXPECT_EQ(ErrorOf(options), folder + ": a directory, wanted the name of a file");
  options = DrafterFor(folder + "/a.gguf");
  options.tokenizer = {};
  EXPECT_EQ(ErrorOf(options), "tiny, tokenizer.ggml.tokens: missing, wanted the tokenizer's array");
  options.tokenizer.Set("tokenizer.ggml.tokens",
                        gguf::Value::Strings(std::vector<std::string>(262145, "a")));
  EXPECT_EQ(ErrorOf(options),
            "tiny, tokenizer.ggml.tokens: 262145 items, wanted an array of at most 262144");
  EXPECT_FALSE(FileExists(folder + "/a.gguf"));
}

}  // namespace
}  // namespace facet
