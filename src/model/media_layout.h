// SPDX-License-Identifier: Apache-2.0
// The layout that encoder tensors have in memory, whichever file they come from: names, shapes and
// values are GGUF's (reference.md 9.3), with one exception. Columns that meet the pixels of a patch
// (v.patch_embd.weight, and v.patch_norm.1 of the 12B) stand in the order (row, column, channel),
// as in Hugging Face directories, because pixels lie so: [n, 3 · side²], side 16 or 48.
// a.blk.N.per_dim_scale has softplus applied.
#pragma once

#include <cstddef>
#include <vector>

#include "base/aligned_vector.h"
#include "model/checkpoint.h"

namespace facet {

/// Data of tensors that differ from those of the file.
using OwnedTensors = std::vector<AlignedVector<std::byte>>;

/// Changes one tensor of an mmproj file into the layout above. Tensors of a shape that no encoder
/// has stay as they are: to be refused where they are bound.
void ArrangeFromGguf(CheckpointTensor* tensor, OwnedTensors* owned);

/// The same for a tensor of a Hugging Face directory that has got its GGUF name.
void ArrangeFromHf(CheckpointTensor* tensor, OwnedTensors* owned);

}  // namespace facet
