// SPDX-License-Identifier: Apache-2.0
#include "convert/quantize.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/bytes.h"
#include "base/file.h"
#include "base/log.h"
#include "base/random.h"
#include "convert/imatrix.h"
#include "format/gguf.h"
#include "quant/codec.h"
#include "support/testing.h"

namespace facet {
namespace {

using testing::SourcePath;
using testing::TestdataPath;

/// Options for one file of a fresh folder.
QuantizeOptions To(const std::string& type,
                   const std::string& in = SourcePath("models/tiny/facet-tiny.gguf")) {
  QuantizeOptions options;
  options.in = in;
  options.out = testing::MakeTempDir() + "/out.gguf";
  options.choice.file_type = type;
  return options;
}

Status Run(const QuantizeOptions& options) {
  FACET_ASSIGN(const Quantization quantization, Quantization::Prepare(options));
  return quantization.Write({});
}

std::string ErrorOf(const QuantizeOptions& options) {
  const Status status = Run(options);
  EXPECT_FALSE(FileExists(options.out + ".part"));
  return status.ok() ? "no error" : status.error().Message();
}

gguf::File OpenOrDie(const std::string& path) {
  auto file = gguf::File::Open(path);
  EXPECT_TRUE(file.ok()) << file.error().Message();
  return *std::move(file);
}

/// A file of one tensor blk.0.attn_q.weight [n / 32, 32] with these values.
std::string FileOf(const std::vector<float>& values, const std::string& architecture = "gemma4") {
  const std::string path = testing::MakeTempDir() + "/in.gguf";
  gguf::Metadata metadata;
  metadata.Set("general.architecture", gguf::Value::String(architecture));
  metadata.Set("split.count", gguf::Value::U32(1));
  metadata.Set("quantize.imatrix.file", gguf::Value::String("former"));
  metadata.Set("general.file_type", gguf::Value::U32(0));
  metadata.Set("some.key", gguf::Value::Strings({"a", "b"}));
  const std::string bytes(AsText(std::as_bytes(std::span(values))));
  EXPECT_TRUE(gguf::Write(path, metadata,
                          {{"blk.0.attn_q.weight",
                            TensorType::kF32,
                            {static_cast<int64_t>(values.size()) / 32, 32},
                            gguf::WholeTensor(bytes)}})
                  .ok());
  return path;
}

std::vector<float> RandomValues(size_t n) {
  std::vector<float> values(n);
  for (size_t i = 0; i < n; ++i) {
    values[i] = static_cast<float>(RandomUniform(11, i) - 0.5);
  }
  return values;
}

std::vector<float> DecodedOf(const std::string& path) {
  const gguf::File file = OpenOrDie(path);
  const gguf::TensorView& tensor = file.tensors()[0];
  std::vector<float> values(static_cast<size_t>(tensor.shape[0] * tensor.shape[1]));
  FindCodec(tensor.type)
      ->decode(tensor.data.data(), tensor.shape[0] * tensor.shape[1], values.data());
  return values;
}

TEST(Quantize, RowsAreEncodedAndTheRestIsCopied) {
  const QuantizeOptions options = To("q8_0");
  ASSERT_EQ(ErrorOf(options), "no error");
  const gguf::File in = OpenOrDie(options.in);
  const gguf::File out = OpenOrDie(options.out);
  ASSERT_EQ(in.tensors().size(), out.tensors().size());
  for (size_t i = 0; i < in.tensors().size(); ++i) {
    const gguf::TensorView& from = in.tensors()[i];
    const gguf::TensorView& to = out.tensors()[i];
    ASSERT_EQ(from.name, to.name);
    EXPECT_EQ(from.shape, to.shape);
    if (to.type == from.type) {
      EXPECT_EQ(AsText(from.data), AsText(to.data)) << from.name;
      continue;
    }
    ASSERT_EQ(to.type, TensorType::kQ8_0) << from.name;
    const int64_t n = from.shape[0] * from.shape[1];
    std::vector<float> values(static_cast<size_t>(n));
    FindCodec(from.type)->decode(from.data.data(), n, values.data());
    std::string wanted(to.data.size(), '\0');
    FindCodec(to.type)->encode(values.data(), nullptr, n,
                               reinterpret_cast<std::byte*>(wanted.data()));
    EXPECT_EQ(AsText(to.data), wanted) << from.name;
  }
}

TEST(Quantize, MetadataIsKeptButForWhatChanged) {
  const QuantizeOptions options = To("q8_0", FileOf(RandomValues(64)));
  ASSERT_EQ(ErrorOf(options), "no error");
  const gguf::File out = OpenOrDie(options.out);
  const gguf::Metadata& metadata = out.metadata();
  EXPECT_EQ(*metadata.Find("some.key")->AsStrings(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(metadata.Find("general.file_type")->AsInt(), 7);
  EXPECT_EQ(metadata.Find("general.quantization_version")->AsInt(), 2);
  EXPECT_EQ(metadata.Find("split.count"), nullptr);
  EXPECT_EQ(metadata.Find("quantize.imatrix.file"), nullptr);
}

TEST(Quantize, AnyNumberOfThreadsGivesTheSameBytes) {
  QuantizeOptions options = To("q4_0");
  ASSERT_EQ(ErrorOf(options), "no error");
  const std::string wanted = testing::ReadOrDie(options.out);
  for (const int n_threads : {2, 5}) {
    options.n_threads = n_threads;
    ASSERT_EQ(ErrorOf(options), "no error");
    EXPECT_TRUE(testing::ReadOrDie(options.out) == wanted) << n_threads;
  }
}

TEST(Quantize, RefusesValuesThatCannotBeWritten) {
  std::vector<float> values = RandomValues(96);
  values[70] = NAN;
  values[90] = INFINITY;
  QuantizeOptions options = To("q8_0", FileOf(values));
  options.n_threads = 3;
  const std::string where = options.in + ", tensor blk.0.attn_q.weight, row 2, column 6: ";
  EXPECT_EQ(ErrorOf(options), where + "nan, wanted a finite number");
  EXPECT_FALSE(FileExists(options.out));
  values[70] = -70000;
  options.in = FileOf(values);
  EXPECT_EQ(ErrorOf(options), options.in +
                                  ", tensor blk.0.attn_q.weight, row 2, column 6: "
                                  "-70000, wanted at most 65504 in Q8_0");
  options.choice.file_type = "f32";  // also where nothing changes
  EXPECT_EQ(ErrorOf(options), options.in +
                                  ", tensor blk.0.attn_q.weight, row 2, column 26: "
                                  "inf, wanted a finite number");
  values[90] = 0;
  options.in = FileOf(values);
  EXPECT_EQ(ErrorOf(options), "no error");
  options.choice.file_type = "bf16";
  EXPECT_EQ(ErrorOf(options), "no error");
}

TEST(Quantize, NoPartOfTheInputIsTheOutput) {
  const std::string prefix = testing::MakeTempDir() + "/m";
  std::vector<gguf::TensorToWrite> tensors;
  for (const char* name : {"blk.0.ffn_up.weight", "blk.0.ffn_down.weight"}) {
    tensors.push_back({name, TensorType::kF32, {1, 32}, gguf::WholeTensor(std::string(128, '\0'))});
  }
  gguf::Metadata metadata;
  metadata.Set("general.architecture", gguf::Value::String("gemma4"));
  gguf::SplitOptions split;
  split.max_file_bytes = 1;
  ASSERT_TRUE(gguf::WriteSplit(prefix, metadata, tensors, split).ok());
  QuantizeOptions options = To("q8_0", prefix + "-00001-of-00002.gguf");
  options.out = prefix + "-00002-of-00002.gguf";
  EXPECT_EQ(ErrorOf(options), options.out + ": the input, wanted another file");
}

TEST(Quantize, RefusesBeforeAnythingIsWritten) {
  QuantizeOptions options = To("q8_0", SourcePath("models/tiny"));
  EXPECT_EQ(ErrorOf(options),
            options.in + ": a directory, wanted a GGUF file (facet convert makes one)");
  options = To("q8_0", FileOf(RandomValues(32)));
  options.out = testing::MakeTempDir();
  EXPECT_EQ(ErrorOf(options), options.out + ": a directory, wanted the name of a file");
  options.out = options.in;
  EXPECT_EQ(ErrorOf(options), options.in + ": the input, wanted another file");
  options = To("q8_0", FileOf(RandomValues(32), "llama"));
  EXPECT_EQ(ErrorOf(options), options.in +
                                  ", general.architecture: \"llama\", wanted gemma4, "
                                  "gemma4-assistant or clip");
  options = To("q8_0", TestdataPath("imatrix/tiny-q8_0.gguf"));
  EXPECT_EQ(ErrorOf(options), options.in +
                                  ", general.architecture: nothing, wanted gemma4, "
                                  "gemma4-assistant or clip");
  options = To("q4_0", TestdataPath("tiny-gguf/facet-tiny-q8_0.gguf"));
  EXPECT_EQ(ErrorOf(options),
            options.in +
                ", tensor blk.0.ffn_down.weight: type Q8_0, already quantised, "
                "wanted F32, F16 or BF16; --allow-requantize to lose quality twice");
  options = To("q8_0");
  options.choice.overrides = {"blk.0.ffn_down.weight=iq1_s"};
  EXPECT_EQ(ErrorOf(options), options.in +
                                  ", tensor blk.0.ffn_down.weight: to become IQ1_S, "
                                  "wanted a type that Facet writes "
                                  "(docs/quantization.md)");
  EXPECT_FALSE(FileExists(options.out));
}

TEST(Quantize, RequantizesWhenAsked) {
  QuantizeOptions options = To("q4_0", TestdataPath("tiny-gguf/facet-tiny-q8_0.gguf"));
  options.choice.allows_requantize = true;
  EXPECT_EQ(ErrorOf(options), "no error");
  EXPECT_EQ(OpenOrDie(options.out).Find("blk.0.attn_q.weight")->type, TensorType::kQ4_0);
}

TEST(Quantize, ImportanceMovesTheErrorToWhereItMattersLess) {
  const std::vector<float> values = RandomValues(32 * 64);
  std::vector<float> importance(32, 1);
  for (size_t i = 0; i < 4; ++i) {
    importance[7 * i] = 1000;
  }
  QuantizeOptions options = To("q4_0", FileOf(values));
  ASSERT_EQ(ErrorOf(options), "no error");
  const std::vector<float> without = DecodedOf(options.out);
  options.imatrix = testing::MakeTempDir() + "/i.gguf";
  ASSERT_TRUE(
      WriteImatrix(options.imatrix, {{"t.txt"}, 5, 512, {{"blk.0.attn_q.weight", importance, {1}}}})
          .ok());
  ASSERT_EQ(ErrorOf(options), "no error");
  const std::vector<float> with = DecodedOf(options.out);
  const auto error_of = [&](const std::vector<float>& decoded) {
    double error = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      error += importance[i % 32] * std::pow(decoded[i] - values[i], 2);
    }
    return error;
  };
  EXPECT_LT(error_of(with), 0.8 * error_of(without));
  const gguf::File out = OpenOrDie(options.out);
  EXPECT_EQ(*out.metadata().Find("quantize.imatrix.file")->AsString(), options.imatrix);
  EXPECT_EQ(*out.metadata().Find("quantize.imatrix.dataset")->AsString(), "t.txt");
  EXPECT_EQ(out.metadata().Find("quantize.imatrix.entries_count")->AsInt(), 1);
  EXPECT_EQ(out.metadata().Find("quantize.imatrix.chunks_count")->AsInt(), 5);
}

TEST(Quantize, AnImportanceMatrixOfAnotherModelIsRefused) {
  QuantizeOptions options = To("q4_0");
  options.imatrix = testing::MakeTempDir() + "/i.gguf";
  ASSERT_TRUE(
      WriteImatrix(options.imatrix, {{}, 0, 0, {{"blk.0.attn_q.weight", {1, 2}, {1}}}}).ok());
  EXPECT_EQ(ErrorOf(options), options.imatrix +
                                  ", tensor blk.0.attn_q.weight: 2 sums, wanted 128: "
                                  "128 columns of 1 matrices");
}

TEST(Quantize, WhatTheImportanceMatrixLacksIsCountedOnce) {
  std::vector<std::string> warnings;
  const LogSink former =
      SetWarningSink([&](std::string_view line) { warnings.emplace_back(line); });
  QuantizeOptions options = To("q4_0");
  options.imatrix = TestdataPath("imatrix/tiny-q8_0.dat");
  EXPECT_EQ(ErrorOf(options), "no error");  // it has all but the tables, which are not measured
  EXPECT_TRUE(warnings.empty());
  options.imatrix = testing::MakeTempDir() + "/i.gguf";
  ASSERT_TRUE(WriteImatrix(options.imatrix,
                           {{}, 0, 0, {{"blk.0.attn_q.weight", std::vector<float>(128, 1), {1}}}})
                  .ok());
  EXPECT_EQ(ErrorOf(options), "no error");
  SetWarningSink(former);
  EXPECT_EQ(warnings,
            std::vector<std::string>{
                options.imatrix + ": nothing about 79 of 80 matrices; they are quantised without"});
}

}  // namespace
}  // namespace facet
