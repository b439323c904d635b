// SPDX-License-Identifier: Apache-2.0
#include "compute/ops.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "compute/kernels.h"
#include "compute/thread_pool.h"

namespace facet {
namespace {

// Values that are worth waking a thread for: cheap operations move memory, dear ones compute.
constexpr int64_t kCheapGrain = 65536;
constexpr int64_t kDearGrain = 8192;

int64_t RowsPerGrain(int64_t n) {
  return std::max<int64_t>(1, kDearGrain / std::max<int64_t>(1, n));
}

}  // namespace

void RmsNorm(const ComputeContext& context, const float* x, NormParams params, int64_t n_rows,
             int64_t n, float* y) {
  context.pool->RunRanges(n_rows, RowsPerGrain(n), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      context.kernels->rows->rms_norm(x + row * n, params.weight, params.eps, n, y + row * n);
    }
  });
}

void GeluMul(const ComputeContext& context, const float* gate, const float* up, int64_t n,
             float* out) {
  context.pool->RunRanges(n, kDearGrain, [&](int64_t begin, int64_t end) {
    context.kernels->rows->gelu_mul(gate + begin, up + begin, end - begin, out + begin);
  });
}

void SigmoidMul(const ComputeContext& context, const float* gate, const float* up, int64_t n,
                float* out) {
  context.pool->RunRanges(n, kDearGrain, [&](int64_t begin, int64_t end) {
    context.kernels->rows->sigmoid_mul(gate + begin, up + begin, end - begin, out + begin);
  });
}

void Add(const ComputeContext& context, const float* y, int64_t n, float* x) {
  context.pool->RunRanges(n, kCheapGrain, [&](int64_t begin, int64_t end) {
    context.kernels->rows->add(y + begin, end - begin, x + begin);
  });
}

void Scale(const ComputeContext& context, float factor, int64_t n, float* x) {
  context.pool->RunRanges(n, kCheapGrain, [&](int64_t begin, int64_t end) {
    context.kernels->rows->scale(factor, end - begin, x + begin);
  });
}

void AddScale(const ComputeContext& context, const float* a, const float* b, float factor,
              int64_t n, float* out) {
  context.pool->RunRanges(n, kCheapGrain, [&](int64_t begin, int64_t end) {
    context.kernels->rows->add_scale(a + begin, b + begin, factor, end - begin, out + begin);
  });
}

void AddWeightedRows(const ComputeContext& context, float* y, std::span<const int64_t> rows,
                     const RowWeights& weights, int64_t n, float* x) {
  const int64_t rows_per_grain = std::max<int64_t>(1, kCheapGrain / std::max<int64_t>(1, n));
  const auto add = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = rows[static_cast<size_t>(i)];
      context.kernels->rows->scale(weights.first[row * weights.stride], n, y + i * n);
      context.kernels->rows->add(y + i * n, n, x + row * n);
    }
  };
  context.pool->RunRanges(static_cast<int64_t>(rows.size()), rows_per_grain, add);
}

void Softcap(const ComputeContext& context, float cap, int64_t n, float* x) {
  context.pool->RunRanges(n, kDearGrain, [&](int64_t begin, int64_t end) {
    context.kernels->rows->softcap(cap, end - begin, x + begin);
  });
}

void Softmax(const ComputeContext& context, const float* x, int64_t n_rows, int64_t n, float* p) {
  context.pool->RunRanges(n_rows, RowsPerGrain(n), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      context.kernels->rows->softmax(x + row * n, n, p + row * n);
    }
  });
}

RopeTable MakeRopeTable(const ComputeContext& context, const std::vector<float>& inverse_frequency,
                        const std::vector<int32_t>& positions) {
  const size_t n_pairs = inverse_frequency.size();
  RopeTable table;
  table.n_pairs = static_cast<int>(n_pairs);
  table.cosine.resize(positions.size() * n_pairs);
  table.sine.resize(positions.size() * n_pairs);
  constexpr int64_t kRowsPerThread = 16;
  const auto fill = [&](int64_t begin, int64_t end) {
    for (auto at = static_cast<size_t>(begin) * n_pairs; at < static_cast<size_t>(end) * n_pairs;
         ++at) {
      // The angle is the reference's float; its cosine by way of double has the same bits with
      // every maths library.
      const float pos = static_cast<float>(positions[at / n_pairs]);
      const auto angle = static_cast<double>(pos * inverse_frequency[at % n_pairs]);
      table.cosine[at] = static_cast<float>(std::cos(angle));
      table.sine[at] = static_cast<float>(std::sin(angle));
    }
  };
  context.pool->RunRanges(static_cast<int64_t>(positions.size()), kRowsPerThread, fill);
  return table;
}

void Rope(const ComputeContext& context, const RopeTable& table, int64_t n_rows, int64_t n_heads,
          int64_t d_head, float* x) {
  FACET_CHECK(d_head % 2 == 0 && 2 * static_cast<int64_t>(table.n_pairs) <= d_head);
  FACET_CHECK(static_cast<int64_t>(table.cosine.size()) >= n_rows * table.n_pairs);
  const int64_t n = n_heads * d_head;
  context.pool->RunRanges(n_rows, RowsPerGrain(n), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const float* cosine = table.cosine.data() + row * table.n_pairs;
      const float* sine = table.sine.data() + row * table.n_pairs;
      for (int64_t head = 0; head < n_heads; ++head) {
        context.kernels->rows->rope(cosine, sine, table.n_pairs, d_head,
                                    x + row * n + head * d_head);
      }
    }
  });
}

}  // namespace facet
