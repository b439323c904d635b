// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>

#include "base/bytes.h"
#include "base/file.h"
#include "format/gguf.h"
#include "support/testing.h"

namespace facet::gguf {
namespace {

TensorToWrite Make(std::string name, TensorType type, std::vector<int64_t> shape,
                   std::string data) {
  return {std::move(name), type, std::move(shape), WholeTensor(std::move(data))};
}

Metadata AllKinds() {
  Metadata metadata;
  metadata.Set("general.architecture", Value::String("gemma4"));
  metadata.Set("u8", {ValueType::kUint8, ValueType::kUint32, uint64_t{255}});
  metadata.Set("i8", {ValueType::kInt8, ValueType::kUint32, int64_t{-128}});
  metadata.Set("u16", {ValueType::kUint16, ValueType::kUint32, uint64_t{65535}});
  metadata.Set("i16", {ValueType::kInt16, ValueType::kUint32, int64_t{-32768}});
  metadata.Set("u32", Value::U32(UINT32_MAX));
  metadata.Set("i32", {ValueType::kInt32, ValueType::kUint32, int64_t{INT32_MIN}});
  metadata.Set("u64", {ValueType::kUint64, ValueType::kUint32, UINT64_MAX});
  metadata.Set("i64", {ValueType::kInt64, ValueType::kUint32, INT64_MIN});
  metadata.Set("f32", Value::F32(1e-6f));
  metadata.Set("f64", {ValueType::kFloat64, ValueType::kUint32, 0.1});
  metadata.Set("yes", Value::Bool(true));
  metadata.Set("no", Value::Bool(false));
  metadata.Set("empty", Value::String(""));
  metadata.Set("strings", Value::Strings({"", "\xe2\x96\x81the", std::string("\0x", 2)}));
  metadata.Set("u32s", Value::U32s({0, 1, UINT32_MAX}));
  metadata.Set("i32s", Value::I32s({INT32_MIN, 0, INT32_MAX}));
  metadata.Set("f32s", Value::F32s({-0.0f, 1e30f}));
  metadata.Set("bools", Value::Bools({true, true, false}));
  metadata.Set("u8s", {ValueType::kArray, ValueType::kUint8, std::vector<uint64_t>{0, 255}});
  metadata.Set("none", Value::U32s({}));
  return metadata;
}

void ExpectEqual(const Metadata& read, const Metadata& written) {
  ASSERT_EQ(read.entries().size(), written.entries().size());
  for (size_t i = 0; i < read.entries().size(); ++i) {
    const auto& [key, value] = read.entries()[i];
    const auto& [wanted_key, wanted] = written.entries()[i];
    EXPECT_EQ(key, wanted_key);
    EXPECT_EQ(value.type, wanted.type) << key;
    if (value.is_array()) {
      EXPECT_EQ(value.element_type, wanted.element_type) << key;
    }
    EXPECT_EQ(value.data, wanted.data) << key;
  }
}

TEST(GgufWriteTest, WhatIsWrittenReadsBackEqual) {
  const std::string path = testing::MakeTempDir() + "/a.gguf";
  const Metadata metadata = AllKinds();
  const std::string q4(36 * 3, '\7');
  std::vector<std::pair<uint64_t, uint64_t>> progress;
  const Status written = Write(
      path, metadata,
      {Make("blk.0.attn_q.weight", TensorType::kQ4_0, {3, 64}, q4),
       Make("scale", TensorType::kF32, {1}, "abcd"),
       Make("deep", TensorType::kBF16, {2, 1, 2, 8}, std::string(64, 'x'))},
      [&](uint64_t n_written, uint64_t n_total) { progress.emplace_back(n_written, n_total); });
  ASSERT_TRUE(written.ok()) << written.error().Message();

  const auto file = File::Open(path);
  ASSERT_TRUE(file.ok()) << file.error().Message();
  EXPECT_EQ(file->version(), 3u);
  EXPECT_EQ(file->alignment(), 32u);
  EXPECT_EQ(file->n_shards(), 1u);
  ExpectEqual(file->metadata(), metadata);
  ASSERT_EQ(file->tensors().size(), 3u);
  EXPECT_EQ(file->tensors()[0].shape, (std::vector<int64_t>{3, 64}));
  EXPECT_EQ(file->tensors()[0].type, TensorType::kQ4_0);
  EXPECT_EQ(AsText(file->tensors()[0].data), q4);
  EXPECT_EQ(AsText(file->Find("scale")->data), "abcd");
  EXPECT_EQ(file->Find("deep")->shape, (std::vector<int64_t>{2, 1, 2, 8}));
  EXPECT_EQ(file->Find("other"), nullptr);

  const uint64_t size = file->n_bytes();
  EXPECT_EQ(size % 32, 0u);
  const std::vector<std::pair<uint64_t, uint64_t>> wanted = {
      {size - 224, size}, {size - 116, size}, {size - 96, size},  // directory; 108 bytes, padding
      {size - 92, size},  {size - 64, size},  {size, size}};      // 4 bytes, padding; 64 bytes
  EXPECT_EQ(progress, wanted);
}

TEST(GgufWriteTest, AlignmentOfTheMetadataIsUsed) {
  const std::string path = testing::MakeTempDir() + "/a.gguf";
  Metadata metadata;
  metadata.Set("general.alignment", Value::U32(256));
  const Status written = Write(
      path, metadata, {Make("a", TensorType::kI8, {1}, "a"), Make("b", TensorType::kI8, {1}, "b")});
  ASSERT_TRUE(written.ok()) << written.error().Message();
  const auto file = File::Open(path);
  ASSERT_TRUE(file.ok()) << file.error().Message();
  EXPECT_EQ(file->alignment(), 256u);
  EXPECT_EQ(file->n_bytes(), 768u);
  EXPECT_EQ(file->Find("b")->data.data() - file->Find("a")->data.data(), 256);
}

TEST(GgufWriteTest, WithoutTensorsAndMetadata) {
  const std::string path = testing::MakeTempDir() + "/a.gguf";
  ASSERT_TRUE(Write(path, {}, {}).ok());
  const auto file = File::Open(path);
  ASSERT_TRUE(file.ok()) << file.error().Message();
  EXPECT_TRUE(file->tensors().empty());
  EXPECT_TRUE(file->metadata().entries().empty());
}

TEST(GgufWriteTest, RefusesWhatCouldNotBeReadAndLeavesNoFile) {
  const std::string folder = testing::MakeTempDir();
  const std::string path = folder + "/a.gguf";
  const auto error_of = [&](const Metadata& metadata, const std::vector<TensorToWrite>& tensors) {
    const Status written = Write(path, metadata, tensors);
    EXPECT_FALSE(FileExists(path));
    EXPECT_FALSE(FileExists(path + ".part"));
    return written.ok() ? "no error" : written.error().Message().substr(folder.size() + 1);
  };
  EXPECT_EQ(error_of({}, {Make("t", TensorType::kF32, {2}, "abcd")}),
            "a.gguf, tensor \"t\": 4 bytes of data, wanted 8");
  EXPECT_EQ(error_of({}, {Make("t", TensorType::kF32, {0}, "")}),
            "a.gguf, tensor \"t\": shape [0], wanted dimensions of 1 or more");
  EXPECT_EQ(error_of({}, {Make("t", TensorType::kQ8_0, {2, 16}, std::string(34, 'x'))}),
            "a.gguf, tensor \"t\": rows of 16 elements of Q8_0, wanted a multiple of 32");
  EXPECT_EQ(
      error_of({}, {Make("t", TensorType::kI8, {1}, "x"), Make("t", TensorType::kI8, {1}, "x")}),
      "a.gguf: tensor \"t\" twice, wanted each name once");
  EXPECT_EQ(error_of({}, {Make(std::string(65, 'x'), TensorType::kI8, {1}, "x")}),
            "a.gguf: tensor name of 65 bytes, wanted 1 to 64");
  const TensorToWrite failing{"t", TensorType::kI8, {1}, [](ByteSink&) -> Status {
                                return Refuse(std::string(80, '/') + "source", "gone");
                              }};
  EXPECT_TRUE(error_of({}, {failing}).ends_with("source: gone"));
  Metadata metadata;
  metadata.Set("", Value::U32(1));
  EXPECT_EQ(error_of(metadata, {}), "a.gguf: key of 0 bytes, wanted 1 to 65535");
  metadata = {};
  metadata.Set("general.alignment", Value::U32(3));
  EXPECT_EQ(error_of(metadata, {}),
            "a.gguf, key \"general.alignment\": 3, wanted a power of two from 8 to 65536");
  metadata = {};
  metadata.Set("k", Value::Strings({"", std::string((size_t{1} << 26) + 1, 'x')}));
  EXPECT_EQ(error_of(metadata, {}),
            "a.gguf, key \"k\": a string of 67108865 bytes, wanted at most 67108864");
  metadata = {};
  metadata.Set("k", Value::Bools(std::vector<bool>((size_t{1} << 24) + 1)));
  EXPECT_EQ(error_of(metadata, {}),
            "a.gguf: 16777217 array elements, wanted at most 16777216 in all arrays");
}

TEST(GgufWriteTest, DataComesInPieces) {
  const std::string path = testing::MakeTempDir() + "/a.gguf";
  const TensorToWrite pieces{"t", TensorType::kI8, {5}, [](ByteSink& sink) -> Status {
                               FACET_RETURN_IF_ERROR(sink.Append(AsBytes("ab")));
                               FACET_RETURN_IF_ERROR(sink.Append({}));
                               return sink.Append(AsBytes("cde"));
                             }};
  ASSERT_TRUE(Write(path, {}, {pieces}).ok());
  EXPECT_EQ(AsText(File::Open(path)->Find("t")->data), "abcde");
}

TEST(GgufWriteTest, DataBeyondTheTensorIsRefusedAtOnce) {
  const std::string path = testing::MakeTempDir() + "/a.gguf";
  int n_pieces = 0;
  const TensorToWrite endless{"t", TensorType::kI8, {5}, [&n_pieces](ByteSink& sink) -> Status {
                                for (;; ++n_pieces) {
                                  FACET_RETURN_IF_ERROR(sink.Append(AsBytes("abcd")));
                                }
                              }};
  const Status written = Write(path, {}, {endless});
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().Message(), path + ", tensor \"t\": 8 bytes of data, wanted 5");
  EXPECT_EQ(n_pieces, 1);
  EXPECT_FALSE(FileExists(path + ".part"));
}

TEST(GgufWriteTest, AFolderThatDoesNotExist) {
  const Status written = Write("/nonexistent/a.gguf", {}, {});
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().Message(),
            "/nonexistent/a.gguf: cannot create: No such file or directory");
}

