// SPDX-License-Identifier: Apache-2.0
// Encodes for tools/quantization_table.py: quant_encode TYPE N reads N floats, then N importances
// when more follow, from stdin, writes the blocks to stdout and the values encoded per second of
// processor time, the best of three tries, to stderr.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

#include "quant/codec.h"

namespace {

int Fail(const char* wanted) {
  fmt::print(stderr, "quant_encode: {}\n", wanted);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    return Fail("usage: quant_encode TYPE N < values [importances]");
  }
  const auto info = facet::FindTensorTypeByName(argv[1]);
  const facet::Codec* codec = info ? facet::FindCodec(info->type) : nullptr;
  if (codec == nullptr || codec->encode == nullptr) {
    return Fail("wanted a type that has an encoder");
  }
  const int64_t n = std::atoll(argv[2]);
  if (n <= 0 || n % info->block_elements != 0) {
    return Fail("wanted a positive number of values that is whole blocks");
  }
  std::vector<float> values(static_cast<size_t>(n));
  std::vector<float> importance(values.size());
  if (std::fread(values.data(), sizeof(float), values.size(), stdin) != values.size()) {
    return Fail("wanted more values on stdin");
  }
  const size_t n_more = std::fread(importance.data(), sizeof(float), values.size(), stdin);
  if (n_more != 0 && n_more != values.size()) {
    return Fail("wanted as many importances as values, or none");
  }
  std::vector<std::byte> blocks(static_cast<size_t>(facet::BytesOf(info->type, n)));
  double speed = 0;
  for (int i = 0; i < 3; ++i) {
    const std::clock_t start = std::clock();
    codec->encode(values.data(), n_more != 0 ? importance.data() : nullptr, n, blocks.data());
    const auto took = static_cast<double>(std::max<std::clock_t>(std::clock() - start, 1));
    speed = std::max(speed, static_cast<double>(n) * CLOCKS_PER_SEC / took);
  }
  fmt::print(stderr, "{:.0f}\n", speed);
  return std::fwrite(blocks.data(), 1, blocks.size(), stdout) == blocks.size() ? 0 : 1;
}
