// SPDX-License-Identifier: Apache-2.0
// Files differ in how they say the same model: each spelling must give the same bits, and what is
// missing or wrong must be named. Variants are made from a file of llama.cpp's converter by
// rewriting it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "base/bytes.h"
#include "base/log.h"
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
  const std::string path = Rewrite(kShared, [](Contents* contents) {
    contents->Remove("blk.0.attn_q.weight");
    contents->Add("blk.0.attn_q.weight", TensorType::kI32, {128, 64},
                  std::string(128 * 64 * 4, '\0'));
  });
  EXPECT_EQ(ErrorOf(path),
            "FILE, tensor blk.0.attn_q.weight: type I32, wanted F32, F16, BF16, Q8_0, Q4_0, Q4_K "
            "or Q6_K");
  EXPECT_EQ(ErrorOf(TestdataPath("text/gguf/dense-k256-IQ4_XS.gguf")),
            "FILE, tensor blk.0.attn_q.weight: type IQ4_XS, wanted F32, F16, BF16, Q8_0, Q4_0, "
            "Q4_K or Q6_K");
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
