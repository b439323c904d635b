// SPDX-License-Identifier: Apache-2.0
// Attention in the two shapes of E2B (8 query heads on one KV head: sliding layers with 256
// channels and a window of 512, full layers with 512 channels) by instruction set, KV type and
// depth, on one thread and, in the best set, on two. A name says SET/TYPE/LAYER/ROWS@PAST/THREADS.
// bytes_per_second counts the keys and values that the last row sees, once; ops_per_second two
// operations for each product.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/random.h"
#include "compute/attention.h"
#include "compute/context.h"
#include "compute/kernels.h"
#include "compute/thread_pool.h"

namespace facet {
namespace {

constexpr int kHeads = 8;
constexpr int kSlidingChannels = 256;
constexpr int kFullChannels = 512;
constexpr int kWindow = 512;

struct Case {
  Isa isa;
  KvType type;
  bool is_full;
  int n_past;
  int n_rows;
  int n_threads;

  [[nodiscard]] int d_head() const { return is_full ? kFullChannels : kSlidingChannels; }
  [[nodiscard]] int end(int row) const { return n_past + row + 1; }
  [[nodiscard]] int begin(int row) const { return is_full ? 0 : std::max(0, end(row) - kWindow); }
};

std::vector<float> RandomFloats(uint64_t seed, int64_t n) {
  std::vector<float> values(static_cast<size_t>(n));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(RandomUniform(seed, i)) - 0.5f;
  }
  return values;
}

// One layer's keys and values of one sequence.
class Cache {
 public:
  explicit Cache(const Case& bench)
      : half_(KvHalfBlockBytes(bench.type, {1, bench.d_head()})),
        layout_{bench.type, {1, bench.d_head()}, 0, half_} {
    const int n_positions = bench.end(bench.n_rows - 1);
    const int n_blocks = (n_positions + kKvBlockPositions - 1) / kKvBlockPositions;
    memory_.resize(2 * half_ * static_cast<size_t>(n_blocks));
    for (int block = 0; block < n_blocks; ++block) {
      blocks_.push_back(memory_.data() + 2 * half_ * static_cast<size_t>(block));
    }
    constexpr int kPattern = 61;  // vectors that keys and values are taken from
    const std::vector<float> x = RandomFloats(1, kPattern * bench.d_head());
    for (int pos = 0; pos < n_positions; ++pos) {
      StoreKv(layout_, x.data() + pos % kPattern * bench.d_head(),
              x.data() + (pos + 7) % kPattern * bench.d_head(), pos % kKvBlockPositions,
              blocks_[static_cast<size_t>(pos / kKvBlockPositions)]);
    }
  }
  [[nodiscard]] const KvLayout& layout() const { return layout_; }
  [[nodiscard]] std::span<std::byte* const> blocks() const { return blocks_; }
  [[nodiscard]] int64_t bytes_per_key() const {
    return static_cast<int64_t>(2 * half_) / kKvBlockPositions;
  }

 private:
  size_t half_;
  KvLayout layout_;
  std::vector<std::byte> memory_;
  std::vector<std::byte*> blocks_;
};

void BenchAttention(benchmark::State& state, const Case& bench) {
  ThreadPool pool(bench.n_threads);
  const ComputeContext context = {&KernelsFor(bench.isa), &pool};
  const Cache cache(bench);
  const int64_t width = int64_t{kHeads} * bench.d_head();
  const std::vector<float> q = RandomFloats(2, bench.n_rows * width);
  std::vector<float> out(q.size());
  std::vector<AttentionRow> rows;
  int64_t n_keys = 0;
  for (int row = 0; row < bench.n_rows; ++row) {
    rows.push_back({q.data() + row * width, out.data() + row * width, bench.begin(row),
                    bench.end(row), cache.blocks()});
    n_keys += bench.end(row) - bench.begin(row);
  }
  for (auto _ : state) {
    Attention(context, cache.layout(), kHeads, rows);
    benchmark::DoNotOptimize(out.data());
  }
  const int last = bench.n_rows - 1;
  state.SetBytesProcessed(state.iterations() * (bench.end(last) - bench.begin(last)) *
                          cache.bytes_per_key());
  state.counters["ops_per_second"] = benchmark::Counter(
      static_cast<double>(state.iterations() * 4 * n_keys * width), benchmark::Counter::kIsRate);
}

void Register(const Case& bench) {
  const std::string name =
      fmt::format("{}/{}/{}/{}@{}/{}", NameOf(bench.isa), NameOf(bench.type),
                  bench.is_full ? "full" : "sliding", bench.n_rows, bench.n_past, bench.n_threads);
  benchmark::RegisterBenchmark(name.c_str(), BenchAttention, bench)
      ->Unit(benchmark::kMicrosecond)
      ->UseRealTime();
}

void RegisterShapes(Isa isa, KvType type, int n_threads) {
  for (const int n_past : {511, 4095, 32767}) {
    Register({isa, type, true, n_past, 1, n_threads});
  }
  Register({isa, type, false, 511, 1, n_threads});
  for (const bool is_full : {false, true}) {
    for (const int n_past : {0, 8192}) {
      Register({isa, type, is_full, n_past, 512, n_threads});
    }
  }
}

void RegisterAll() {
  for (const Isa isa : SupportedIsas()) {
    for (const KvType type : {KvType::kF16, KvType::kQ8_0}) {
      for (int n_threads = 1; n_threads <= (isa == BestIsa() ? 2 : 1); ++n_threads) {
        RegisterShapes(isa, type, n_threads);
      }
    }
  }
}

}  // namespace
}  // namespace facet

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) {
    return 1;
  }
  facet::RegisterAll();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
