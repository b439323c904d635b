// SPDX-License-Identifier: Apache-2.0
// Conversion on whole checkpoints: what is converted computes as the directory does, every spelling
// of a directory gives the same file, and the files of llama.cpp's converter say the same.
#include "convert/convert.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>

#include "base/file.h"
#include "format/gguf.h"
#include "support/testing.h"
#include "tiny/driver.h"
#include "tiny/hf_directory.h"

namespace facet::testing {
namespace {

std::string Convert(const std::string& in, const std::string& outtype = "auto",
                    uint64_t max_file_bytes = 0) {
  ConvertOptions options;
  options.in = in;
  options.out = MakeTempDir() + "/converted.gguf";
  options.outtype = outtype;
  options.name = "Test";
  options.max_file_bytes = max_file_bytes;
  const auto summary = ConvertToGguf(options);
  EXPECT_TRUE(summary.ok()) << summary.error().Message();
  return summary.ok() ? summary->paths.front() : "";
}

/// The message without the directory's path; nothing may be left of the output.
std::string ErrorOf(const std::string& in) {
  ConvertOptions options;
  options.in = in;
  const std::string folder = MakeTempDir();
  options.out = folder + "/converted.gguf";
  const auto summary = ConvertToGguf(options);
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  const std::string message = summary.ok() ? "accepted" : summary.error().Message();
  return message.starts_with(in) ? "DIR" + message.substr(in.size()) : message;
}

std::vector<float> LogitsOf(const std::string& path) {
  const Checkpoint checkpoint = OpenOrDie(path);
  Driver driver(checkpoint, {BestIsa(), 1, KvType::kF32, 256});
  const int s = driver.Add({2,    319,  916, 1830, 929, 0,   1054, 1818, 374, 662, 1012, 1558,
                            1565, 1290, 393, 627,  34,  100, 200,  300,  400, 500, 600});
  std::vector<float> all;
  for (const std::vector<float>& row : driver.Run({{s, driver.n_left(s), true}})) {
    all.insert(all.end(), row.begin(), row.end());
  }
  return all;
}

float RootMeanSquare(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    sum += (a[i] - b[i]) * (a[i] - b[i]);
  }
  return static_cast<float>(std::sqrt(sum / static_cast<double>(a.size())));
}

std::vector<std::string> Variants() {
  std::vector<std::string> names = {"tiny-hf"};
  for (const std::string& name : TinyHfNames()) {
    names.push_back("text/" + name);
  }
  return names;
}

TEST(Convert, KeepsTheBitsOfEveryVariant) {
  for (const std::string& name : Variants()) {
    const std::string in = HfDirectory(name).Write("model");
    const std::vector<float> wanted = LogitsOf(in);
    for (const std::string outtype : {"auto", "bf16", "f32"}) {
      EXPECT_EQ(LogitsOf(Convert(in, outtype)), wanted) << name << " " << outtype;
    }
  }
}

/// The logits have a standard deviation of 4.7, and these small models amplify any change
/// (testdata/text/README.md: up to 18 in bfloat16 arithmetic). Half precision has more digits than
/// bfloat16 but not its range: small values lose some.
TEST(Convert, CostsLittleInOtherTypes) {
  for (const std::string& name : Variants()) {
    const std::string in = HfDirectory(name).Write("model");
    const std::vector<float> wanted = LogitsOf(in);
    EXPECT_LT(RootMeanSquare(LogitsOf(Convert(in, "f16")), wanted), 2e-4F) << name;
    EXPECT_LT(RootMeanSquare(LogitsOf(Convert(in, "q8_0")), wanted), 0.8F) << name;
  }
}

TEST(Convert, EverySpellingGivesTheSameFile) {
  constexpr std::string_view kPrefix = "model.language_model.";
  const HfDirectory plain("text/moe-keqv");
  const std::string wanted = ReadOrDie(Convert(plain.Write("model")));
  for (const std::string prefix : {"language_model.model.", "language_model.", "model.", ""}) {
    HfDirectory spelled = plain;
    for (HfTensor& tensor : spelled.tensors) {
      tensor.name = prefix + tensor.name.substr(kPrefix.size());
    }
    EXPECT_TRUE(ReadOrDie(Convert(spelled.Write("model"))) == wanted) << prefix;
  }
  EXPECT_TRUE(ReadOrDie(Convert(plain.Write("model", 3))) == wanted) << "shards";
}

TEST(Convert, SplitExpertsEqualFusedOnes) {
  const HfDirectory fused("text/moe-keqv");
  HfDirectory split = fused;
  for (int layer = 0; layer < 6; ++layer) {
    const std::string end = "layers." + std::to_string(layer) + ".experts.gate_up_proj";
    const HfTensor both = split.Find(end);
    split.Remove(end);
    const std::string stem = both.name.substr(0, both.name.size() - std::strlen("gate_up_proj"));
    HfTensor gate = {stem + "gate_proj.weight", both.dtype, both.shape, ""};
    gate.shape[1] /= 2;
    HfTensor up = gate;
    up.name = stem + "up_proj.weight";
    const size_t n_half = both.data.size() / static_cast<size_t>(both.shape[0]) / 2;
    for (size_t at = 0; at < both.data.size(); at += 2 * n_half) {
      gate.data += both.data.substr(at, n_half);
      up.data += both.data.substr(at + n_half, n_half);
    }
    split.tensors.push_back(gate);
    split.tensors.push_back(up);
  }
  const std::string converted = Convert(split.Write("model"), "q8_0");
  EXPECT_EQ(LogitsOf(converted), LogitsOf(Convert(fused.Write("model"), "q8_0")));
  const auto file = gguf::File::Open(converted);
  EXPECT_EQ(file->Find("blk.5.ffn_gate_exps.weight")->shape, (std::vector<int64_t>{8, 32, 64}));
  EXPECT_EQ(file->Find("blk.5.ffn_gate_up_exps.weight"), nullptr);
}

TEST(Convert, AnOutputMatrixCountsWhereItIsNotTied) {
  HfDirectory directory("text/etype-sharing");
  HfTensor head = directory.Find("embed_tokens.weight");
  head.name = "lm_head.weight";
  std::reverse(head.data.begin(), head.data.end());
  for (size_t i = 0; i + 1 < head.data.size(); i += 2) {
    std::swap(head.data[i], head.data[i + 1]);  // the bytes of each value
  }
  const std::string tied = Convert(directory.Write("model"));
  directory.tensors.push_back(head);
  EXPECT_TRUE(ReadOrDie(Convert(directory.Write("model"))) == ReadOrDie(tied));

  directory.config.Set("tie_word_embeddings", false);
  const std::string in = directory.Write("model");
  const std::string untied = Convert(in);
  EXPECT_NE(gguf::File::Open(untied)->Find("output.weight"), nullptr);
  EXPECT_EQ(LogitsOf(untied), LogitsOf(in));
  EXPECT_NE(LogitsOf(untied), LogitsOf(tied));

  directory.Remove("lm_head.weight");
  EXPECT_EQ(ErrorOf(directory.Write("model")),
            "DIR, tensor lm_head.weight: missing, wanted an output matrix, as "
            "tie_word_embeddings is false");
}

TEST(Convert, FilesOfLimitedSizeAreTheSameModel) {
  const std::string in = HfDirectory("text/etype-plain").Write("model");
  const std::string first = Convert(in, "bf16", 1'000'000);
  ASSERT_TRUE(first.ends_with("/converted-00001-of-00005.gguf")) << first;
  int n_large = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(first).parent_path())) {
    n_large += entry.file_size() > 1'000'000 ? 1 : 0;
  }
  EXPECT_EQ(n_large, 1);  // the table of per-layer embeddings alone has 1.6 MB
  EXPECT_EQ(LogitsOf(first), LogitsOf(in));
}

