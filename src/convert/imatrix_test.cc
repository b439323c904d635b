// SPDX-License-Identifier: Apache-2.0
#include "convert/imatrix.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/bytes.h"
#include "base/file.h"
#include "format/gguf.h"
#include "support/testing.h"

namespace facet {
namespace {

using testing::TestdataPath;

Imatrix ReadOrFail(const std::string& path) {
  auto imatrix = ReadImatrix(path);
  EXPECT_TRUE(imatrix.ok()) << imatrix.error().Message();
  return imatrix.ok() ? *std::move(imatrix) : Imatrix();
}

std::string ErrorOf(std::string_view bytes) {
  const auto imatrix = ParseImatrix(AsBytes(bytes), "i");
  return imatrix.ok() ? "no error" : imatrix.error().Message();
}

TEST(Imatrix, ReadsBothFormsOfLlamaCpp) {
  const Imatrix now = ReadOrFail(TestdataPath("imatrix/tiny-q8_0.gguf"));
  const Imatrix older = ReadOrFail(TestdataPath("imatrix/tiny-q8_0.dat"));
  EXPECT_EQ(now.datasets, std::vector<std::string>{"text.txt"});
  EXPECT_EQ(older.datasets, now.datasets);
  EXPECT_EQ(now.n_chunks, 1u);
  EXPECT_EQ(older.n_chunks, 1u);
  EXPECT_EQ(now.chunk_size, 256u);
  EXPECT_EQ(older.chunk_size, 0u);
  ASSERT_EQ(now.entries.size(), 80u);
  ASSERT_EQ(older.entries.size(), 80u);
  for (size_t i = 0; i < now.entries.size(); ++i) {
    ASSERT_EQ(now.entries[i].name, older.entries[i].name);
    const std::vector<int64_t> shape = {7, static_cast<int64_t>(now.entries[i].sums.size())};
    const auto a = ImportanceOf(now.entries[i], shape, "a");
    const auto b = ImportanceOf(older.entries[i], shape, "b");
    ASSERT_TRUE(a.ok() && b.ok());
    for (size_t c = 0; c < a->size(); ++c) {
      EXPECT_NEAR((*a)[c], (*b)[c], 1e-6F * (*a)[c]) << now.entries[i].name;
    }
  }
}

TEST(Imatrix, ExpertsHaveACountEach) {
  const Imatrix imatrix = ReadOrFail(TestdataPath("imatrix/moe-q4_0.gguf"));
  const ImatrixEntry* entry = imatrix.Find("blk.0.ffn_down_exps.weight");
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(entry->counts.size(), 8u);
  EXPECT_EQ(entry->sums.size(), 8u * 32);
  float n_rows = 0;
  for (const float count : entry->counts) {
    n_rows += count;
  }
  EXPECT_EQ(n_rows, 2 * 256);  // each row goes to two of them
  EXPECT_EQ(imatrix.Find("blk.0.ffn_down_exps"), nullptr);
  EXPECT_EQ(imatrix.Find("z"), nullptr);
}

TEST(Imatrix, WhatIsWrittenReadsBackEqual) {
  const std::string path = testing::MakeTempDir() + "/i.gguf";
  const Imatrix written = {{"a.txt", "b.txt"},
                           3,
                           512,
                           {{"blk.0.attn_q.weight", {1, 2, 3}, {4}},
                            {"blk.0.ffn_up_exps.weight", {0, 0, 0.5F, 7}, {0, 9}}}};
  ASSERT_TRUE(WriteImatrix(path, written).ok());
  const Imatrix read = ReadOrFail(path);
  EXPECT_EQ(read.datasets, written.datasets);
  EXPECT_EQ(read.n_chunks, 3u);
  EXPECT_EQ(read.chunk_size, 512u);
  ASSERT_EQ(read.entries.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(read.entries[i].name, written.entries[i].name);
    EXPECT_EQ(read.entries[i].sums, written.entries[i].sums);
    EXPECT_EQ(read.entries[i].counts, written.entries[i].counts);
  }
}

TEST(ImportanceOf, IsTheMeanSquareOfEachMatrix) {
  const ImatrixEntry experts = {"x", {2, 4, 0, 0, 9, 6}, {2, 0, 3}};
  EXPECT_EQ(*ImportanceOf(experts, {3, 5, 2}, "i"), (std::vector<float>{1, 2, 1, 1, 3, 2}));
  const ImatrixEntry shared = {"x", {2, 4, 0, 0, 9, 6}, {2}};
  EXPECT_EQ(*ImportanceOf(shared, {3, 5, 2}, "i"), (std::vector<float>{1, 2, 0, 0, 4.5F, 3}));
  EXPECT_EQ(*ImportanceOf(shared, {5, 6}, "i"), (std::vector<float>{1, 2, 0, 0, 4.5F, 3}));
}

TEST(ImportanceOf, RefusesAnotherShape) {
  const ImatrixEntry entry = {"blk.0.attn_q.weight", {1, 2, 3, 4}, {1, 1}};
  EXPECT_EQ(ImportanceOf(entry, {10, 8}, "i").error().Message(),
            "i, tensor blk.0.attn_q.weight: 4 sums, wanted 8: 8 columns of 1 matrices");
  EXPECT_EQ(ImportanceOf(entry, {4, 10, 1}, "i").error().Message(),
            "i, tensor blk.0.attn_q.weight: 2 counts, wanted 1 or 4");
}

/// A file of the GGUF form with one entry "t".
std::string GgufForm(const std::vector<float>& sums, const std::vector<float>& counts,
                     const std::string& type = "imatrix", const char* counts_name = "t.counts") {
  const std::string path = testing::MakeTempDir() + "/i.gguf";
  gguf::Metadata metadata;
  metadata.Set("general.type", gguf::Value::String(type));
  const auto tensor = [](const char* name, const std::vector<float>& values) {
    return gguf::TensorToWrite{
        name,
        TensorType::kF32,
        {static_cast<int64_t>(values.size())},
        gguf::WholeTensor(std::string(AsText(std::as_bytes(std::span(values)))))};
  };
  EXPECT_TRUE(
      gguf::Write(path, metadata, {tensor("t.in_sum2", sums), tensor(counts_name, counts)}).ok());
  return testing::ReadOrDie(path);
}

TEST(Imatrix, RefusesHostileGguf) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(ErrorOf(GgufForm({1, 2}, {1})), "no error");
  EXPECT_EQ(ErrorOf(GgufForm({1, infinity}, {1})),
            "i, tensor t: sum 1 is inf, wanted a finite number, not below 0");
  EXPECT_EQ(ErrorOf(GgufForm({-1, 2}, {1})),
            "i, tensor t: sum 0 is -1, wanted a finite number, not below 0");
  EXPECT_EQ(ErrorOf(GgufForm({1, 2}, {1, -2})),
            "i, tensor t: count 1 is -2, wanted a finite number, not below 0");
  EXPECT_EQ(ErrorOf(GgufForm({1, 2, 3}, {1, 2})),
            "i, tensor t: 3 sums and 2 counts, wanted the same number of sums for each count");
  EXPECT_EQ(ErrorOf(GgufForm({1}, {1}, "model")),
            "i: a GGUF file of type \"model\", wanted an importance matrix");
  EXPECT_EQ(ErrorOf(GgufForm({1}, {1}, "imatrix", "u.counts")),
            "i, tensor t.counts: missing, wanted .in_sum2 and .counts");
  EXPECT_EQ(ErrorOf(testing::ReadOrDie(TestdataPath("tiny-gguf/facet-tiny-q8_0.gguf"))),
            "i: a GGUF file of type \"model\", wanted an importance matrix");
}

/// The older form: entries, then what follows them.
struct OlderEntry {
  std::string name;
  int32_t n_calls;
  std::vector<float> values;
};
std::string OlderForm(const std::vector<OlderEntry>& entries, const std::string& rest = "") {
  std::string bytes;
  Append(bytes, static_cast<int32_t>(entries.size()));
  for (const OlderEntry& entry : entries) {
    Append(bytes, static_cast<int32_t>(entry.name.size()));
    bytes += entry.name;
    Append(bytes, entry.n_calls);
    Append(bytes, static_cast<int32_t>(entry.values.size()));
    for (const float value : entry.values) {
      Append(bytes, value);
    }
  }
  return bytes + rest;
}

TEST(Imatrix, RefusesHostileOlderFiles) {
  const std::string good = OlderForm({{"t", 2, {4, 6}}});
  EXPECT_EQ(ErrorOf(good), "no error");
  EXPECT_EQ(ParseImatrix(AsBytes(good), "i")->entries[0].counts, std::vector<float>{2});
  EXPECT_EQ(ErrorOf(OlderForm({})), "i: number of entries 0, wanted 1 to 2147483647");
  EXPECT_EQ(ErrorOf(OlderForm({{"t", -1, {4}}})), "i: number of calls -1, wanted 0 to 2147483647");
  EXPECT_EQ(ErrorOf(OlderForm({{"t", 1, {}}})), "i: number of values 0, wanted 1 to 2147483647");
  EXPECT_EQ(ErrorOf(OlderForm({{"t", 1, {NAN}}})),
            "i, tensor t: sum 0 is nan, wanted a finite number, not below 0");
  EXPECT_EQ(ErrorOf(OlderForm({{"t", 1, {1}}, {"t", 1, {1}}})),
            "i, tensor t: twice, wanted each name once");
  EXPECT_EQ(ErrorOf(OlderForm({{std::string(1025, 'x'), 1, {1}}})),
            "i: length of a tensor's name 1025, wanted 0 to 1024");
  std::string huge = OlderForm({{"t", 1, {1}}});
  huge[13] = huge[14] = huge[15] = huge[16] = '\x7f';  // number of values
  EXPECT_NE(ErrorOf(huge).find("the values of t"), std::string::npos) << ErrorOf(huge);
  std::string many = good;
  many[3] = '\x7f';  // number of entries
  EXPECT_NE(ErrorOf(many), "no error");
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_NE(ErrorOf(good.substr(0, size)), "no error") << size;
  }
  EXPECT_NE(ErrorOf(OlderForm({{"t", 2, {4}}}, "abc")), "no error");
}

