// SPDX-License-Identifier: Apache-2.0
// The tile kernels over tiles in plain C++. Compiled for AVX-512, hence a file of its own without
// anything of the test framework.
#include "compute/matmul_amx_emulated.h"

#include "compute/matmul_packed_amx.h"

namespace facet {
namespace {

// Does what the instructions are documented to do, and traps where they would fault.
class EmulatedTiles {
 public:
  explicit EmulatedTiles(const TileConfig& config) : config_(config) {
    for (int tile = 0; tile < 8; ++tile) {
      Check(config.rows[tile] >= 1 && config.rows[tile] <= 16 && config.row_bytes[tile] >= 4 &&
            config.row_bytes[tile] <= 64 && config.row_bytes[tile] % 4 == 0);
    }
  }

  template <int kTile>
  void Zero() {
    __builtin_memset(tiles_[kTile], 0, sizeof(tiles_[kTile]));
  }

  template <int kTile>
  void Load(const void* rows, int64_t stride) {
    Zero<kTile>();
    for (int row = 0; row < config_.rows[kTile]; ++row) {
      __builtin_memcpy(tiles_[kTile][row], static_cast<const std::byte*>(rows) + row * stride,
                       config_.row_bytes[kTile]);
    }
  }

  template <int kTile>
  void Store(void* rows, int64_t stride) {
    for (int row = 0; row < config_.rows[kTile]; ++row) {
      __builtin_memcpy(static_cast<std::byte*>(rows) + row * stride, tiles_[kTile][row],
                       config_.row_bytes[kTile]);
    }
  }

  template <int kSums, int kA, int kB>
  void Multiply() {
    static_assert(kSums != kA && kSums != kB && kA != kB);
    Check(config_.rows[kSums] == config_.rows[kA] &&
          config_.row_bytes[kSums] == config_.row_bytes[kB] &&
          config_.row_bytes[kA] == 4 * config_.rows[kB]);
    for (int m = 0; m < config_.rows[kSums]; ++m) {
      for (int n = 0; n < config_.row_bytes[kSums] / 4; ++n) {
        int32_t sum;
        __builtin_memcpy(&sum, tiles_[kSums][m] + 4 * n, sizeof(sum));
        for (int k = 0; k < config_.row_bytes[kA]; ++k) {
          sum += tiles_[kA][m][k] * tiles_[kB][k / 4][4 * n + k % 4];
        }
        __builtin_memcpy(tiles_[kSums][m] + 4 * n, &sum, sizeof(sum));
      }
    }
  }

 private:
  static void Check(bool is_valid) {
    if (!is_valid) {
      __builtin_trap();
    }
  }

  TileConfig config_;
  int8_t tiles_[8][16][64] = {};
};

}  // namespace

const TypeKernel* const kPackedEmulatedTiles = kPackedTiles<EmulatedTiles>;
const int kNPackedEmulatedTiles = kNPackedTiles;

}  // namespace facet