TEST(Convert, RefusesWhatItDoesNotKnowNamingTheTensor) {
  HfDirectory directory("text/dense-keqv");
  const HfDirectory plain = directory;
  directory.tensors.push_back(
      {"model.language_model.layers.3.self_attn.sinks", "BF16", {2, 3}, std::string(12, '\0')});
  EXPECT_EQ(ErrorOf(directory.Write("model")),
            "DIR, tensor model.language_model.layers.3.self_attn.sinks: unknown, shape [2, 3], "
            "wanted a tensor of a Gemma 4 model");

  directory = plain;
  directory.tensors.push_back(
      {"model.language_model.layers.12.layer_scalar", "BF16", {1}, std::string(2, '\0')});
  EXPECT_EQ(ErrorOf(directory.Write("model")),
            "DIR, tensor model.language_model.layers.12.layer_scalar: layer 12, wanted 0 to 11 by "
            "config.json");

  directory = plain;
  directory.Find("layers.3.self_attn.o_proj.weight").dtype = "I16";
  EXPECT_EQ(ErrorOf(directory.Write("model")),
            "DIR, tensor model.language_model.layers.3.self_attn.o_proj.weight: type I16, wanted "
            "F32, F16 or BF16");

  directory = plain;
  directory.Find("layers.3.self_attn.o_proj.weight").dtype = "F8_E4M3";
  EXPECT_EQ(ErrorOf(directory.Write("model")),
            "DIR/model.safetensors, tensor "
            "\"model.language_model.layers.3.self_attn.o_proj.weight\": dtype \"F8_E4M3\", wanted "
            "F64, F32, F16, BF16, I64, I32, I16, I8, U8 or BOOL");

  directory = plain;
  directory.Remove("layers.3.mlp.up_proj.weight");
  EXPECT_EQ(ErrorOf(directory.Write("model")),
            "DIR, tensor blk.3.ffn_up.weight: missing, wanted shape [96, 64]");

  directory = plain;
  HfTensor& norm = directory.Find("model.language_model.norm.weight");
  norm.shape = {32};
  norm.data.resize(64);
  EXPECT_EQ(ErrorOf(directory.Write("model")),
            "DIR, tensor output_norm.weight: shape [32], wanted [64]");
}

