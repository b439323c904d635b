// SPDX-License-Identifier: Apache-2.0
// Where the keys and values of one KV head lie in a block. Shared by what writes and what reads
// them; not for others.
#pragma once

#include <cstddef>

#include "compute/attention.h"
#include "compute/kernels.h"

namespace facet {

/// K and V of `kv_head` in `block`.
KvTile TileOf(const KvLayout& layout, int kv_head, const std::byte* block);

}  // namespace facet
