// SPDX-License-Identifier: Apache-2.0
// Memory of the keys and values: two pools of blocks (sliding layers, full layers), each block
// holding 32 positions of all layers of its group that write K and V. Which block belongs to whom
// is kv/'s business.
#pragma once

#include <cstddef>
#include <vector>

#include "base/page_memory.h"
#include "base/status.h"
#include "compute/attention.h"
#include "kv/block_pool.h"
#include "model/config.h"
#include "model/model.h"

namespace facet {

class KvStore {
 public:
  /// `plan` comes from PlanKv for the same config and type. Memory is taken lazily by the system;
  /// refused where it does not give that much at all.
  static Result<KvStore> Allocate(const Config& config, KvType type, const KvPoolPlan& plan);

  /// Of a shared layer: that of its donor.
  [[nodiscard]] const KvLayout& layout(int layer) const {
    return layouts_[static_cast<size_t>(layer)];
  }
  [[nodiscard]] std::byte* block(LayerKind group, BlockId id) const;
  [[nodiscard]] size_t block_bytes(LayerKind group) const {
    return (group == LayerKind::kFull ? full_ : sliding_).block_bytes;
  }

 private:
  struct Pool {
    PageMemory memory;
    size_t block_bytes = 0;
    int n_blocks = 0;
  };
  KvStore() = default;
  static Result<Pool> MakePool(const KvGroupPlan& group);

  std::vector<KvLayout> layouts_;
  Pool sliding_;
  Pool full_;
};

}  // namespace facet
