// SPDX-License-Identifier: Apache-2.0
#include "format/safetensors.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "base/bytes.h"
#include "base/file.h"
#include "support/testing.h"

namespace facet::safetensors {
namespace {

std::string Build(const std::string& header, size_t data_bytes) {
  std::string out;
  Append(out, uint64_t{header.size()});
  return out + header + std::string(data_bytes, 'd');
}

std::string ErrorOf(const std::string& bytes) {
  const auto tensors = Parse(AsBytes(bytes), "a.safetensors");
  return tensors.ok() ? "no error" : tensors.error().Message();
}

/// A header with one tensor "t" and 8 bytes of data.
std::string TensorError(const std::string& descriptor) {
  return ErrorOf(Build(R"({"t":)" + descriptor + "}", 8));
}

std::string Descriptor(const std::string& dtype, const std::string& shape,
                       const std::string& offsets) {
  return R"({"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
}

constexpr std::string_view kTwoTensors = R"({"__metadata__":{"format":"pt"},
  "b":{"dtype":"BF16","shape":[2,3],"data_offsets":[4,16]},
  "a":{"dtype":"F32","shape":[],"data_offsets":[0,4]},
  "none":{"dtype":"I64","shape":[3,0],"data_offsets":[4,4]},
  "flags":{"shape":[2],"data_offsets":[16,18],"dtype":"BOOL"}}   )";