class GgufSplitTest : public ::testing::Test {
 protected:
  /// Five tensors of 1000, 1000, 3000, 1000 and 1000 bytes.
  GgufSplitTest() {
    for (const int n : {1000, 1000, 3000, 1000, 1000}) {
      const std::string name(1, static_cast<char>('a' + tensors_.size()));
      tensors_.push_back(
          Make(name, TensorType::kI8, {n}, std::string(static_cast<size_t>(n), name[0])));
    }
    metadata_.Set("general.architecture", Value::String("gemma4"));
    metadata_.Set("general.name", Value::String("x"));
  }

  [[nodiscard]] std::string PathOf(int number, int count) const {
    return folder_ + "/m-0000" + std::to_string(number) + "-of-0000" + std::to_string(count) +
           ".gguf";
  }

  Status Split(uint64_t max_file_bytes) {
    return WriteSplit(
        folder_ + "/m", metadata_, tensors_,
        {max_file_bytes, [this](const std::vector<std::string>& paths) { paths_ = paths; }, {}});
  }

  std::string folder_ = testing::MakeTempDir();
  Metadata metadata_;
  std::vector<TensorToWrite> tensors_;
  std::vector<std::string> paths_;
};

TEST_F(GgufSplitTest, KeepsTheLimitUnlessOneTensorIsAbove) {
  ASSERT_TRUE(Split(2400).ok());
  EXPECT_EQ(paths_, (std::vector{PathOf(1, 3), PathOf(2, 3), PathOf(3, 3)}));
  const auto file = File::Open(PathOf(1, 3));
  ASSERT_TRUE(file.ok()) << file.error().Message();
  EXPECT_EQ(file->n_shards(), 3u);
  ASSERT_EQ(file->tensors().size(), 5u);
  for (const TensorView& tensor : file->tensors()) {
    EXPECT_EQ(tensor.data.size(), tensor.name == "c" ? 3000u : 1000u);
    EXPECT_EQ(AsText(tensor.data.first(1)), tensor.name);
  }
  const auto parts = [this](int number) { return testing::ReadOrDie(PathOf(number, 3)).size(); };
  EXPECT_LE(parts(1), 2400u);
  EXPECT_GT(parts(2), 3000u);
  EXPECT_LE(parts(3), 2400u);
  EXPECT_GT(parts(3), 2000u);
}

