// SPDX-License-Identifier: Apache-2.0
#include "tiny/mixed_types.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/bytes.h"
#include "base/check.h"
#include "base/random.h"
#include "format/gguf.h"
#include "quant/codec.h"
#include "support/testing.h"

namespace facet::testing {
namespace {

constexpr TensorType kTypes[] = {
    TensorType::kQ4_0,  TensorType::kQ4_K,   TensorType::kMXFP4,   TensorType::kIQ3_S,
    TensorType::kQ8_0,  TensorType::kQ6_K,   TensorType::kIQ4_XS,  TensorType::kF16,
    TensorType::kQ5_1,  TensorType::kIQ2_XS, TensorType::kQ2_K,    TensorType::kTQ1_0,
    TensorType::kQ4_1,  TensorType::kIQ1_S,  TensorType::kQ5_K,    TensorType::kIQ4_NL,
    TensorType::kBF16,  TensorType::kIQ1_M,  TensorType::kQ3_K,    TensorType::kNVFP4,
    TensorType::kQ5_0,  TensorType::kIQ2_S,  TensorType::kIQ3_XXS, TensorType::kF32,
    TensorType::kTQ2_0, TensorType::kIQ2_XXS};

gguf::File OpenOrDie(const std::string& path) {
  auto file = gguf::File::Open(TestdataPath(path));
  FACET_CHECK(file.ok());
  return *std::move(file);
}

bool IsMixed(const gguf::TensorView& tensor) {
  return tensor.shape.size() >= 2 && tensor.name.find("ffn_gate_inp") == std::string::npos;
}

TensorType TypeFor(size_t number, int64_t n_columns) {
  std::vector<TensorType> fitting;
  for (const TensorType type : kTypes) {
    if (n_columns % InfoOf(type).block_elements == 0) {
      fitting.push_back(type);
    }
  }
  return fitting[number % fitting.size()];
}

std::string Encoded(const gguf::TensorView& tensor, int64_t n, const Codec& codec) {
  std::vector<float> values(static_cast<size_t>(n));
  FindCodec(tensor.type)->decode(tensor.data.data(), n, values.data());
  std::vector<std::byte> blocks(static_cast<size_t>(BytesOf(codec.type, n)));
  codec.encode(values.data(), nullptr, n, blocks.data());
  return std::string(AsText(blocks));
}

std::string FromSamples(int64_t n, TensorType type, uint64_t seed) {
  static const gguf::File kGrids = OpenOrDie("quant-iq/blocks.gguf");
  static const gguf::File kOthers = OpenOrDie("text/quant/blocks.gguf");
  const TensorTypeInfo info = InfoOf(type);
  const std::string name = "t." + std::string(info.name);
  const gguf::TensorView* sample = kGrids.Find(name);
  sample = sample == nullptr ? kOthers.Find(name) : sample;
  FACET_CHECK(sample != nullptr);
  const std::string_view pool = AsText(sample->data);
  const auto block_bytes = static_cast<size_t>(info.block_bytes);
  std::string bytes;
  for (int64_t block = 0; block < n / info.block_elements; ++block) {
    const uint64_t drawn = RandomBits(seed, static_cast<uint64_t>(block));
    bytes += pool.substr(drawn % (pool.size() / block_bytes) * block_bytes, block_bytes);
  }
  return bytes;
}

}  // namespace

std::string MakeMixedTypes(const std::string& base, int rotation) {
  const gguf::File file = OpenOrDie("text/gguf/" + base + ".gguf");
  std::vector<gguf::TensorToWrite> tensors;
  size_t number = static_cast<size_t>(rotation);
  for (const gguf::TensorView& tensor : file.tensors()) {
    TensorType type = tensor.type;
    std::string bytes(AsText(tensor.data));
    if (IsMixed(tensor)) {
      int64_t n = 1;
      for (const int64_t extent : tensor.shape) {
        n *= extent;
      }
      type = TypeFor(number, tensor.shape.back());
      const Codec* codec = FindCodec(type);
      bytes = codec->encode != nullptr ? Encoded(tensor, n, *codec) : FromSamples(n, type, number);
      ++number;
    }
    tensors.push_back({tensor.name, type, tensor.shape, gguf::WholeTensor(std::move(bytes))});
  }
  const std::string path = MakeTempDir() + "/" + base + "-mixed.gguf";
  FACET_CHECK(gguf::Write(path, file.metadata(), tensors).ok());
  return path;
}

}  // namespace facet::testing