TEST(SafetensorsParseTest, ReadsNamesTypesShapesAndData) {
  std::string bytes = Build(std::string(kTwoTensors), 0) + "AAAA" + "BBBBBBBBBBBB" + "\1";
  bytes.push_back('\0');
  const auto tensors = Parse(AsBytes(bytes), "a.safetensors");
  ASSERT_TRUE(tensors.ok()) << tensors.error().Message();
  ASSERT_EQ(tensors->size(), 4u);
  const TensorView& b = (*tensors)[0];
  EXPECT_EQ(b.name, "b");
  EXPECT_EQ(b.type, TensorType::kBF16);
  EXPECT_EQ(b.shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(AsText(b.data), "BBBBBBBBBBBB");
  EXPECT_TRUE((*tensors)[1].shape.empty());
  EXPECT_EQ(AsText((*tensors)[1].data), "AAAA");
  EXPECT_TRUE((*tensors)[2].data.empty());
  EXPECT_EQ((*tensors)[2].shape, (std::vector<int64_t>{3, 0}));
  EXPECT_EQ((*tensors)[3].type, TensorType::kI8);
  EXPECT_EQ(AsText((*tensors)[3].data), std::string_view("\1\0", 2));
}

TEST(SafetensorsParseTest, KnowsTheTypes) {
  const std::vector<std::pair<std::string, TensorType>> types = {
      {"F64", TensorType::kF64}, {"I64", TensorType::kI64}, {"F32", TensorType::kF32},
      {"I32", TensorType::kI32}, {"F16", TensorType::kF16}, {"BF16", TensorType::kBF16},
      {"I16", TensorType::kI16}, {"I8", TensorType::kI8},   {"U8", TensorType::kI8}};
  for (const auto& [name, type] : types) {
    const int64_t n_elements = 8 / InfoOf(type).block_bytes;
    const std::string header =
        R"({"t":)" + Descriptor('"' + name + '"', '[' + std::to_string(n_elements) + ']', "[0,8]") +
        "}";
    const std::string bytes = Build(header, 8);
    const auto tensors = Parse(AsBytes(bytes), "a");
    ASSERT_TRUE(tensors.ok()) << tensors.error().Message();
    EXPECT_EQ((*tensors)[0].type, type);
  }
}

TEST(SafetensorsParseTest, EveryTruncationIsAnError) {
  const std::string bytes = Build(std::string(kTwoTensors), 18);
  EXPECT_EQ(ErrorOf(bytes), "no error");
  for (size_t size = 0; size < bytes.size(); ++size) {
    const std::vector<char> part(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_FALSE(Parse(std::as_bytes(std::span(part)), "a").ok()) << size;
  }
}

TEST(SafetensorsParseTest, EveryChangedByteIsHandled) {
  const std::string bytes = Build(std::string(kTwoTensors), 18);
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (const int change : {0x01, 0x08, 0x80, 0xff}) {
      std::string changed = bytes;
      changed[i] = static_cast<char>(changed[i] ^ change);
      const auto tensors = Parse(AsBytes(changed), "a");
      size_t n_bytes = 0;
      for (size_t t = 0; tensors.ok() && t < tensors->size(); ++t) {
        n_bytes += (*tensors)[t].data.size();
      }
      EXPECT_TRUE(!tensors.ok() || n_bytes == 18) << i;
    }
  }
}

TEST(SafetensorsParseTest, RefusesBrokenHeaders) {
  EXPECT_EQ(ErrorOf("1234567"), "a.safetensors, byte 0: 7 bytes left for header length, wanted 8");
  EXPECT_EQ(ErrorOf(std::string("\x03\0\0\0\0\0\0\0{}", 10)),
            "a.safetensors, byte 8: 2 bytes left for header, wanted 3");
  EXPECT_EQ(ErrorOf(std::string(8, '\xff')),
            "a.safetensors: a header of 18446744073709551615 bytes, wanted at most 100000000");
  EXPECT_EQ(ErrorOf(std::string("\x01\xe1\xf5\x05\0\0\0\0", 8)),
            "a.safetensors: a header of 100000001 bytes, wanted at most 100000000");
  EXPECT_EQ(ErrorOf(Build("", 0)), "a.safetensors, byte 1: broken JSON, wanted valid JSON");
  EXPECT_EQ(ErrorOf(Build("{\"a\":}", 0)), "a.safetensors, byte 6: broken JSON, wanted valid JSON");
  EXPECT_EQ(ErrorOf(Build("{} x", 0)), "a.safetensors, byte 4: broken JSON, wanted valid JSON");
  EXPECT_EQ(ErrorOf(Build("{\"\xff\":{}}", 0)),
            "a.safetensors, byte 3: broken JSON, wanted valid JSON");
  EXPECT_EQ(ErrorOf(Build("[]", 0)), "a.safetensors: a header that is an array, wanted an object");
  EXPECT_EQ(ErrorOf(Build(std::string(100000, '['), 0)),
            "a.safetensors: JSON nested too deeply, wanted at most 3 levels");
  EXPECT_EQ(ErrorOf(Build(R"({"a":1,"a":2})", 0)),
            "a.safetensors: tensor \"a\" twice, wanted each name once");
  EXPECT_EQ(ErrorOf(Build("{}", 0)), "no error");
  EXPECT_EQ(ErrorOf(Build("{}", 1)),
            "a.safetensors: 1 bytes of data, wanted 0 as the tensors take");
}

TEST(SafetensorsParseTest, RefusesBrokenTensors) {
  const std::string where = "a.safetensors, tensor \"t\": ";
  EXPECT_EQ(TensorError(Descriptor("\"I8\"", "[8]", "[0,8]")), "no error");
  EXPECT_EQ(TensorError("null"),
            where + "\"null\", wanted an object of dtype, shape and data_offsets");
  EXPECT_EQ(
      TensorError(R"({"dtype":"I8","shape":[8]})"),
      where + R"("{"dtype":"I8","shape":[8]}", wanted an object of dtype, shape and data_offsets)");
  EXPECT_EQ(TensorError(R"({"dtype":"I8","shape":[8],"data_offsets":[0,8],"shape":[8]})"),
            where + R"("{"dtype":"I8","shape":[8],"data_offsets":[0,8],"shape":[8]}", )"
                    "wanted an object of dtype, shape and data_offsets");
  const std::string types = ", wanted F64, F32, F16, BF16, I64, I32, I16, I8, U8 or BOOL";
  EXPECT_EQ(TensorError(Descriptor("\"F8_E4M3\"", "[8]", "[0,8]")),
            where + "dtype \"F8_E4M3\"" + types);
  EXPECT_EQ(TensorError(Descriptor("\"f32\"", "[2]", "[0,8]")), where + "dtype \"f32\"" + types);
  EXPECT_EQ(TensorError(Descriptor("3", "[8]", "[0,8]")), where + "dtype an integer" + types);
  EXPECT_EQ(TensorError(Descriptor("\"I8\"", "[-8]", "[0,8]")),
            where + "shape \"[-8]\", wanted a list of integers of 0 or more");
  EXPECT_EQ(TensorError(Descriptor("\"I8\"", "[8.0]", "[0,8]")),
            where + "shape \"[8.0]\", wanted a list of integers of 0 or more");
  EXPECT_EQ(TensorError(Descriptor("\"I8\"", "8", "[0,8]")),
            where + "shape \"8\", wanted a list of integers of 0 or more");
  EXPECT_EQ(TensorError(Descriptor("\"I8\"", "[18446744073709551616]", "[0,8]")),
            where + "shape \"[18446744073709551616]\", wanted a list of integers of 0 or more");
  EXPECT_EQ(TensorError(Descriptor("\"I8\"", "[1,1,1,1,1,1,1,1,8]", "[0,8]")),
            where + "9 dimensions, wanted at most 8");
  // The product of these would be 8 in 64 bits.
  EXPECT_EQ(TensorError(Descriptor("\"I8\"", "[4294967296,4294967296,8]", "[0,8]")),
            where + "more elements than the limit, wanted at most 2^60");
  EXPECT_EQ(
      TensorError(Descriptor("\"F64\"", "[1152921504606846976]", "[0,8]")),
      where + "8 bytes of data, wanted 9223372036854775808 for F64 of shape [1152921504606846976]");
  EXPECT_EQ(TensorError(Descriptor("\"F32\"", "[3]", "[0,8]")),
            where + "8 bytes of data, wanted 12 for F32 of shape [3]");
}

TEST(SafetensorsParseTest, RefusesBadPlaces) {
  const std::string where = "a.safetensors, tensor \"t\": ";
  const std::string within = ", wanted begin and end within the 8 bytes of data";
  EXPECT_EQ(TensorError(Descriptor("\"I8\"", "[9]", "[0,9]")),
            where + "data_offsets \"[0,9]\"" + within);
  EXPECT_EQ(TensorError(Descriptor("\"I8\"", "[8]", "[8,0]")),
            where + "data_offsets \"[8,0]\"" + within);
  EXPECT_EQ(TensorError(Descriptor("\"I8\"", "[8]", "[0]")),
            where + "data_offsets \"[0]\"" + within);
  EXPECT_EQ(TensorError(Descriptor("\"I8\"", "[8]", "[0,8,8]")),
            where + "data_offsets \"[0,8,8]\"" + within);
  EXPECT_EQ(TensorError(Descriptor("\"I8\"", "[8]", "[-8,0]")),
            where + "data_offsets \"[-8,0]\", wanted a list of integers of 0 or more");
  EXPECT_EQ(TensorError(Descriptor("\"I8\"", "[7]", "[1,8]")),
            where + "data at offset 1, wanted 0, where the data before it ends");
  EXPECT_EQ(TensorError(Descriptor("\"I8\"", "[7]", "[0,7]")),
            "a.safetensors: 8 bytes of data, wanted 7 as the tensors take");
  const std::string first = R"({"a":)" + Descriptor("\"I8\"", "[4]", "[0,4]") + R"(,"t":)";
  EXPECT_EQ(ErrorOf(Build(first + Descriptor("\"I8\"", "[4]", "[4,8]") + "}", 8)), "no error");
  EXPECT_EQ(ErrorOf(Build(first + Descriptor("\"I8\"", "[5]", "[3,8]") + "}", 8)),
            where + "data at offset 3, wanted 4, where the data before it ends");
  EXPECT_EQ(ErrorOf(Build(first + Descriptor("\"I8\"", "[3]", "[5,8]") + "}", 8)),
            where + "data at offset 5, wanted 4, where the data before it ends");
}

/// model.safetensors.index.json with a in one.safetensors and b in two.safetensors.
class IndexTest : public ::testing::Test {
 protected:
  IndexTest() : folder_(testing::MakeTempDir() + "/") {
    Put("one.safetensors", Build(R"({"a":)" + Descriptor("\"I8\"", "[4]", "[0,4]") + "}", 4));
    Put("two.safetensors", Build(R"({"b":)" + Descriptor("\"I8\"", "[2]", "[0,2]") + "}", 2));
  }

  void Put(const std::string& name, const std::string& bytes) const {
    ASSERT_TRUE(WriteFile(folder_ + name, bytes).ok());
  }

  [[nodiscard]] Result<File> OpenIndex(const std::string& json) const {
    Put("index.json", json);
    return File::Open(folder_ + "index.json");
  }

  [[nodiscard]] std::string IndexError(const std::string& json) const {
    const auto file = OpenIndex(json);
    std::string message = file.ok() ? "no error" : file.error().Message();
    for (size_t at = message.find(folder_); at != std::string::npos; at = message.find(folder_)) {
      message.erase(at, folder_.size());
    }
    return message;
  }

  std::string folder_;
};

TEST_F(IndexTest, OpensAllShards) {
  const auto file = OpenIndex(
      R"({"metadata":{"size":6},"weight_map":{"b":"two.safetensors","a":"one.safetensors"}})");
  ASSERT_TRUE(file.ok()) << file.error().Message();
  EXPECT_EQ(file->tensors().size(), 2u);
  EXPECT_EQ(file->Find("a")->data.size(), 4u);
  EXPECT_EQ(file->Find("b")->data.size(), 2u);
  EXPECT_EQ(file->Find("c"), nullptr);
  EXPECT_EQ(file->n_bytes(), testing::ReadOrDie(folder_ + "one.safetensors").size() +
                                 testing::ReadOrDie(folder_ + "two.safetensors").size());
}

TEST_F(IndexTest, RefusesPaths) {
  const std::string wanted = ", wanted a file name NAME.safetensors without a directory";
  const std::string where = "index.json, tensor \"a\": shard ";
  EXPECT_EQ(IndexError(R"({"weight_map":{"a":"../one.safetensors"}})"),
            where + R"(""../one.safetensors"")" + wanted);
  EXPECT_EQ(IndexError(R"({"weight_map":{"a":"/etc/one.safetensors"}})"),
            where + R"(""/etc/one.safetensors"")" + wanted);
  EXPECT_EQ(IndexError(R"({"weight_map":{"a":"x\\one.safetensors"}})"),
            where + R"(""x\\one.safetensors"")" + wanted);
  EXPECT_EQ(IndexError(R"({"weight_map":{"a":"passwd"}})"), where + R"(""passwd"")" + wanted);
  EXPECT_EQ(IndexError(R"({"weight_map":{"a":".safetensors"}})"),
            where + R"("".safetensors"")" + wanted);
  EXPECT_EQ(IndexError(R"({"weight_map":{"a":1}})"), where + R"("1")" + wanted);
  EXPECT_EQ(IndexError("{\"weight_map\":{\"a\":\"one\\u0000.safetensors\"}}"),
            where + R"(""one\u0000.safetensors"")" + wanted);
}

TEST_F(IndexTest, RefusesWhatDoesNotFit) {
  EXPECT_EQ(IndexError(R"({"weight_map":{"a":"one.safetensors","c":"two.safetensors"}})"),
            "index.json, tensor \"c\": not in \"two.safetensors\", wanted a shard that holds it");
  EXPECT_EQ(IndexError(R"({"weight_map":{"b":"one.safetensors","a":"two.safetensors"}})"),
            "index.json, tensor \"b\": not in \"one.safetensors\", wanted a shard that holds it");
  EXPECT_EQ(IndexError(R"({"weight_map":{"a":"one.safetensors","b":"three.safetensors"}})"),
            "three.safetensors: missing, wanted a shard that index.json names");
  EXPECT_EQ(IndexError(R"({"weight_map":{"a":"one.safetensors","a":"two.safetensors"}})"),
            "index.json: tensor \"a\" twice, wanted each name once");
  EXPECT_EQ(IndexError(R"({"weight_map":{}})"),
            "index.json: weight_map is an object, wanted an object that names tensors");
  EXPECT_EQ(IndexError("[]"),
            "index.json: weight_map is null, wanted an object that names tensors");
  EXPECT_EQ(IndexError("{"), "index.json, byte 2: broken JSON, wanted valid JSON");
  Put("two.safetensors", testing::ReadOrDie(folder_ + "one.safetensors"));
  EXPECT_EQ(IndexError(R"({"weight_map":{"a":"one.safetensors","b":"two.safetensors"}})"),
            "index.json: tensor \"a\" in two shards, wanted each name once");
  Put("two.safetensors", "x");
  EXPECT_EQ(IndexError(R"({"weight_map":{"a":"one.safetensors","b":"two.safetensors"}})"),
            "two.safetensors, byte 0: 1 bytes left for header length, wanted 8");
}

TEST_F(IndexTest, TooManyShards) {
  std::string json = R"({"weight_map":{"t":"t.safetensors")";
  for (int i = 0; i < 1000; ++i) {
    const std::string name = std::to_string(i);
    json += ",\"" + name + "\":\"" + name + ".safetensors\"";
  }
  EXPECT_EQ(IndexError(json + "}}"), "index.json: 1001 shards, wanted at most 1000");
}

TEST(SafetensorsFileTest, OpensTheTestModels) {
  struct Expected {
    const char* path;
    size_t n_tensors;
    const char* tensor;
    TensorType type;
    std::vector<int64_t> shape;
  };
  const std::vector<Expected> all = {
      {"dense-k256/goldens", 5, "text17.argmax", TensorType::kI32, {17}},
      {"dense-keqv-assistant/goldens",
       26,
       "short.v_sliding_attention",
       TensorType::kF32,
       {9, 4, 32}},
      {"dense-keqv-assistant/model", 48, "pre_projection.weight", TensorType::kF32, {32, 128}},
      {"dense-keqv/goldens", 81, "media.last_logits_float64", TensorType::kF64, {2048}},
      {"dense-keqv/model",
       168,
       "model.language_model.embed_tokens.weight",
       TensorType::kBF16,
       {2048, 64}},
      {"etype-plain/goldens", 91, "text70.argmax", TensorType::kI32, {70}},
      {"etype-plain/model",
       191,
       "model.language_model.per_layer_projection_norm.weight",
       TensorType::kBF16,
       {32}},
      {"etype-sharing-assistant/goldens",
       34,
       "long.clean.centroid_scores",
       TensorType::kF32,
       {5, 64}},
      {"etype-sharing-assistant/model",
       50,
       "masked_embedding.token_ordering",
       TensorType::kI64,
       {2048}},
      {"etype-sharing/goldens", 85, "text70.argmax", TensorType::kI32, {70}},
      {"etype-sharing/model",
       160,
       "model.language_model.embed_tokens.weight",
       TensorType::kBF16,
       {2048, 64}},
      {"gguf/goldens", 11, "moe-keqv-Q4_0.logits", TensorType::kF32, {4, 2048}},
      {"moe-keqv/goldens", 75, "text70.argmax", TensorType::kI32, {70}},
      {"moe-keqv/model", 133, "model.language_model.norm.weight", TensorType::kBF16, {64}},
      {"quant/values", 20, "source", TensorType::kF32, {8, 512}},
  };
  for (const Expected& expected : all) {
    const std::string path =
        testing::TestdataPath(std::string("text/") + expected.path + ".safetensors");
    const auto file = File::Open(path);
    ASSERT_TRUE(file.ok()) << file.error().Message();
    EXPECT_EQ(file->tensors().size(), expected.n_tensors) << expected.path;
    const TensorView* tensor = file->Find(expected.tensor);
    ASSERT_NE(tensor, nullptr) << expected.path;
    EXPECT_EQ(tensor->type, expected.type) << expected.path;
    EXPECT_EQ(tensor->shape, expected.shape) << expected.path;
  }
}

TEST(SafetensorsFileTest, AMissingFile) {
  EXPECT_EQ(File::Open("/nonexistent.safetensors").error().Message(),
            "/nonexistent.safetensors: cannot open: No such file or directory");
}

}  // namespace
}  // namespace facet::safetensors
