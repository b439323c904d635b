// SPDX-License-Identifier: Apache-2.0
// Matrix products of 2048 x 2048 by type, instruction set and number of activation rows, on one
// thread, with weights as in the file and packed. bytes_per_second counts the weights as stored;
// ops_per_second two operations for each weight and row.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <string>
#include <vector>

#include "base/random.h"
#include "compute/kernels.h"
#include "compute/matmul.h"
#include "compute/packed_weights.h"
#include "compute/thread_pool.h"

namespace facet {
namespace {

constexpr int64_t kSize = 2048;
// Together larger than the caches, as a model's weights are.
constexpr int64_t kCopies = 8;
constexpr size_t kPatternBytes = 65521;  // prime: no row repeats another

struct Case {
  Isa isa;
  TensorType type;
  bool is_packed;
  int64_t n_rows;
};

void BenchMatMul(benchmark::State& state, const Case& bench) {
  const TensorType type = bench.type;
  const int64_t n_rows = bench.n_rows;
  ThreadPool pool(1);
  const ComputeContext context = {&KernelsFor(bench.isa), &pool};
  const auto n_bytes = static_cast<size_t>(BytesOf(type, kSize * kSize));
  // Small bytes: no infinities, no subnormal sums.
  std::vector<std::byte> bytes(n_bytes * kCopies);
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = i < kPatternBytes ? static_cast<std::byte>(RandomBits(1, i) & 0x2fu)
                                 : bytes[i - kPatternBytes];
  }
  std::vector<std::byte> packed;
  for (int64_t group = 0; bench.is_packed && group < kCopies * kSize / kPackedRows; ++group) {
    packed.resize(static_cast<size_t>((group + 1) * PackedGroupBytes(type, kSize)));
    PackGroup({type, kCopies * kSize, kSize, bytes.data()}, group,
              packed.data() + group * PackedGroupBytes(type, kSize));
  }
  const size_t packed_bytes = packed.size() / kCopies;
  std::vector<float> x(static_cast<size_t>(n_rows * kSize));
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>(RandomUniform(2, i)) - 0.5f;
  }
  std::vector<float> y(static_cast<size_t>(n_rows * kSize));
  Activations activations;
  size_t copy = 0;
  for (auto _ : state) {
    WeightMatrix w = {type, kSize, kSize, bytes.data() + copy * n_bytes};
    w.packed = bench.is_packed ? packed.data() + copy * packed_bytes : nullptr;
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

void Register(const Case& bench) {
  const std::string name =
      fmt::format("{}{}/{}/{}", NameOf(bench.isa), bench.is_packed ? "-packed" : "",
                  InfoOf(bench.type).name, bench.n_rows);
  benchmark::RegisterBenchmark(name.c_str(), BenchMatMul, bench)->Unit(benchmark::kMicrosecond);
}

void RegisterAll() {
  for (const Isa isa : SupportedIsas()) {
    for (uint32_t id = 0; id < kMaxTypeId; ++id) {
      const auto info = FindTensorType(id);
      if (!info || !IsMatMulType(info->type)) {
        continue;
      }
      for (const int64_t n_rows : {1, 2, 3, 8, 9, 17, 64, 512}) {
        Register({isa, info->type, false, n_rows});
        if (HasPackedKernel(KernelsFor(isa), info->type)) {
          Register({isa, info->type, true, n_rows});
        }
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