class CollectorTest : public ::testing::Test {
 protected:
  CollectorTest()
      : checkpoint_(*Checkpoint::Open(TestdataPath("text/gguf/moe-keqv-Q4_0.gguf"))),
        collector_(checkpoint_) {}

  /// Rows [begin, begin + n_rows) of one matrix of a tensor.
  WeightMatrix Part(const std::string& name, int64_t matrix, int64_t begin, int64_t n_rows) {
    const CheckpointTensor& tensor = *checkpoint_.Find(name);
    const int64_t rows = tensor.shape.end()[-2];
    WeightMatrix w{tensor.type, n_rows, tensor.shape.back(), tensor.data.data()};
    w.data += (matrix * rows + begin) * w.row_bytes();
    return w;
  }

  Checkpoint checkpoint_;
  ImatrixCollector collector_;
};

TEST_F(CollectorTest, SumsSquaresOfColumns) {
  std::vector<float> x(2 * 64, 1);
  x[3] = 2;
  x[64 + 3] = -3;
  collector_.Observe(Part("blk.0.attn_q.weight", 0, 0, 256), x.data(), 2);
  collector_.Observe(Part("blk.0.attn_q.weight", 0, 0, 256), x.data(), 1);
  const auto imatrix = collector_.Finish();
  ASSERT_TRUE(imatrix.ok());
  ASSERT_EQ(imatrix->entries.size(), 1u);
  const ImatrixEntry& entry = imatrix->entries[0];
  EXPECT_EQ(entry.name, "blk.0.attn_q.weight");
  EXPECT_EQ(entry.counts, std::vector<float>{3});
  EXPECT_EQ(entry.sums[3], 4 + 9 + 4);
  EXPECT_EQ(entry.sums[4], 3);
}

