// SPDX-License-Identifier: Apache-2.0
// Counter-based randomness: the value for (seed, counter) never depends on what was drawn before,
// so speculation, batching and resuming cannot change a stream.
#pragma once

#include <cstdint>

namespace facet {

/// 64 well-mixed bits of (seed, counter): Philox 4x32-10 (Salmon et al., "Parallel random numbers:
/// as easy as 1, 2, 3", 2011) with the seed as key and the counter as block number.
uint64_t RandomBits(uint64_t seed, uint64_t counter);

/// Uniform in [0, 1), 53 bits.
double RandomUniform(uint64_t seed, uint64_t counter);

}  // namespace facet