/// The limit counts the directory too, and the padding.
TEST_F(GgufSplitTest, TheLimitIsThatOfTheFile) {
  ASSERT_TRUE(Split(UINT64_MAX).ok());
  ASSERT_EQ(paths_, std::vector{PathOf(1, 1)});
  const uint64_t size = testing::ReadOrDie(paths_[0]).size();
  ASSERT_TRUE(Split(size).ok());
  EXPECT_EQ(paths_.size(), 1u);
  ASSERT_TRUE(Split(size - 1).ok());
  EXPECT_EQ(paths_.size(), 2u);
  ASSERT_TRUE(Split(1).ok());
  EXPECT_EQ(paths_.size(), 5u);
}

TEST_F(GgufSplitTest, KeysAreThoseOfGgufSplit) {
  metadata_.Set("general.alignment", Value::U32(64));
  ASSERT_TRUE(Split(2400).ok());
  for (int number = 1; number <= 3; ++number) {
    const std::string bytes = testing::ReadOrDie(PathOf(number, 3));
    const auto part = Parse(AsBytes(bytes), "part");
    ASSERT_TRUE(part.ok()) << part.error().Message();
    const Metadata& keys = part->metadata;
    EXPECT_EQ(keys.entries().size(), number == 1 ? 6u : 4u);
    EXPECT_EQ(keys.Find("general.name") != nullptr, number == 1);
    EXPECT_EQ(part->alignment, 64u);
    EXPECT_EQ(keys.Find("split.no")->type, ValueType::kUint16);
    EXPECT_EQ(keys.Find("split.no")->AsInt(), number - 1);
    EXPECT_EQ(keys.Find("split.count")->type, ValueType::kUint16);
    EXPECT_EQ(keys.Find("split.count")->AsInt(), 3);
    EXPECT_EQ(keys.Find("split.tensors.count")->type, ValueType::kInt32);
    EXPECT_EQ(keys.Find("split.tensors.count")->AsInt(), 5);
  }
}

