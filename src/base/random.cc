// SPDX-License-Identifier: Apache-2.0
#include "base/random.h"

namespace facet {

uint64_t RandomBits(uint64_t seed, uint64_t counter) {
  uint32_t x[4] = {static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), 0, 0};
  auto key0 = static_cast<uint32_t>(seed);
  auto key1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53u} * x[0];
    const uint64_t product1 = uint64_t{0xCD9E8D57u} * x[2];
    x[0] = static_cast<uint32_t>(product1 >> 32) ^ x[1] ^ key0;
    x[1] = static_cast<uint32_t>(product1);
    x[2] = static_cast<uint32_t>(product0 >> 32) ^ x[3] ^ key1;
    x[3] = static_cast<uint32_t>(product0);
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return (uint64_t{x[1]} << 32) | x[0];
}

double RandomUniform(uint64_t seed, uint64_t counter) {
  return static_cast<double>(RandomBits(seed, counter) >> 11) * 0x1p-53;
}

}  // namespace facet
