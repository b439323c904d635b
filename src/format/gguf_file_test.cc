// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdio>

#include "base/bytes.h"
#include "base/file.h"
#include "format/gguf.h"
#include "support/testing.h"

namespace facet::gguf {
namespace {

Value U16(uint16_t value) { return {ValueType::kUint16, ValueType::kUint32, uint64_t{value}}; }

/// Three shards M-0000N-of-00003.gguf with tensors a | b, c | d; faults are made by writing one of
/// them again.
class ShardTest : public ::testing::Test {
 protected:
  ShardTest() : folder_(testing::MakeTempDir() + "/") {
    WriteShard(PathOf(1), Split(0, 3, 4), {"a"});
    WriteShard(PathOf(2), Split(1, 3, 4), {"b", "c"});
    WriteShard(PathOf(3), Split(2, 3, 4), {"d"});
  }

  [[nodiscard]] std::string PathOf(int number) const {
    return folder_ + "M-0000" + std::to_string(number) + "-of-00003.gguf";
  }

  static Metadata Split(uint16_t number, uint16_t count, uint32_t n_tensors) {
    Metadata metadata;
    metadata.Set("general.architecture", Value::String("gemma4"));
    metadata.Set("split.no", U16(number));
    metadata.Set("split.count", U16(count));
    metadata.Set("split.tensors.count",
                 {ValueType::kInt32, ValueType::kUint32, int64_t{n_tensors}});
    return metadata;
  }

  static void WriteShard(const std::string& path, const Metadata& metadata,
                         const std::vector<std::string>& names) {
    std::vector<TensorToWrite> tensors;
    for (const std::string& name : names) {
      tensors.push_back({name, TensorType::kI8, {4}, WholeTensor(name + "...")});
    }
    const Status written = Write(path, metadata, tensors);
    ASSERT_TRUE(written.ok()) << written.error().Message();
  }

  /// The message without the folder's name.
  [[nodiscard]] std::string OpenError(const std::string& path) const {
    const auto file = File::Open(path);
    std::string message = file.ok() ? "no error" : file.error().Message();
    for (size_t at = message.find(folder_); at != std::string::npos; at = message.find(folder_)) {
      message.erase(at, folder_.size());
    }
    return message;
  }

