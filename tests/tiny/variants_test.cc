// SPDX-License-Identifier: Apache-2.0
// Files differ in how they say the same model: each spelling must give the same bits, and what is
// missing or wrong must be named. Variants are made from a file of llama.cpp's converter by
// rewriting it.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>

#include "base/bytes.h"
#include "base/log.h"
#include "base/random.h"
#include "format/gguf.h"
#include "support/testing.h"
#include "tiny/driver.h"

namespace facet::testing {
namespace {

struct Tensor {
  std::string name;
  TensorType type;
  std::vector<int64_t> shape;
  std::string data;
};

struct Contents {
  gguf::Metadata metadata;
  std::vector<Tensor> tensors;
  [[nodiscard]] Tensor* Find(const std::string& name) {
    for (Tensor& tensor : tensors) {
      if (tensor.name == name) {
        return &tensor;
      }
    }
    return nullptr;
  }
  void Remove(const std::string& name) {
    tensors.erase(std::remove_if(tensors.begin(), tensors.end(),
                                 [&](const auto& t) { return t.name == name; }),
                  tensors.end());
  }
  void Add(const std::string& name, TensorType type, std::vector<int64_t> shape, std::string data) {
    tensors.push_back({name, type, std::move(shape), std::move(data)});
  }
};

/// Rewrites a GGUF file of testdata/text/gguf with a change; the path of the copy.
std::string Rewrite(const std::string& name, const std::function<void(Contents*)>& change) {
  const auto file = gguf::File::Open(TestdataPath("text/gguf/" + name));
  FACET_CHECK(file.ok());
  Contents contents;
  contents.metadata = file->metadata();
  for (const gguf::TensorView& tensor : file->tensors()) {
    contents.Add(tensor.name, tensor.type, tensor.shape, std::string(AsText(tensor.data)));
  }
  change(&contents);
  const std::string path = MakeTempDir() + "/variant.gguf";
  std::vector<gguf::TensorToWrite> tensors;
  for (Tensor& tensor : contents.tensors) {
    tensors.push_back(
        {tensor.name, tensor.type, tensor.shape, gguf::WholeTensor(std::move(tensor.data))});
  }
  const Status status = gguf::Write(path, contents.metadata, tensors);
  FACET_CHECK(status.ok());
  return path;
}

class Warnings {
 public:
  Warnings()
      : former_(SetWarningSink([this](std::string_view line) { lines_.emplace_back(line); })) {}
  ~Warnings() { SetWarningSink(former_); }
  Warnings(const Warnings&) = delete;
  Warnings& operator=(const Warnings&) = delete;
  [[nodiscard]] const std::vector<std::string>& lines() const { return lines_; }

