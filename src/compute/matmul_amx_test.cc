// SPDX-License-Identifier: Apache-2.0
// The tile kernels against the scalar set: over emulated tiles where there is AVX-512, and over the
// processor's own.
#include <gtest/gtest.h>

#include <algorithm>

#include "compute/kernel_testing.h"
#include "compute/matmul_amx_emulated.h"
#include "compute/packed_weights.h"
#include "quant/codec.h"

namespace facet {
namespace {

using testing::RandomStream;
using testing::TestContext;

using T = TensorType;

constexpr T kTypes[] = {T::kQ4_0, T::kQ4_1, T::kQ5_0,   T::kQ5_1,   T::kQ8_0, T::kQ4_K,
                        T::kQ5_K, T::kQ6_K, T::kIQ4_NL, T::kIQ4_XS, T::kMXFP4};

bool IsSupported(Isa isa) {
  const std::vector<Isa> isas = SupportedIsas();
  return std::find(isas.begin(), isas.end(), isa) != isas.end();
}

// Weights in the file's form and packed.
struct Weights {
  // Random bytes, of which scales may be of any size; or an encoding of random values.
  Weights(TensorType type, int64_t n_out, int64_t n_in, bool is_wild, RandomStream& random)
      : bytes(static_cast<size_t>(n_out * BytesOf(type, n_in))),
        matrix{type, n_out, n_in, bytes.data()} {
    if (is_wild) {
      for (std::byte& byte : bytes) {
        byte = static_cast<std::byte>(random.Bits());
      }
    } else {
      const std::vector<float> values = random.Floats(static_cast<size_t>(n_out * n_in), 1.0f);
      FindCodec(type)->encode(values.data(), nullptr, n_out * n_in, bytes.data());
    }
    packed.resize(static_cast<size_t>(PackedBytes(matrix)));
    for (int64_t group = 0; group * kPackedRows < n_out; ++group) {
      PackGroup(matrix, group, packed.data() + group * PackedGroupBytes(type, n_in));
    }
  }
  std::vector<std::byte> bytes;
  std::vector<std::byte> packed;
  WeightMatrix matrix;
};

std::vector<float> Product(const ComputeContext& context, const WeightMatrix& w,
                           const std::vector<float>& x) {
  const int64_t n_rows = static_cast<int64_t>(x.size()) / w.n_in;
  Activations activations;
  activations.Set(x.data(), n_rows, w.n_in);
  std::vector<float> y(static_cast<size_t>(n_rows * w.n_out));
  MatMul(context, w, activations, y.data());
  return y;
}

class TileKernels : public ::testing::TestWithParam<TensorType> {
 protected:
  // Products of the first n rows of x, for each n of `counts`, are those of the scalar set.
  static void ExpectScalarBits(const ComputeContext& context, const Weights& w,
                               const std::vector<float>& x, const std::vector<int64_t>& counts) {
    const TestContext scalar(Isa::kScalar, 1);
    const std::vector<float> wanted = Product(*scalar, w.matrix, x);
    WeightMatrix packed = w.matrix;
    packed.packed = w.packed.data();
    for (const int64_t n_rows : counts) {
      const std::vector<float> rows(x.begin(), x.begin() + n_rows * packed.n_in);
      const std::vector<float> first(wanted.begin(), wanted.begin() + n_rows * packed.n_out);
      ASSERT_TRUE(testing::AllSameBits(Product(context, packed, rows), first))
          << "n_out " << packed.n_out << ", n_in " << packed.n_in << ", n_rows " << n_rows;
    }
  }

  static void ExpectScalarBitsForManySizes(const ComputeContext& context) {
    RandomStream random(1);
    std::vector<int64_t> counts = {64, 130};
    for (int64_t n = 1; n <= 40; ++n) {
      counts.push_back(n);
    }
    const bool is_block32 = InfoOf(GetParam()).block_elements == 32;
    for (const int64_t n_in :
         is_block32 ? std::vector<int64_t>{32, 64, 96, 256} : std::vector<int64_t>{256, 512}) {
      for (const int64_t n_out : {1, 35}) {
        const Weights w(GetParam(), n_out, n_in, false, random);
        ExpectScalarBits(context, w, random.Floats(static_cast<size_t>(130 * n_in), 3.0f), counts);
      }
    }
    // Rows that do not stay in the cache together.
    const Weights wide(GetParam(), 3, 16384, false, random);
    ExpectScalarBits(context, wide, random.Floats(65 * 16384, 3.0f), {65});
    const Weights wild(GetParam(), 19, 512, true, random);
    ExpectScalarBits(context, wild, random.Floats(20 * 512, 3.0f), {12, 16, 20});
    ExpectScalarBits(context, wild, random.WildFloats(20 * 512), {12, 16, 20});
  }
};

TEST_P(TileKernels, GiveTheScalarBitsOverEmulatedTiles) {
  if (!IsSupported(Isa::kAvx512)) {
    GTEST_SKIP() << "skipped: no AVX-512";
  }
  Kernels kernels = KernelsFor(Isa::kAvx512);
  MatMulKernels matmul = *kernels.matmul;
  matmul.packed = kPackedEmulatedTiles;
  matmul.n_packed = kNPackedEmulatedTiles;
  kernels.matmul = &matmul;
  ThreadPool pool(2);
  ExpectScalarBitsForManySizes({&kernels, &pool});
}

TEST_P(TileKernels, GiveTheScalarBitsOverTilesOfTheProcessor) {
  if (!IsSupported(Isa::kAmx)) {
    GTEST_SKIP() << "skipped: no AMX";
  }
  const TestContext amx(Isa::kAmx, 2);
  ExpectScalarBitsForManySizes(*amx);
}

INSTANTIATE_TEST_SUITE_P(Types, TileKernels, ::testing::ValuesIn(kTypes),
                         [](const ::testing::TestParamInfo<TensorType>& test) {
                           return std::string(InfoOf(test.param).name);
                         });

}  // namespace
}  // namespace facet
