// SPDX-License-Identifier: Apache-2.0
// The first byte names a type, the others are its blocks. Any blocks are decoded, unpacked,
// multiplied with the same result by every set of kernels, and their values encoded again.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/tensor_type.h"
#include "compute/context.h"
#include "compute/cpu.h"
#include "compute/matmul.h"
#include "compute/thread_pool.h"
#include "quant/codec.h"

namespace facet {
namespace {

constexpr int64_t kMaxElements = 4096;

bool AreEqual(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) ||
         std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}

std::vector<float> Product(Isa isa, const WeightMatrix& w, const std::vector<float>& x) {
  static ThreadPool pool(1);
  const ComputeContext context = {&KernelsFor(isa), &pool};
  Activations activations;
  activations.Set(x.data(), static_cast<int64_t>(x.size()) / w.n_in, w.n_in);
  std::vector<float> y(x.size() / static_cast<size_t>(w.n_in) * static_cast<size_t>(w.n_out));
  MatMul(context, w, activations, y.data());
  return y;
}

void CheckBlocks(const Codec& codec, const std::byte* blocks, int64_t n) {
  std::vector<float> values(static_cast<size_t>(n));
  codec.decode(blocks, n, values.data());
  if (codec.unpack != nullptr) {
    std::vector<UnpackedBlock> unpacked(static_cast<size_t>(n / 32));
    codec.unpack(blocks, n, unpacked.data());
  }
  if (codec.encode != nullptr) {
    std::vector<std::byte> encoded(static_cast<size_t>(BytesOf(codec.type, n)));
    codec.encode(values.data(), nullptr, n, encoded.data());
    std::vector<float> importance = values;
    for (float& weight : importance) {
      weight = std::fabs(weight);
    }
    codec.encode(values.data(), importance.data(), n, encoded.data());
    codec.decode(encoded.data(), n, values.data());
  }
  if (!IsMatMulType(codec.type) || n % 32 != 0) {
    return;
  }
  std::vector<float> x(static_cast<size_t>(2 * n));
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>(static_cast<int>(i * 37 % 255) - 127);
  }
  const WeightMatrix w = {.type = codec.type, .n_out = 1, .n_in = n, .data = blocks};
  const std::vector<float> wanted = Product(Isa::kScalar, w, x);
  for (const Isa isa : SupportedIsas()) {
    const std::vector<float> found = Product(isa, w, x);
    for (size_t i = 0; i < wanted.size(); ++i) {
      FACET_CHECK(AreEqual(found[i], wanted[i]));
    }
  }
}

}  // namespace
}  // namespace facet

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const facet::Codec* codec = nullptr;
  if (size > 0 && facet::FindTensorType(data[0])) {
    codec = facet::FindCodec(facet::FindTensorType(data[0])->type);
  }
  if (codec == nullptr) {
    return 0;
  }
  const facet::TensorTypeInfo info = facet::InfoOf(codec->type);
  const int64_t n_blocks = static_cast<int64_t>(size - 1) / info.block_bytes;
  const int64_t n = std::min(n_blocks * info.block_elements, facet::kMaxElements);
  if (n > 0) {
    facet::CheckBlocks(*codec, reinterpret_cast<const std::byte*>(data) + 1, n);
  }
  return 0;
}
