// SPDX-License-Identifier: Apache-2.0
// The operations on rows and the int8 form of activations, by instruction set, on one thread: rows
// of E2B's sizes that lie in the cache. bytes_per_second counts what is read and written.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <string>
#include <vector>

#include "base/aligned_vector.h"
#include "base/random.h"
#include "compute/kernels.h"

namespace facet {
namespace {

constexpr int64_t kSize = 1536;   // n_embd
constexpr int64_t kHead = 256;    // d_head
constexpr int64_t kWide = 12288;  // n_ff
constexpr float kEps = 1e-6f;

// What the operations read and write.
struct Rows {
  AlignedVector<float> a = Values(1);
  AlignedVector<float> b = Values(2);
  AlignedVector<float> out = AlignedVector<float>(kWide);
  AlignedVector<int8_t> values = AlignedVector<int8_t>(kWide);
  AlignedVector<float> scales = AlignedVector<float>(kWide / 32);
  AlignedVector<int32_t> sums = AlignedVector<int32_t>(kWide / 32);
  AlignedVector<int16_t> half_sums = AlignedVector<int16_t>(kWide / 16);

  static AlignedVector<float> Values(uint64_t seed) {
    AlignedVector<float> values(kWide);
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>(RandomUniform(seed, i)) - 0.5f;
    }
    return values;
  }
};

struct Case {
  const char* name;
  int64_t n_floats;  // read and written
  void (*run)(const Kernels& kernels, Rows* rows);
};

constexpr Case kCases[] = {
    {"rms_norm", 3 * kSize,
     [](const Kernels& k, Rows* r) {
       k.rows->rms_norm(r->a.data(), r->b.data(), kEps, kSize, r->out.data());
     }},
    {"gelu_mul", 3 * kWide,
     [](const Kernels& k, Rows* r) {
       k.rows->gelu_mul(r->a.data(), r->b.data(), kWide, r->out.data());
     }},
    {"add", 3 * kSize,
     [](const Kernels& k, Rows* r) { k.rows->add(r->a.data(), kSize, r->out.data()); }},
    {"scale", 2 * kSize,
     [](const Kernels& k, Rows* r) { k.rows->scale(1.0f, kSize, r->out.data()); }},
    {"add_scale", 3 * kSize,
     [](const Kernels& k, Rows* r) {
       k.rows->add_scale(r->a.data(), r->b.data(), 0.5f, kSize, r->out.data());
     }},
    {"softcap", 2 * kWide,
     [](const Kernels& k, Rows* r) { k.rows->softcap(30.0f, kWide, r->out.data()); }},
    {"softmax", 2 * kSize,
     [](const Kernels& k, Rows* r) { k.rows->softmax(r->a.data(), kSize, r->out.data()); }},
    {"rope", 3 * kHead,
     [](const Kernels& k, Rows* r) {
       k.rows->rope(r->a.data(), r->b.data(), kHead / 2, kHead, r->out.data());
     }},
    {"exp", 2 * kSize,
     [](const Kernels& k, Rows* r) { k.rows->exp(r->a.data(), kSize, r->out.data()); }},
    {"tanh", 2 * kSize,
     [](const Kernels& k, Rows* r) { k.rows->tanh(r->a.data(), kSize, r->out.data()); }},
    {"quantize", kWide + kWide / 4 + kWide / 32 * 3,
     [](const Kernels& k, Rows* r) {
       k.matmul->quantize(r->a.data(), kWide, r->values.data(), r->scales.data(), r->sums.data(),
                          r->half_sums.data());
     }},
};

void BenchRows(benchmark::State& state, Isa isa, const Case& bench) {
  const Kernels& kernels = KernelsFor(isa);
  Rows rows;
  for (auto _ : state) {
    bench.run(kernels, &rows);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * bench.n_floats * 4);
}

void RegisterAll() {
  for (const Isa isa : SupportedIsas()) {
    for (const Case& bench : kCases) {
      const std::string name = fmt::format("{}/{}", NameOf(isa), bench.name);
      benchmark::RegisterBenchmark(name.c_str(), BenchRows, isa, bench)
          ->Unit(benchmark::kMicrosecond);
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