 private:
  std::vector<std::string> lines_;
  LogSink former_;
};

std::vector<std::vector<float>> LogitsOf(const std::string& path) {
  const Checkpoint checkpoint = OpenOrDie(path);
  Driver driver(checkpoint, {BestIsa(), 1, KvType::kF16, 256});
  const int s = driver.Add({2,    319,  916, 1830, 929, 0,   1054, 1818, 374, 662, 1012, 1558,
                            1565, 1290, 393, 627,  34,  100, 200,  300,  400, 500, 600});
  return driver.Run({{s, driver.n_left(s), true}});
}

std::string ErrorOf(const std::string& path) {
  const auto checkpoint = Checkpoint::Open(path);
  std::string message = "accepted";
  if (!checkpoint.ok()) {
    message = checkpoint.error().Message();
  } else if (const auto weights = BindWeights(*checkpoint); !weights.ok()) {
    message = weights.error().Message();
  }
  return message.rfind(path, 0) == 0 ? "FILE" + message.substr(path.size()) : message;
}

constexpr const char* kShared = "etype-sharing-Q4_0.gguf";
constexpr const char* kMixture = "moe-keqv-Q4_0.gguf";

TEST(Variants, SplitExpertsEqualFusedOnes) {
  const std::string split = Rewrite(kMixture, [](Contents* contents) {
    for (int l = 0; l < 6; ++l) {
      const std::string layer = "blk." + std::to_string(l) + ".";
      const Tensor* fused = contents->Find(layer + "ffn_gate_up_exps.weight");
      const std::string all = fused->data;
      const std::vector<int64_t> shape = fused->shape;  // [experts, gate and up rows, n_embd]
      const TensorType type = fused->type;
      const auto half = static_cast<size_t>(BytesOf(type, shape[1] / 2 * shape[2]));
      std::string gate;
      std::string up;
      for (size_t e = 0; e < static_cast<size_t>(shape[0]); ++e) {
        gate += all.substr(2 * e * half, half);
        up += all.substr((2 * e + 1) * half, half);
      }
      contents->Remove(layer + "ffn_gate_up_exps.weight");
      contents->Add(layer + "ffn_gate_exps.weight", type, {shape[0], shape[1] / 2, shape[2]}, gate);
      contents->Add(layer + "ffn_up_exps.weight", type, {shape[0], shape[1] / 2, shape[2]}, up);
    }
  });
  EXPECT_EQ(LogitsOf(split), LogitsOf(TestdataPath(std::string("text/gguf/") + kMixture)));
}

TEST(Variants, OutputMatrixOfItsOwnMayBeTheEmbeddings) {
  const std::string untied = Rewrite(kShared, [](Contents* contents) {
    const Tensor* embd = contents->Find("token_embd.weight");
    contents->Add("output.weight", embd->type, embd->shape, embd->data);
  });
  EXPECT_EQ(LogitsOf(untied), LogitsOf(TestdataPath(std::string("text/gguf/") + kShared)));
}

TEST(Variants, TensorsOfSharedLayersAreIgnored) {
  Warnings warnings;
  const std::string path = Rewrite(kShared, [](Contents* contents) {
    for (const std::string tensor : {"attn_k.weight", "attn_v.weight", "attn_k_norm.weight"}) {
      const Tensor* own = contents->Find("blk.3." + tensor);
      std::string junk = own->data;
      std::reverse(junk.begin(), junk.end());
      contents->Remove("blk.7." + tensor);
      contents->Add("blk.7." + tensor, own->type, own->shape, junk);
    }
  });
  EXPECT_EQ(LogitsOf(path), LogitsOf(TestdataPath(std::string("text/gguf/") + kShared)));
  EXPECT_TRUE(warnings.lines().empty());
}

TEST(Variants, ScalarsAndArraysSayTheSame) {
  const std::string path = Rewrite(kShared, [](Contents* contents) {
    contents->metadata.Set("gemma4.attention.head_count_kv",
                           gguf::Value::U32s(std::vector<uint32_t>(10, 1)));
    contents->metadata.Set("gemma4.attention.head_count",
                           gguf::Value::I32s(std::vector<int32_t>(10, 4)));
    contents->metadata.Set("gemma4.attention.sliding_window_pattern", gguf::Value::U32(5));
  });
  EXPECT_EQ(LogitsOf(path), LogitsOf(TestdataPath(std::string("text/gguf/") + kShared)));
}

TEST(Variants, RotationWithoutItsTensorIsTheSame) {
  const std::string path =
      Rewrite(kShared, [](Contents* contents) { contents->Remove("rope_freqs.weight"); });
  EXPECT_EQ(LogitsOf(path), LogitsOf(TestdataPath(std::string("text/gguf/") + kShared)));
}

TEST(Variants, ShapesCountWhereMetadataDisagrees) {
  Warnings warnings;
  const std::string path = Rewrite(kShared, [](Contents* contents) {
    contents->metadata.Set("gemma4.attention.key_length", gguf::Value::U32(128));
    contents->metadata.Set("gemma4.attention.key_length_swa", gguf::Value::U32(128));
    contents->metadata.Set("gemma4.feed_forward_length", gguf::Value::U32(96));
  });
  EXPECT_EQ(LogitsOf(path), LogitsOf(TestdataPath(std::string("text/gguf/") + kShared)));
  ASSERT_EQ(warnings.lines().size(), 1U);
  EXPECT_EQ(
      warnings.lines()[0],
      path + ": layer 0 head size is 128 in the metadata and 32 in the tensors; the tensors count");
}

TEST(Variants, UnknownTensorsAreToldOnce) {
  Warnings warnings;
  const std::string path = Rewrite(kShared, [](Contents* contents) {
    contents->Add("blk.0.surprise.weight", TensorType::kF32, {1}, std::string(4, '\0'));
    contents->Add("extra", TensorType::kF32, {1}, std::string(4, '\0'));
  });
  EXPECT_EQ(ErrorOf(path), "accepted");
  ASSERT_EQ(warnings.lines().size(), 1U);
  EXPECT_EQ(warnings.lines()[0], path +
                                     ": 2 tensors are not part of a Gemma 4 text model and are "
                                     "ignored, the first is blk.0.surprise.weight");
}

TEST(Variants, TheFirstMissingOrMisshapenTensorIsNamed) {
  const auto remove = [](const std::string& name) {
    return Rewrite(kShared, [&name](Contents* contents) { contents->Remove(name); });
  };
  EXPECT_EQ(ErrorOf(remove("token_embd.weight")),
            "FILE, tensor token_embd.weight: missing, wanted shape [2048, 64]");
  EXPECT_EQ(ErrorOf(remove("blk.2.attn_v.weight")),
            "FILE, tensor blk.2.attn_v.weight: missing, wanted shape [32, 64]");
  EXPECT_EQ(ErrorOf(remove("blk.9.ffn_down.weight")),
            "FILE, tensor blk.9.ffn_down.weight: missing, wanted shape [64, 192]");
  EXPECT_EQ(ErrorOf(remove("per_layer_proj_norm.weight")),
            "FILE, tensor per_layer_proj_norm.weight: missing, wanted shape [32]");
  const std::string misshapen = Rewrite(kShared, [](Contents* contents) {
    contents->Remove("output_norm.weight");
    contents->Add("output_norm.weight", TensorType::kF32, {32}, std::string(128, '\0'));
  });
  EXPECT_EQ(ErrorOf(misshapen), "FILE, tensor output_norm.weight: shape [32], wanted [64]");
}

TEST(Variants, TypesThatCannotBeComputedAreNamed) {
  for (const TensorType type : {TensorType::kI32, TensorType::kQ8_1}) {
    const std::string path = Rewrite(kShared, [type](Contents* contents) {
      contents->Remove("blk.0.attn_q.weight");
      contents->Add("blk.0.attn_q.weight", type, {128, 64},
                    std::string(static_cast<size_t>(BytesOf(type, 128 * 64)), '\0'));
    });
    EXPECT_EQ(ErrorOf(path),
              "FILE, tensor blk.0.attn_q.weight: type " + std::string(InfoOf(type).name) +
                  ", wanted F32, F16, BF16 or a type of quantised weights (docs/quantization.md)");
  }
}

/// Bytes of NVFP4 [n_out, n_in] with any values and scales from 2^`exponent` up to, but not
/// including, 2^(exponent + 1).
std::string RandomNvfp4(int64_t n_out, int64_t n_in, int exponent) {
  std::string data(static_cast<size_t>(BytesOf(TensorType::kNVFP4, n_out * n_in)), '\0');
  for (size_t i = 0; i < data.size(); ++i) {
    const uint64_t bits = RandomBits(7, i);
    data[i] = static_cast<char>(i % 36 < 4 ? (exponent + 7) * 8 + static_cast<int>(bits % 8)
                                           : static_cast<int>(bits % 256));
  }
  return data;
}

/// The scale of a matrix says the same as larger scales of its blocks. On the gate of a
/// feed-forward part, where no norm takes it away again.
TEST(Variants, TheScaleOfAMatrixMultipliesItsProducts) {
  const auto with = [](int exponent, bool has_scale) {
    return Rewrite(kShared, [=](Contents* contents) {
      contents->Find("blk.0.ffn_gate.weight")->type = TensorType::kNVFP4;
      contents->Find("blk.0.ffn_gate.weight")->data = RandomNvfp4(96, 64, exponent);
      if (has_scale) {
        std::string four;
        Append(four, 4.0F);
        contents->Add("blk.0.ffn_gate.scale", TensorType::kF32, {1}, four);
      }
    });
  };
  const auto wanted = LogitsOf(with(-3, false));
  EXPECT_EQ(LogitsOf(with(-5, true)), wanted);
  EXPECT_NE(LogitsOf(with(-5, false)), wanted);
}

/// The mixture with NVFP4 experts in one layer: expert e has scales from 2^exponents[e % 2] up, and
/// `scales`[e % 2] multiplies its products, unless it is null.
std::string WithExperts(std::array<int, 2> exponents, const std::array<float, 2>* scales) {
  return Rewrite(kMixture, [&](Contents* contents) {
    contents->Remove("blk.1.ffn_gate_up_exps.weight");
    for (const char* part : {"gate", "up"}) {
      const std::string stem = "blk.1.ffn_" + std::string(part) + "_exps";
      std::string data;
      std::string values;
      for (size_t e = 0; e < 8; ++e) {
        data += RandomNvfp4(32, 64, exponents[e % 2]);
        Append(values, scales == nullptr ? 0.0F : (*scales)[e % 2]);
      }
      contents->Add(stem + ".weight", TensorType::kNVFP4, {8, 32, 64}, data);
      if (scales != nullptr) {
        contents->Add(stem + ".scale", TensorType::kF32, {8}, values);
      }
    }
  });
}

TEST(Variants, ScalesOfExpertsMultiplyTheirProducts) {
  const std::array<float, 2> scales = {4.0F, 2.0F};
  const auto wanted = LogitsOf(WithExperts({-3, -3}, nullptr));
  EXPECT_EQ(LogitsOf(WithExperts({-5, -4}, &scales)), wanted);
  EXPECT_NE(LogitsOf(WithExperts({-5, -4}, nullptr)), wanted);
}

TEST(Variants, ScalesThatNoProductAppliesAreRefused) {
  const auto error_with = [](const std::string& name, std::vector<int64_t> shape) {
    return ErrorOf(Rewrite(kShared, [&](Contents* contents) {
      std::string data;
      for (int64_t i = 0; i < shape[0]; ++i) {
        Append(data, 1.5F);
      }
      contents->Add(name, TensorType::kF32, shape, data);
    }));
  };
  EXPECT_EQ(error_with("token_embd.scale", {1}),
            "FILE, tensor token_embd.scale: a scale of token_embd.weight, wanted scales of "
            "attention, feed-forward and output matrices only");
  EXPECT_EQ(error_with("blk.3.inp_gate.scale", {1}),
            "FILE, tensor blk.3.inp_gate.scale: a scale of blk.3.inp_gate.weight, wanted scales of "
            "attention, feed-forward and output matrices only");
  EXPECT_EQ(error_with("output.scale", {1}),
            "FILE, tensor output.scale: no output.weight beside it, wanted the matrix that it "
            "scales");
  EXPECT_EQ(error_with("blk.2.ffn_up.scale", {2}),
            "FILE, tensor blk.2.ffn_up.scale: shape [2], wanted [1]");
}

TEST(Variants, AModelWithoutFullLayersRuns) {
  const std::string path = Rewrite("dense-keqv-Q4_0.gguf", [](Contents* c) {
    std::erase_if(c->tensors, [](const Tensor& t) {
      return t.name.starts_with("blk.") && std::stoi(t.name.substr(4)) >= 5;
    });
    gguf::Metadata& metadata = c->metadata;
    metadata.Set("gemma4.block_count", gguf::Value::U32(5));
    metadata.Set("gemma4.attention.head_count_kv", gguf::Value::U32(4));
    metadata.Set("gemma4.attention.sliding_window_pattern",
                 gguf::Value::Bools(std::vector<bool>(5, true)));
  });
  const auto logits = LogitsOf(path);
  ASSERT_FALSE(logits.empty());
  for (const std::vector<float>& row : logits) {
    EXPECT_TRUE(std::all_of(row.begin(), row.end(), [](float x) { return std::isfinite(x); }));
  }
}

TEST(Variants, DraftersAreRefusedAsTheMainModel) {
  EXPECT_EQ(ErrorOf(TestdataPath("text/gguf/dense-keqv-assistant-Q8_0.gguf")),
            "FILE, general.architecture: \"gemma4-assistant\" (a drafter), wanted \"gemma4\"");
}

/// A Hugging Face directory and the GGUF file made of it are one model.
TEST(Variants, DirectoryAndFileGiveTheSameBits) {
  EXPECT_EQ(LogitsOf(TestdataPath("tiny-hf")), LogitsOf(SourcePath("models/tiny/facet-tiny.gguf")));
}

}  // namespace
}  // namespace facet::testing