TEST(Convert, RefusesBrokenDirectories) {
  const HfDirectory plain("text/dense-keqv");
  const std::string in = plain.Write("model", 2);
  std::filesystem::resize_file(in + "/model-1.safetensors", 100'000);
  EXPECT_TRUE(ErrorOf(in).starts_with("DIR/model-1.safetensors, tensor \"")) << ErrorOf(in);
  std::filesystem::resize_file(in + "/model-1.safetensors", 100);
  EXPECT_TRUE(ErrorOf(in).starts_with("DIR/model-1.safetensors, byte 8: 92 bytes left for header"))
      << ErrorOf(in);
  std::filesystem::remove(in + "/model-1.safetensors");
  EXPECT_EQ(ErrorOf(in), "DIR/model-1.safetensors: missing, wanted a shard that " + in +
                             "/model.safetensors.index.json names");
  std::filesystem::remove(in + "/model.safetensors.index.json");
  EXPECT_EQ(ErrorOf(in),
            "DIR: no weights, wanted model.safetensors or model.safetensors.index.json");
  ASSERT_TRUE(WriteFile(in + "/config.json", "{\"model_type\": }").ok());
  EXPECT_EQ(ErrorOf(in), "DIR/config.json, byte 16: broken JSON, wanted valid JSON");
  std::filesystem::remove(in + "/config.json");
  EXPECT_EQ(ErrorOf(in), "DIR/config.json: cannot open: No such file or directory");

  HfDirectory small = plain;
  Json text = small.config["text_config"];
  text.Set("vocab_size", 2000);
  small.config.Set("text_config", text);
  EXPECT_EQ(ErrorOf(small.Write("model")),
            "DIR, tensor token_embd.weight: shape [2048, 64], wanted [2000, 64]");
  small.Find("embed_tokens.weight").shape[0] = 2000;
  small.Find("embed_tokens.weight").data.resize(2000 * 64 * 2);
  EXPECT_EQ(ErrorOf(small.Write("model")),
            "DIR/tokenizer.json: 2048 tokens, wanted 2000, the rows of the embedding table");
}

/// Keys in which files differ.
struct Differences {
  std::set<std::string> only_theirs;
  std::set<std::string> only_ours;
  std::set<std::string> other_values;
  bool operator==(const Differences&) const = default;
};

/// Integers and floats of any width and arrays of equal numbers beside one number count as equal.
bool IsSame(const gguf::Value& ours, const gguf::Value& theirs) {
  if (ours.is_array() && !theirs.is_array()) {
    for (size_t i = 0; i < ours.array_size(); ++i) {
      if (ours.IntAt(i) != theirs.AsInt()) {
        return false;
      }
    }
    return ours.array_size() > 0;
  }
  return ours.data == theirs.data ||
         (ours.AsDouble().has_value() && ours.AsDouble() == theirs.AsDouble());
}

Differences Compare(const gguf::Metadata& ours, const gguf::Metadata& theirs) {
  Differences differences;
  for (const auto& [key, value] : theirs.entries()) {
    const gguf::Value* mine = ours.Find(key);
    if (mine == nullptr) {
      differences.only_theirs.insert(key);
    } else if (!IsSame(*mine, value)) {
      differences.other_values.insert(key);
    }
  }
  for (const auto& [key, value] : ours.entries()) {
    if (theirs.Find(key) == nullptr) {
      differences.only_ours.insert(key);
    }
  }
  return differences;
}

/// The same names and shapes; what stays F32 in both has the same bytes. The others were quantised
/// by llama.cpp after its conversion.
void ExpectSameTensors(const gguf::File& ours, const gguf::File& theirs) {
  EXPECT_EQ(ours.tensors().size(), theirs.tensors().size());
  for (const gguf::TensorView& tensor : theirs.tensors()) {
    const gguf::TensorView* mine = ours.Find(tensor.name);
    ASSERT_NE(mine, nullptr) << tensor.name;
    EXPECT_EQ(mine->shape, tensor.shape) << tensor.name;
    EXPECT_TRUE(
        tensor.type != TensorType::kF32 ||
        std::equal(mine->data.begin(), mine->data.end(), tensor.data.begin(), tensor.data.end()))
        << tensor.name;
  }
}

/// docs/convert.md says why these keys differ. The stored files were quantised afterwards, and
/// their directories had a chat template of their own; facet_convert_test compares with a file that
/// has neither difference.
TEST(Convert, SaysWhatLlamaCppsConverterSays) {
  const Differences known = {{"general.size_label", "tokenizer.ggml.mask_token_id"},
                             {},
                             {"general.name", "general.file_type", "tokenizer.chat_template"}};
  const std::map<std::string, std::string> files = {{"text/etype-sharing", "etype-sharing-Q4_0"},
                                                    {"text/dense-keqv", "dense-keqv-Q4_0"},
                                                    {"text/moe-keqv", "moe-keqv-Q4_0"},
                                                    {"text/dense-k256", "dense-k256-Q4_K_M"}};
  for (const auto& [directory, name] : files) {
    SCOPED_TRACE(name);
    const auto ours = gguf::File::Open(Convert(HfDirectory(directory).Write("model"), "f32"));
    const auto theirs = gguf::File::Open(TestdataPath("text/gguf/" + name + ".gguf"));
    ASSERT_TRUE(ours.ok() && theirs.ok());
    const Differences found = Compare(ours->metadata(), theirs->metadata());
    EXPECT_EQ(found.only_theirs, known.only_theirs);
    EXPECT_EQ(found.only_ours, known.only_ours);
    EXPECT_EQ(found.other_values, known.other_values);
    ExpectSameTensors(*ours, *theirs);
  }
}

}  // namespace
}  // namespace facet::testing
