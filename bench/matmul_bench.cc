// SPDX-License-Identifier: Apache-2.0
// Matrix products of 2048 x 2048 by type, instruction set and number of activation rows, on one
// thread. bytes_per_second counts the weights as stored; ops_per_second two operations for each
// weight and row.
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "base/random.h"
#include "compute/kernels.h"
#include "compute/matmul.h"
#include "compute/thread_pool.h"

namespace facet {
namespace {

constexpr int64_t kSize = 2048;
// Together larger than the caches, as a model's weights are.
constexpr int64_t kCopies = 8;
constexpr size_t kPatternBytes = 65521;  // prime: no row repeats another

void BenchMatMul(benchmark::State& state, Isa isa, TensorType type, int64_t n_rows) {
  ThreadPool pool(1);
  const ComputeContext context = {&KernelsFor(isa), &pool};
  const auto n_bytes = static_cast<size_t>(BytesOf(type, kSize * kSize));
  // Small bytes: no infinities, no subnormal sums.
  std::vector<std::byte> bytes(n_bytes * kCopies);
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = i < kPatternBytes ? static_cast<std::byte>(RandomBits(1, i) & 0x2fu)
                                 : bytes[i - kPatternBytes];
  }
  std::vector<float> x(static_cast<size_t>(n_rows * kSize));
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>(RandomUniform(2, i)) - 0.5f;
  }
  std::vector<float> y(static_cast<size_t>(n_rows * kSize));
  Activations activations;
  size_t copy = 0;
  for (auto _ : state) {
    const WeightMatrix w = {type, kSize, kSize, bytes.data() + copy * n_bytes};
    activations.Set(x.data(), n_rows, kSize);
    MatMul(context, w, activations, y.data());
    benchmark::DoNotOptimize(y.data());
    copy = (copy + 1) % kCopies;
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(n_bytes));
  state.counters["ops_per_second"] =
      benchmark::Counter(static_cast<double>(state.iterations() * 2 * kSize * kSize * n_rows),
                         benchmark::Counter::kIsRate);
}

constexpr uint32_t kMaxTypeId = 64;

void RegisterAll() {
  for (const Isa isa : SupportedIsas()) {
    for (uint32_t id = 0; id < kMaxTypeId; ++id) {
      const auto info = FindTensorType(id);
      if (!info || !IsMatMulType(info->type)) {
        continue;
      }
      const TensorType type = info->type;
      for (const int64_t n_rows : {1, 8, 64}) {
        const std::string name = std::string(NameOf(isa)) + "/" + std::string(InfoOf(type).name) +
                                 "/" + std::to_string(n_rows);
        benchmark::RegisterBenchmark(name.c_str(), BenchMatMul, isa, type, n_rows)
            ->Unit(benchmark::kMicrosecond);
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
