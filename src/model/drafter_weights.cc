// SPDX-License-Identifier: Apache-2.0
#include "model/drafter_weights.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "base/check.h"
#include "compute/packed_weights.h"
#include "compute/thread_pool.h"
#include "model/drafter_names.h"
#include "model/packing.h"
#include "model/tensor_binder.h"

namespace facet {
namespace {

/// Of the file: what a thread has in memory twice.
constexpr int64_t kPieceBytes = int64_t{4} << 20;

/// What TensorBinder::Projection calls the matrix `name`.
std::string StemOf(std::string_view name) {
  constexpr std::string_view kEnd = ".weight";
  FACET_CHECK(name.ends_with(kEnd));
  return std::string(name.substr(0, name.size() - kEnd.size()));
}

/// `table` is the output matrix as it lies in the file.
Status Bind(const DrafterCheckpoint& checkpoint, const Config& body, DrafterWeights* w,
            WeightMatrix* table) {
  TensorBinder binder(checkpoint.path(),
                      [&checkpoint](std::string_view name) { return checkpoint.Find(name); });
  const DrafterConfig& c = checkpoint.config();
  const int64_t n = body.n_embd;
  binder.Projection(StemOf(kDrafterPreProjection), n, 2 * int64_t{c.n_embd_target},
                    &w->pre_projection);
  binder.Projection(StemOf(kDrafterPostProjection), c.n_embd_target, n, &w->post_projection);
  binder.Matrix("token_embd.weight", body.n_vocab, n, table);
  binder.Vector("output_norm.weight", n, &w->body.output_norm);
  if (c.n_centroids > 0) {
    binder.Projection(StemOf(kDrafterCentroids), c.n_centroids, n, &w->centroids);
  }
  w->body.layers.resize(static_cast<size_t>(body.n_layers));
  for (int l = 0; l < body.n_layers; ++l) {
    BindLayerCore(body, l, &binder, &w->body.layers[static_cast<size_t>(l)]);
  }
  return binder.status();
}

/// That it holds every token once is checked when the file is opened.
std::vector<int32_t> OrderingOf(const DrafterCheckpoint& checkpoint) {
  const CheckpointTensor* tensor = checkpoint.Find(kDrafterOrdering);
  FACET_CHECK(tensor != nullptr && tensor->type == TensorType::kI32);
  std::vector<int32_t> ordering(tensor->data.size() / sizeof(int32_t));
  std::memcpy(ordering.data(), tensor->data.data(), tensor->data.size());
  FACET_CHECK(static_cast<int>(ordering.size()) == checkpoint.config().body.n_vocab);
  return ordering;
}

/// A cluster's memory: rows as in the file, then maybe packed in their place.
struct ClusterShape {
  WeightMatrix matrix;  ///< without data
  int64_t file_bytes;
  int64_t packed_bytes;  ///< 0: not packed
  int64_t stride;        ///< from cluster to cluster
};

ClusterShape ShapeOf(const WeightMatrix& table, int64_t n_clusters, const Kernels& kernels,
                     bool pack) {
  constexpr int64_t kAlignment = 64;  // of packed weights
  ClusterShape shape = {};
  shape.matrix = {table.type, table.n_out / n_clusters, table.n_in};
  shape.file_bytes = shape.matrix.n_out * shape.matrix.row_bytes();
  if (pack && HasPackedKernel(kernels, table.type)) {
    const int64_t n_packed = PackedBytes(shape.matrix);
    // Groups have a fixed number of rows: a small cluster would be mostly padding.
    shape.packed_bytes = n_packed <= 2 * shape.file_bytes ? n_packed : 0;
  }
  const int64_t n_bytes = std::max(shape.file_bytes, shape.packed_bytes);
  shape.stride = (n_bytes + kAlignment - 1) / kAlignment * kAlignment;
  return shape;
}

/// Copies the rows of `table` to their clusters in the order of the file, whose pages are given
/// back as they are read: what is packed right away would need the rows of a cluster together, and
/// they lie everywhere in the file.
void Scatter(const DrafterCheckpoint& checkpoint, const WeightMatrix& table,
             const ClusterShape& shape, const ComputeContext& context, DrafterWeights* w) {
  const int64_t row_bytes = table.row_bytes();
  std::vector<int64_t> place(w->ordering.size());
  for (size_t i = 0; i < place.size(); ++i) {
    place[static_cast<size_t>(w->ordering[i])] = static_cast<int64_t>(i);
  }
  const int64_t n_in_piece = std::max<int64_t>(1, kPieceBytes / row_bytes);
  const auto copy_piece = [&](int64_t begin, int64_t end) {
    for (int64_t token = begin; token < end; ++token) {
      const int64_t i = place[static_cast<size_t>(token)];
      std::byte* cluster = w->cluster_memory.data() + i / shape.matrix.n_out * shape.stride;
      std::memcpy(cluster + i % shape.matrix.n_out * row_bytes, table.row(token),
                  static_cast<size_t>(row_bytes));
    }
    checkpoint.Release({table.row(begin), static_cast<size_t>((end - begin) * row_bytes)});
  };
  context.pool->RunRanges(table.n_out, n_in_piece, [&](int64_t begin, int64_t end) {
    for (int64_t first = begin; first < end; first += n_in_piece) {
      copy_piece(first, std::min(end, first + n_in_piece));
    }
  });
}

void PackInPlace(const ClusterShape& shape, const ComputeContext& context, DrafterWeights* w) {
  const int64_t group_bytes = PackedGroupBytes(shape.matrix.type, shape.matrix.n_in);
  const auto n_clusters = static_cast<int64_t>(w->clusters.size());
  context.pool->RunRanges(n_clusters, 1, [&](int64_t begin, int64_t end) {
    std::vector<std::byte> rows(static_cast<size_t>(shape.file_bytes));
    for (int64_t c = begin; c < end; ++c) {
      std::byte* out = w->cluster_memory.data() + c * shape.stride;
      std::copy_n(out, shape.file_bytes, rows.data());
      WeightMatrix unpacked = shape.matrix;
      unpacked.data = rows.data();
      for (int64_t g = 0; g < shape.packed_bytes / group_bytes; ++g) {
        PackGroup(unpacked, g, out + g * group_bytes);
      }
    }
  });
}

/// `clusters` from `table`, which is not read afterwards.
Status Arrange(const DrafterCheckpoint& checkpoint, const WeightMatrix& table,
               const ComputeContext& context, bool pack, DrafterWeights* w) {
  const int64_t n_clusters = checkpoint.config().n_centroids;
  const ClusterShape shape = ShapeOf(table, n_clusters, *context.kernels, pack);
  FACET_ASSIGN(w->cluster_memory,
               PageMemory::Allocate(static_cast<size_t>(n_clusters * shape.stride),
                                    "the drafter's clusters of tokens"));
  w->ordering = OrderingOf(checkpoint);
  Scatter(checkpoint, table, shape, context, w);
  w->clusters.assign(static_cast<size_t>(n_clusters), shape.matrix);
  for (int64_t c = 0; c < n_clusters; ++c) {
    WeightMatrix& cluster = w->clusters[static_cast<size_t>(c)];
    (shape.packed_bytes > 0 ? cluster.packed : cluster.data) =
        w->cluster_memory.data() + c * shape.stride;
  }
  if (shape.packed_bytes > 0) {
    PackInPlace(shape, context, w);
  }
  return {};
}

}  // namespace

Result<DrafterWeights> LoadDrafterWeights(const DrafterCheckpoint& checkpoint, const Config& body,
                                          const ComputeContext& context, bool pack) {
  DrafterWeights w;
  WeightMatrix table;
  FACET_RETURN_IF_ERROR(Bind(checkpoint, body, &w, &table));
  if (checkpoint.config().n_centroids > 0) {
    FACET_RETURN_IF_ERROR(Arrange(checkpoint, table, context, pack, &w));
  } else {
    w.body.output = table;
  }
  if (pack) {
    std::vector<WeightMatrix*> matrices = MatricesOf(&w.body);
    matrices.insert(matrices.end(), {&w.pre_projection, &w.post_projection, &w.centroids});
    const OnRead release = [&checkpoint](std::span<const std::byte> data) {
      checkpoint.Release(data);
    };
    FACET_RETURN_IF_ERROR(PackMatrices(matrices, context, release, {}, &w.body.packed));
  }
  return w;
}

}  // namespace facet
