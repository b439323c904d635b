// SPDX-License-Identifier: Apache-2.0
#include "model/audio_mixing.h"

#include <algorithm>

#include "base/aligned_vector.h"
#include "base/check.h"
#include "compute/kernels.h"
#include "compute/thread_pool.h"

namespace facet {
namespace {

constexpr float kSoftcap = 50.0F;
constexpr float kKeyScale = 1.8946361F;  // ln(1 + e) / ln 2
constexpr int64_t kRowsPerThread = 8;

// Loops over lanes have a fixed length and results of their own, for the compiler's vectors.
float Dot(const float* a, const float* b, int64_t n) {
  float lanes[kAudioLanes] = {};
  for (int64_t k = 0; k < n; k += kAudioLanes) {
    for (int i = 0; i < kAudioLanes; ++i) {
      lanes[i] += a[k + i] * b[k + i];
    }
  }
  for (int width = kAudioLanes / 2; width >= 1; width /= 2) {
    for (int i = 0; i < width; ++i) {
      lanes[i] += lanes[i + width];
    }
  }
  return lanes[0];
}

/// One query of one head. `row` is its place among all rows, `at` that of its channels in a row.
void AttendOnce(const RowKernels& kernels, const AudioAttentionTask& task, int64_t row, int64_t at,
                float* query, float* out) {
  const int64_t width = task.n_heads * task.d_head;
  const float* q = task.q + row * width + at;
  for (int64_t i = 0; i < task.d_head; ++i) {
    query[i] = q[i] * task.q_scale[i];
  }
  const int n_keys = std::min(task.positions[static_cast<size_t>(row)] + 1, kAudioWindow);
  float scores[kAudioWindow];
  for (int back = 0; back < n_keys; ++back) {
    const float content = Dot(query, task.k + (row - back) * width + at, task.d_head);
    const float place = Dot(query, task.relative + back * width + at, task.d_head);
    scores[back] = content * kKeyScale + place;
  }
  kernels.softcap(kSoftcap, n_keys, scores);
  kernels.softmax(scores, n_keys, scores);
  for (int64_t k = 0; k < task.d_head; k += kAudioLanes) {
    float sum[kAudioLanes] = {};
    for (int back = 0; back < n_keys; ++back) {
      const float* v = task.v + (row - back) * width + at + k;
      for (int i = 0; i < kAudioLanes; ++i) {
        sum[i] += scores[back] * v[i];
      }
    }
    std::copy_n(sum, kAudioLanes, out + row * width + at + k);
  }
}

}  // namespace

void AudioAttention(const ComputeContext& context, const AudioAttentionTask& task, float* out) {
  FACET_CHECK(task.d_head % kAudioLanes == 0);
  const auto n_rows = static_cast<int64_t>(task.positions.size());
  context.pool->RunRanges(n_rows, kRowsPerThread, [&](int64_t begin, int64_t end) {
    AlignedVector<float> query(static_cast<size_t>(task.d_head));
    for (int64_t row = begin; row < end; ++row) {
      for (int64_t head = 0; head < task.n_heads; ++head) {
        AttendOnce(*context.kernels->rows, task, row, head * task.d_head, query.data(), out);
      }
    }
  });
}

void CausalConvolution(const ComputeContext& context, const float* x, const float* weight,
                       std::span<const int32_t> positions, int64_t n, float* y) {
  FACET_CHECK(n % kAudioLanes == 0);
  const auto n_rows = static_cast<int64_t>(positions.size());
  context.pool->RunRanges(n_rows, kRowsPerThread, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int n_back = std::min(positions[static_cast<size_t>(row)], kAudioTaps - 1);
      for (int64_t k = 0; k < n; k += kAudioLanes) {
        float sum[kAudioLanes] = {};
        for (int back = n_back; back >= 0; --back) {
          const float* w = weight + (kAudioTaps - 1 - back) * n + k;
          const float* value = x + (row - back) * n + k;
          for (int i = 0; i < kAudioLanes; ++i) {
            sum[i] += w[i] * value[i];
          }
        }
        std::copy_n(sum, kAudioLanes, y + row * n + k);
      }
    }
  });
}

}  // namespace facet