TEST_F(GgufSplitTest, NothingAppearsBeforeAllIsWritten) {
  tensors_.back().write = [this](ByteSink&) -> Status {
    EXPECT_TRUE(FileExists(PathOf(1, 3) + ".part"));
    EXPECT_TRUE(FileExists(PathOf(2, 3) + ".part"));
    EXPECT_FALSE(FileExists(PathOf(1, 3)));
    EXPECT_FALSE(FileExists(PathOf(2, 3)));
    return Refuse("source", "gone");
  };
  const Status written = Split(2400);
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().Message(), "source: gone");
  for (int number = 1; number <= 3; ++number) {
    EXPECT_FALSE(FileExists(PathOf(number, 3) + ".part"));
    EXPECT_FALSE(FileExists(PathOf(number, 3)));
  }
}

TEST_F(GgufSplitTest, AFileThatCannotGetItsNameTakesTheOthersAway) {
  std::filesystem::create_directory(PathOf(1, 3));
  const Status written = Split(2400);
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().Message(), PathOf(1, 3) + ": cannot rename: Is a directory");
  EXPECT_FALSE(FileExists(PathOf(1, 3) + ".part"));
  EXPECT_FALSE(FileExists(PathOf(2, 3)));
  EXPECT_FALSE(FileExists(PathOf(3, 3)));
}

TEST_F(GgufSplitTest, MorePartsThanTheKeyHolds) {
  tensors_.clear();
  for (int i = 0; i <= 65535; ++i) {
    tensors_.push_back({std::to_string(i), TensorType::kI8, {1}, {}});
  }
  const Status written = Split(1);
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().Message(),
            folder_ + "/m: 65536 files of at most 1 bytes, wanted at most 65535 files");
}

}  // namespace
}  // namespace facet::gguf
