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

// The sum of body(k) over a row, in 16 lanes: the loops have a fixed length where they can, for the
// compiler's vectors.
template <typename Body>
double SumOfRow(int64_t n, const Body& body) {
  constexpr int kLanes = 16;
  double lanes[kLanes] = {};
  int64_t k = 0;
  for (; k + kLanes <= n; k += kLanes) {
    for (int i = 0; i < kLanes; ++i) {
      lanes[i] += body(k + i);
    }
  }
  for (int i = 0; k + i < n; ++i) {
    lanes[i] += body(k + i);
  }
  for (int width = kLanes / 2; width >= 1; width /= 2) {
    for (int i = 0; i < width; ++i) {
      lanes[i] += lanes[i + width];
    }
  }
  return lanes[0];
}

// In double precision: of a plain piece of a picture all values are nearly the same, and what is
// left when their mean is taken away is no larger than the rounding of a sum of floats.
void LayerNormRow(const float* x, LayerNormParams params, int64_t n, float* y) {
  const auto count = static_cast<double>(n);
  const double mean = SumOfRow(n, [x](int64_t k) { return double{x[k]}; }) / count;
  const auto square = [x, mean](int64_t k) { return (x[k] - mean) * (x[k] - mean); };
  const double inverse = 1.0 / std::sqrt(SumOfRow(n, square) / count + double{params.eps});
  for (int64_t k = 0; k < n; ++k) {
    const auto normed = static_cast<float>((x[k] - mean) * inverse) * params.weight[k];
    y[k] = params.bias != nullptr ? normed + params.bias[k] : normed;
  }
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

void LayerNorm(const ComputeContext& context, const float* x, LayerNormParams params,
               int64_t n_rows, int64_t n, float* y) {
  context.pool->RunRanges(n_rows, RowsPerGrain(n), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      LayerNormRow(x + row * n, params, n, y + row * n);
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

void Clamp(const ComputeContext& context, const float* x, Bounds bounds, int64_t n, float* y) {
  context.pool->RunRanges(n, kCheapGrain, [&](int64_t begin, int64_t end) {
    context.kernels->rows->clamp(x + begin, bounds.low, bounds.high, end - begin, y + begin);
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

void Rope2d(const ComputeContext& context, const RopeTable2d& table, int64_t n_rows,
            int64_t n_heads, int64_t d_head, float* x) {
  const RopeTable& along_x = table.x;
  const RopeTable& along_y = table.y;
  const int64_t n_pairs = along_x.n_pairs;
  const int64_t half = d_head / 2;
  FACET_CHECK(d_head % 4 == 0 && 2 * n_pairs <= half && along_y.n_pairs == n_pairs);
  FACET_CHECK(static_cast<int64_t>(along_x.cosine.size()) >= n_rows * n_pairs);
  FACET_CHECK(static_cast<int64_t>(along_y.cosine.size()) >= n_rows * n_pairs);
  const auto turn = [&](const RopeTable& along, int64_t row, float* values) {
    context.kernels->rows->rope(along.cosine.data() + row * n_pairs,
                                along.sine.data() + row * n_pairs, n_pairs, half, values);
  };
  context.pool->RunRanges(n_rows, RowsPerGrain(n_heads * d_head), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      for (int64_t head = 0; head < n_heads; ++head) {
        float* values = x + (row * n_heads + head) * d_head;
        turn(along_x, row, values);
        turn(along_y, row, values + half);
      }
    }
  });
}

}  // namespace facet
