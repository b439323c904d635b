// SPDX-License-Identifier: Apache-2.0
#include "compute/probe.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <vector>

#include "base/check.h"
#include "base/page_memory.h"
#include "base/random.h"
#include "compute/matmul.h"
#include "compute/packed_weights.h"
#include "compute/thread_pool.h"

namespace facet {
namespace {

using std::chrono::steady_clock;

double Seconds(steady_clock::duration time) { return std::chrono::duration<double>(time).count(); }

/// The least seconds that `job` takes, of calls until `seconds` are over.
template <typename Job>
double BestOf(double seconds, const Job& job) {
  const auto start = steady_clock::now();
  auto best = steady_clock::duration::max();
  do {
    const auto before = steady_clock::now();
    job();
    best = std::min(best, steady_clock::now() - before);
  } while (Seconds(steady_clock::now() - start) < seconds);
  return std::max(Seconds(best), 1e-9);
}

/// Eight chains, so that loads and not additions are what takes the time.
uint64_t Sum(const uint64_t* words, int64_t n) {
  constexpr int64_t kChains = 8;
  uint64_t sums[kChains] = {};
  int64_t i = 0;
  for (; i + kChains <= n; i += kChains) {
    for (int64_t chain = 0; chain < kChains; ++chain) {
      sums[chain] += words[i + chain];
    }
  }
  const uint64_t rest = std::accumulate(words + i, words + n, uint64_t{0});
  return std::accumulate(sums, sums + kChains, rest);
}

/// A product small enough for a core's second cache: 256 weight rows for each thread.
class CachedProduct {
 public:
  CachedProduct(const ComputeContext& context, TensorType type, bool is_packed)
      : context_(context), weights_{type, int64_t{256} * context.pool->n_threads(), kInputs} {
    bytes_.resize(static_cast<size_t>(BytesOf(type, weights_.n_out * kInputs)));
    for (size_t i = 0; i < bytes_.size(); ++i) {
      // Small bytes: scales are neither infinite nor subnormal.
      bytes_[i] = static_cast<std::byte>(RandomBits(1, i) & 0x2fU);
    }
    weights_.data = bytes_.data();
    if (is_packed) {
      Pack();
    }
    for (size_t i = 0; i < x_.size(); ++i) {
      x_[i] = static_cast<float>(RandomUniform(2, i)) - 0.5F;
    }
    y_.resize(static_cast<size_t>(kRows * weights_.n_out));
    activations_.Set(x_.data(), kRows, kInputs);
  }

  double OperationsPerSecond(double seconds) {
    const double n_operations = 2.0 * kRows * kInputs * static_cast<double>(weights_.n_out);
    MatMul(context_, weights_, activations_, y_.data());  // quantises the rows, fills the caches
    return n_operations /
           BestOf(seconds, [this] { MatMul(context_, weights_, activations_, y_.data()); });
  }

 private:
  static constexpr int64_t kInputs = 2048;
  static constexpr int64_t kRows = 64;

  void Pack() {
    packed_.resize(static_cast<size_t>(PackedBytes(weights_)));
    const int64_t group_bytes = PackedGroupBytes(weights_.type, kInputs);
    for (int64_t group = 0; group < weights_.n_out / kPackedRows; ++group) {
      PackGroup(weights_, group, packed_.data() + group * group_bytes);
    }
    weights_.packed = packed_.data();
  }

  ComputeContext context_;
  WeightMatrix weights_;
  std::vector<std::byte> bytes_;
  std::vector<std::byte> packed_;
  std::vector<float> x_ = std::vector<float>(static_cast<size_t>(kRows * kInputs));
  std::vector<float> y_;
  Activations activations_;
};

}  // namespace

Result<double> MeasureReadRate(ThreadPool* pool, size_t n_bytes, double seconds) {
  const auto n_words = static_cast<int64_t>(n_bytes / sizeof(uint64_t));
  FACET_CHECK(n_words > 0);
  const int64_t grain = (n_words + pool->n_threads() - 1) / pool->n_threads();
  FACET_ASSIGN(const PageMemory memory, PageMemory::Allocate(n_bytes, "memory to be read"));
  auto* words = reinterpret_cast<uint64_t*>(memory.data());
  // The thread that reads a part writes it first, so that it lies near it.
  pool->RunRanges(n_words, grain, [words](int64_t begin, int64_t end) {
    std::fill(words + begin, words + end, uint64_t{1});
  });
  std::atomic<uint64_t> total = 0;
  const double best_s = BestOf(seconds, [&] {
    pool->RunRanges(n_words, grain, [&](int64_t begin, int64_t end) {
      total.fetch_add(Sum(words + begin, end - begin), std::memory_order_relaxed);
    });
  });
  FACET_CHECK(total.load() > 0);  // so that the reading is not optimised away
  return static_cast<double>(n_words) * sizeof(uint64_t) / best_s;
}

double MeasureMultiplyRate(const ComputeContext& context, bool is_packed, double seconds) {
  double best = 0;
  for (const TensorType type : {TensorType::kQ4_0, TensorType::kQ8_0}) {
    CachedProduct product(context, type, is_packed);
    best = std::max(best, product.OperationsPerSecond(seconds / 2));
  }
  return best;
}

size_t ProbeBytes() {
  constexpr int64_t kLeast = int64_t{256} << 20;
  constexpr int64_t kMost = int64_t{1} << 30;
  const int64_t last_cache = std::max(0L, ::sysconf(_SC_LEVEL3_CACHE_SIZE));
  const int64_t memory = int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE);
  return static_cast<size_t>(std::min(std::clamp(4 * last_cache, kLeast, kMost), memory / 8));
}

}  // namespace facet
