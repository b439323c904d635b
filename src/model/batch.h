// SPDX-License-Identifier: Apache-2.0
// The rows of one forward pass. Prefill, decode, verification of drafts and media are all just
// different rows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kv/block_pool.h"

namespace facet {

/// One position of one sequence.
struct Row {
  int32_t sequence = 0;     ///< index into Batch::sequences
  int32_t pos = 0;          ///< absolute position in the sequence
  int32_t token = 0;        ///< token id; of a soft row, what the text has there (placeholder)
  int32_t soft_row = -1;    ///< row of Batch::soft that replaces the scaled embedding, or -1
  int32_t span_begin = -1;  ///< first position of the row's image or video frame, or -1
  int32_t span_end = -1;    ///< one past the last position of it, or -1
  bool wants_logits = false;
};

/// Where the keys and values of a sequence lie: block id for position p is group[p / 32]. Blocks
/// that cover the rows of the batch and all positions they can see are present; others may be
/// kNoBlock.
struct SequenceBlocks {
  std::span<const BlockId> sliding;
  std::span<const BlockId> full;
};

/// Rows of one sequence stand in ascending, gapless positions; a span is whole or absent.
struct Batch {
  std::vector<Row> rows;
  std::vector<SequenceBlocks> sequences;
  std::vector<float> soft;  ///< [n_soft, n_embd], used unscaled
};

}  // namespace facet
