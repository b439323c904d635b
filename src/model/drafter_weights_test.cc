// SPDX-License-Identifier: Apache-2.0
#include "model/drafter_weights.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "compute/kernels.h"
#include "compute/packed_weights.h"
#include "compute/thread_pool.h"
#include "model/drafter_testing.h"

namespace facet::testing {
namespace {

constexpr const char* kFile = "tiny-gguf/facet-tiny-assistant-centroids-q8_0.gguf";

/// The rows of cluster `c` as they lie in the file.
std::vector<std::byte> RowsInFile(const DrafterCheckpoint& checkpoint, const DrafterWeights& w,
                                  size_t c) {
  const WeightMatrix& cluster = w.clusters[c];
  const std::byte* table = checkpoint.Find("token_embd.weight")->data.data();
  const auto n_rows = static_cast<size_t>(cluster.n_out);
  std::vector<std::byte> rows;
  for (size_t i = 0; i < n_rows; ++i) {
    const std::byte* row = table + w.ordering[c * n_rows + i] * cluster.row_bytes();
    rows.insert(rows.end(), row, row + cluster.row_bytes());
  }
  return rows;
}

/// What packing the rows alone gives.
std::vector<std::byte> Packed(const WeightMatrix& shape, const std::vector<std::byte>& rows) {
  WeightMatrix w = shape;
  w.data = rows.data();
  std::vector<std::byte> packed(static_cast<size_t>(PackedBytes(w)));
  const int64_t group_bytes = PackedGroupBytes(w.type, w.n_in);
  for (int64_t g = 0; g * kPackedRows < w.n_out; ++g) {
    PackGroup(w, g, packed.data() + g * group_bytes);
  }
  return packed;
}

void ExpectClusters(const DrafterCheckpoint& checkpoint, const Kernels& kernels, bool pack) {
  ThreadPool pool(3);
  const DrafterWeights w =
      ValueOrDie(LoadDrafterWeights(checkpoint, checkpoint.config().body, {&kernels, &pool}, pack));
  ASSERT_EQ(static_cast<int>(w.clusters.size()), checkpoint.config().n_centroids);
  EXPECT_EQ(w.body.output.data, nullptr);
  const WeightMatrix& first = w.clusters[0];
  const bool is_packed = pack && HasPackedKernel(kernels, first.type) &&
                         PackedBytes(first) <= 2 * first.n_out * first.row_bytes();
  for (size_t c = 0; c < w.clusters.size(); ++c) {
    const WeightMatrix& cluster = w.clusters[c];
    std::vector<std::byte> wanted = RowsInFile(checkpoint, w, c);
    if (is_packed) {
      wanted = Packed(cluster, wanted);
    }
    EXPECT_EQ(cluster.packed != nullptr, is_packed);
    const std::byte* found = is_packed ? cluster.packed : cluster.data;
    ASSERT_EQ(std::memcmp(found, wanted.data(), wanted.size()), 0) << "cluster " << c;
  }
}

TEST(DrafterWeights, ClustersHoldTheRowsOfTheirTokens) {
  const DrafterCheckpoint quantised = OpenDrafter(kFile);
  const DrafterCheckpoint floats = OpenDrafter("tiny-assistant");
  for (const Isa isa : SupportedIsas()) {
    for (const bool pack : {true, false}) {
      SCOPED_TRACE(std::string(NameOf(isa)) + (pack ? " packed" : ""));
      ExpectClusters(quantised, KernelsFor(isa), pack);
      ExpectClusters(floats, KernelsFor(isa), pack);
    }
  }
}

/// Five bits a value: a packed group is rounded up to whole lines of the cache, and 8 rows fill
/// half of one.
TEST(DrafterWeights, ClustersThatFillNoGroup) {
  DrafterParts parts(kFile);
  DrafterParts::Part& centroids = parts.Tensor("masked_embd_centroids.weight");
  centroids.shape = {256, 64};
  centroids.data.assign(size_t{256} * 64 * sizeof(float), '\0');
  DrafterParts::Part& table = parts.Tensor("token_embd.weight");
  table.type = TensorType::kQ5_0;
  const int64_t n_values = table.shape[0] * table.shape[1];
  table.data.resize(static_cast<size_t>(BytesOf(table.type, n_values)));
  parts.SetHead(256, 8);
  const DrafterCheckpoint checkpoint = parts.Open();
  for (const Isa isa : SupportedIsas()) {
    ExpectClusters(checkpoint, KernelsFor(isa), true);
  }
}

TEST(DrafterWeights, ADenseHeadIsTheTable) {
  const DrafterCheckpoint checkpoint = OpenDrafter("tiny-gguf/facet-tiny-assistant-q8_0.gguf");
  const Kernels& kernels = KernelsFor(BestIsa());
  ThreadPool pool(2);
  const DrafterWeights w =
      ValueOrDie(LoadDrafterWeights(checkpoint, checkpoint.config().body, {&kernels, &pool}, true));
  EXPECT_TRUE(w.clusters.empty());
  EXPECT_EQ(w.body.output.data, checkpoint.Find("token_embd.weight")->data.data());
  for (const WeightMatrix* matrix : {&w.body.output, &w.pre_projection, &w.post_projection,
                                     &w.body.layers[0].q, &w.body.layers[3].down}) {
    EXPECT_EQ(matrix->packed != nullptr, HasPackedKernel(kernels, matrix->type));
  }
  EXPECT_EQ(w.body.layers[0].k.data, nullptr);
}

/// What binding says of a file that is changed by `change`, without the path.
template <typename Change>
std::string Complaint(const Change& change) {
  DrafterParts parts(kFile);
  change(&parts);
  const DrafterCheckpoint checkpoint = parts.Open();
  ThreadPool pool(1);
  const auto w = LoadDrafterWeights(checkpoint, checkpoint.config().body,
                                    {&KernelsFor(BestIsa()), &pool}, true);
  return w.ok() ? "" : w.error().Message().substr(checkpoint.path().size());
}

TEST(DrafterWeights, EachMissingTensorIsNamed) {
  for (const char* name :
       {"output_norm.weight", "blk.0.attn_norm.weight", "blk.1.attn_q.weight",
        "blk.2.attn_output.weight", "blk.3.post_attention_norm.weight", "blk.0.ffn_norm.weight",
        "blk.1.ffn_up.weight", "blk.2.ffn_down.weight", "blk.3.post_ffw_norm.weight"}) {
    const std::string complaint = Complaint([name](DrafterParts* parts) { parts->Drop(name); });
    EXPECT_TRUE(
        complaint.starts_with(std::string(", tensor ") + name + ": missing, wanted shape ["))
        << complaint;
  }
  EXPECT_EQ(Complaint([](DrafterParts*) {}), "");
}

TEST(DrafterWeights, AMisshapenTensorIsNamed) {
  EXPECT_EQ(Complaint([](DrafterParts* parts) {
              std::swap(parts->Tensor("blk.2.attn_output.weight").shape[0],
                        parts->Tensor("blk.2.attn_output.weight").shape[1]);
            }),
            ", tensor blk.2.attn_output.weight: shape [128, 64], wanted [64, 128]");
}

TEST(DrafterWeights, ATypeThatCannotBeComputedIsNamed) {
  EXPECT_EQ(Complaint([](DrafterParts* parts) {
              DrafterParts::Part& part = parts->Tensor("masked_embd_centroids.weight");
              part.type = TensorType::kI32;
            }),
            ", tensor masked_embd_centroids.weight: type I32, wanted F32, F16, BF16 or a type of "
            "quantised weights (docs/quantization.md)");
}

}  // namespace
}  // namespace facet::testing