TEST_F(CollectorTest, KeepsExpertsApartAndCountsFusedPartsOnce) {
  const std::vector<float> x(64, 2);
  const std::string fused = "blk.0.ffn_gate_up_exps.weight";
  collector_.Observe(Part(fused, 5, 0, 32), x.data(), 1);
  collector_.Observe(Part(fused, 5, 32, 32), x.data(), 1);  // up meets the same rows as gate
  const auto imatrix = collector_.Finish();
  ASSERT_TRUE(imatrix.ok());
  const ImatrixEntry& entry = imatrix->entries[0];
  EXPECT_EQ(entry.counts, (std::vector<float>{0, 0, 0, 0, 0, 1, 0, 0}));
  EXPECT_EQ(entry.sums[5 * 64], 4);
  EXPECT_EQ(entry.sums[4 * 64], 0);
}

TEST_F(CollectorTest, LeavesTheOutputAndForeignWeightsOut) {
  const std::vector<float> x(64, 2);
  const std::vector<std::byte> foreign(4096);
  collector_.Observe(Part("token_embd.weight", 0, 0, 2048), x.data(), 1);
  collector_.Observe({TensorType::kF32, 1, 64, foreign.data()}, x.data(), 1);
  EXPECT_EQ(collector_.Finish().error().Message(),
            checkpoint_.path() + ": no entries, wanted an importance matrix");
}

TEST_F(CollectorTest, RefusesWhatIsNotFinite) {
  std::vector<float> x(64, 2);
  x[7] = NAN;
  collector_.Observe(Part("blk.1.attn_q.weight", 0, 0, 256), x.data(), 1);
  EXPECT_EQ(collector_.Finish().error().Message(),
            checkpoint_.path() +
                ", tensor blk.1.attn_q.weight: sum 7 is nan, wanted a finite number, not below 0");
}

}  // namespace
}  // namespace facet