  std::string folder_;
};

TEST_F(ShardTest, TheFirstOpensAll) {
  auto opened = File::Open(PathOf(1));
  ASSERT_TRUE(opened.ok()) << opened.error().Message();
  const File file = *std::move(opened);  // views survive the move
  EXPECT_EQ(file.n_shards(), 3u);
  ASSERT_EQ(file.tensors().size(), 4u);
  EXPECT_EQ(file.tensors()[2].name, "c");
  EXPECT_EQ(AsText(file.Find("a")->data), "a...");
  EXPECT_EQ(AsText(file.Find("d")->data), "d...");
  uint64_t n_bytes = 0;
  for (int number = 1; number <= 3; ++number) {
    n_bytes += testing::ReadOrDie(PathOf(number)).size();
  }
  EXPECT_EQ(file.n_bytes(), n_bytes);
}

TEST_F(ShardTest, AnotherThanTheFirstNamesTheFirst) {
  EXPECT_EQ(OpenError(PathOf(2)),
            "M-00002-of-00003.gguf: shard 2 of 3, wanted the first, M-00001-of-00003.gguf");
}

TEST_F(ShardTest, AMissingShardIsNamed) {
  std::remove(PathOf(2).c_str());
  EXPECT_EQ(OpenError(PathOf(1)), "M-00002-of-00003.gguf: missing, wanted shard 2 of 3");
}

TEST_F(ShardTest, ARenamedShard) {
  const std::string path = folder_ + "model.gguf";
  WriteShard(path, Split(0, 3, 4), {"a"});
  EXPECT_EQ(OpenError(path),
            "model.gguf: shard 1 of 3 under another name, wanted NAME-00001-of-00003.gguf");
}

TEST_F(ShardTest, AShardOfAnotherFile) {
  WriteShard(PathOf(3), Split(1, 3, 4), {"d"});
  EXPECT_EQ(OpenError(PathOf(1)), "M-00003-of-00003.gguf: shard 2 of 3, wanted shard 3 of 3");
  WriteShard(PathOf(3), Split(2, 4, 4), {"d"});
  EXPECT_EQ(OpenError(PathOf(1)), "M-00003-of-00003.gguf: shard 3 of 4, wanted shard 3 of 3");
  WriteShard(PathOf(3), Split(2, 3, 9), {"d"});
  EXPECT_EQ(
      OpenError(PathOf(1)),
      "M-00003-of-00003.gguf, key \"split.tensors.count\": 9, wanted 4 as in the first shard");
  WriteShard(PathOf(3), {}, {"d"});
  EXPECT_EQ(OpenError(PathOf(1)), "M-00003-of-00003.gguf: shard 1 of 1, wanted shard 3 of 3");
  Metadata other = Split(2, 3, 4);
  other.Set("general.architecture", Value::String("clip"));
  WriteShard(PathOf(3), other, {"d"});
  EXPECT_EQ(OpenError(PathOf(1)),
            "M-00003-of-00003.gguf, key \"general.architecture\": \"clip\", wanted \"gemma4\" as "
            "in the first shard");
}

TEST_F(ShardTest, WrongTensors) {
  WriteShard(PathOf(3), Split(2, 3, 4), {"d", "e"});
  EXPECT_EQ(OpenError(PathOf(1)),
            "M-00001-of-00003.gguf: 5 tensors in 3 shards, wanted 4 by split.tensors.count");
  WriteShard(PathOf(3), Split(2, 3, 4), {"b"});
  EXPECT_EQ(OpenError(PathOf(1)),
            "M-00001-of-00003.gguf: tensor \"b\" in two shards, wanted each name once");
}

TEST_F(ShardTest, ABrokenShardIsNamed) {
  ASSERT_TRUE(WriteFile(PathOf(3), "GGU").ok());
  EXPECT_EQ(OpenError(PathOf(1)),
            "M-00003-of-00003.gguf, byte 0: 3 bytes left for magic, wanted 4");
}

TEST_F(ShardTest, BrokenSplitKeys) {
  Metadata metadata = Split(0, 3, 4);
  metadata.Set("split.count", Value::String("3"));
  WriteShard(PathOf(1), metadata, {"a"});
  EXPECT_EQ(
      OpenError(PathOf(1)),
      "M-00001-of-00003.gguf, key \"split.count\": type string, wanted an integer from 0 to 99999");
  metadata.Set("split.count", {ValueType::kInt64, ValueType::kUint32, int64_t{-1}});
  WriteShard(PathOf(1), metadata, {"a"});
  EXPECT_EQ(OpenError(PathOf(1)),
            "M-00001-of-00003.gguf, key \"split.count\": -1, wanted an integer from 0 to 99999");
  WriteShard(PathOf(1), Split(3, 3, 4), {"a"});
  EXPECT_EQ(OpenError(PathOf(1)),
            "M-00001-of-00003.gguf, key \"split.no\": 3, wanted an integer from 0 to 2");
  metadata = {};
  metadata.Set("split.count", U16(3));
  WriteShard(PathOf(1), metadata, {"a"});
  EXPECT_EQ(OpenError(PathOf(1)),
            "M-00001-of-00003.gguf, key \"split.no\": missing, wanted an integer in each shard");
}

TEST_F(ShardTest, AMergedFileIsWhole) {
  const std::string path = folder_ + "merged.gguf";
  for (const uint16_t count : {uint16_t{0}, uint16_t{1}}) {
    WriteShard(path, Split(0, count, 4), {"a"});
    EXPECT_EQ(OpenError(path), "no error");
  }
}

TEST_F(ShardTest, FromBytes) {
  const std::string shard = testing::ReadOrDie(PathOf(1));
  const auto refused = File::FromBytes(AsBytes(shard), "built in");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().Message(),
            "built in: shard 1 of 3, wanted a whole file when it is read from memory");
  WriteShard(folder_ + "whole.gguf", {}, {"a", "b"});
  const std::string whole = testing::ReadOrDie(folder_ + "whole.gguf");
  const auto file = File::FromBytes(AsBytes(whole), "built in");
  ASSERT_TRUE(file.ok()) << file.error().Message();
  EXPECT_EQ(AsText(file->Find("b")->data), "b...");
  EXPECT_EQ(file->n_bytes(), whole.size());
}

TEST(GgufFileTest, PathsThatAreNoFiles) {
  EXPECT_EQ(File::Open("/nonexistent.gguf").error().Message(),
            "/nonexistent.gguf: cannot open: No such file or directory");
  EXPECT_EQ(File::Open("/tmp").error().Message(), "/tmp: not a regular file, wanted a file");
}

TEST(GgufFileTest, OpensTheTestModels) {
  struct Expected {
    const char* name;
    size_t n_tensors;
    size_t n_entries;
    const char* tensor;
    TensorType type;
    std::vector<int64_t> shape;
    size_t n_bytes;
  };
  const std::vector<Expected> all = {
      // names, counts and shapes as gguf-py lists them
      {"dense-k256-IQ4_XS.gguf", 30, 42, "output_norm.weight", TensorType::kF32, {256}, 1024},
      {"dense-k256-Q4_K_M.gguf",
       30,
       42,
       "blk.1.post_ffw_norm.weight",
       TensorType::kF32,
       {256},
       1024},
      {"dense-keqv-Q4_0.gguf", 169, 42, "blk.11.post_ffw_norm.weight", TensorType::kF32, {64}, 256},
      {"dense-keqv-assistant-Q8_0.gguf",
       49,
       43,
       "nextn.post_projection.weight",
       TensorType::kQ8_0,
       {64, 32},
       2176},
      {"etype-sharing-Q4_0.gguf", 161, 42, "blk.9.proj.weight", TensorType::kQ4_0, {64, 32}, 1152},
      {"etype-sharing-assistant-Q4_0.gguf",
       49,
       43,
       "nextn.post_projection.weight",
       TensorType::kQ4_0,
       {64, 32},
       1152},
      {"etype-sharing-assistant-centroids-Q8_0.gguf",
       51,
       43,
       "masked_embd_ordering",
       TensorType::kI32,
       {2048},
       8192},
      {"moe-keqv-Q4_0.gguf", 134, 45, "blk.5.pre_ffw_norm_2.weight", TensorType::kF32, {64}, 256},
  };
  for (const Expected& expected : all) {
    const auto file = File::Open(testing::TestdataPath(std::string("text/gguf/") + expected.name));
    ASSERT_TRUE(file.ok()) << file.error().Message();
    EXPECT_EQ(file->tensors().size(), expected.n_tensors) << expected.name;
    EXPECT_EQ(file->metadata().entries().size(), expected.n_entries) << expected.name;
    const TensorView* tensor = file->Find(expected.tensor);
    ASSERT_NE(tensor, nullptr) << expected.name;
    EXPECT_EQ(tensor->type, expected.type) << expected.name;
    EXPECT_EQ(tensor->shape, expected.shape) << expected.name;
    EXPECT_EQ(tensor->data.size(), expected.n_bytes) << expected.name;
  }
}

TEST(GgufFileTest, OpensOneTensorOfEachBlockType) {
  const auto file = File::Open(testing::TestdataPath("text/quant/blocks.gguf"));
  ASSERT_TRUE(file.ok()) << file.error().Message();
  const std::vector<std::string_view> names = {
      "F32",  "F16",  "BF16", "Q4_0",   "Q4_1",   "Q5_0",  "Q5_1",  "Q8_0",  "Q2_K", "Q3_K",
      "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS", "MXFP4", "NVFP4", "TQ1_0", "TQ2_0"};
  ASSERT_EQ(file->tensors().size(), names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    const TensorView& tensor = file->tensors()[i];
    EXPECT_EQ(tensor.name, "t." + std::string(names[i]));
    EXPECT_EQ(InfoOf(tensor.type).name, names[i]);
    EXPECT_EQ(tensor.shape, (std::vector<int64_t>{8, 512}));
    EXPECT_EQ(tensor.data.size(), static_cast<size_t>(BytesOf(tensor.type, 4096)));
  }
}

TEST(GgufFileTest, OpensTheTinyModel) {
  for (const char* name :
       {"models/gguf/facet-tiny-q8_0.gguf", "models/gguf/mmproj-facet-tiny-bf16.gguf",
        "models/gguf/facet-tiny-assistant-q8_0.gguf"}) {
    const auto path = testing::SharedPath(name);
    if (!path) {
      GTEST_SKIP() << testing::kNoShared;
    }
    const auto file = File::Open(*path);
    EXPECT_TRUE(file.ok()) << file.error().Message();
  }
}

}  // namespace
}  // namespace facet::gguf
