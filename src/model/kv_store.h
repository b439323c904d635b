// SPDX-License-Identifier: Apache-2.0
// Memory of the keys and values: two pools of blocks (sliding layers, full layers), each block
// holding 32 positions of all layers of its group that write K and V. Which block belongs to whom
// is kv/'s business.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <vector>

#include "compute/attention.h"
#include "kv/block_pool.h"
#include "model/config.h"
#include "model/model.h"

namespace facet {

/// Where a layer's K and V lie within a block of its group. For a shared layer: those of its donor.
struct KvPlace {
  LayerKind group = LayerKind::kFull;
  size_t k_offset = 0;
  size_t v_offset = 0;
};

class KvStore {
 public:
  /// `plan` comes from PlanKv for the same config and type. Memory is taken lazily by the system.
  KvStore(const Config& config, KvType type, const KvPoolPlan& plan);

  [[nodiscard]] KvType type() const { return type_; }
  [[nodiscard]] const KvPlace& place(int layer) const {
    return places_[static_cast<size_t>(layer)];
  }
  [[nodiscard]] std::byte* block(LayerKind group, BlockId id) const;

 private:
  struct Pool {
    std::unique_ptr<std::byte, decltype(&std::free)> memory{nullptr, std::free};
    size_t block_bytes = 0;
    int n_blocks = 0;
  };
  static Pool MakePool(const KvGroupPlan& group);

  KvType type_;
  std::vector<KvPlace> places_;
  Pool sliding_;
  Pool full_;
};

}  // namespace facet
