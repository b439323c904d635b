// SPDX-License-Identifier: Apache-2.0
#include "compute/attention.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "base/aligned_vector.h"
#include "base/check.h"
#include "compute/attention_kv.h"
#include "compute/kernels.h"
#include "compute/thread_pool.h"

namespace facet {
namespace {

constexpr int kTile = kKvBlockPositions;
constexpr int kChannelGroup = 32;  // channels that kernels do not cut

// Products that are worth waking the threads for, and worth it three times: about ten microseconds
// of work each time.
constexpr int64_t kLeastProducts = int64_t{1} << 19;
constexpr int64_t kLeastSplitProducts = 2 * kLeastProducts;

// Packed queries of a unit, in floats; with as many outputs they stay in the second cache.
constexpr int64_t kUnitFloats = int64_t{1} << 16;

// What all parts of a call share.
struct Call {
  const AttentionKernels& kernels;
  const KvTypeKernels& type;
  const KvLayout& layout;
  int heads_per_kv;

  [[nodiscard]] int n_kv_heads() const { return layout.shape.n_kv_heads; }
  [[nodiscard]] int d_head() const { return layout.shape.d_head; }
};

const KvTypeKernels& KernelsOf(const AttentionKernels& kernels, KvType type) {
  switch (type) {
    case KvType::kF32:
      return kernels.f32;
    case KvType::kF16:
      return kernels.f16;
    case KvType::kBf16:
      return kernels.bf16;
    case KvType::kQ8_0:
      break;
  }
  return kernels.q8_0;
}

// Keys of a tile; none when low >= high.
struct Keys {
  int low;
  int high;
  bool operator==(const Keys&) const = default;
};

Keys KeysOf(int32_t begin, int32_t end, int32_t tile) {
  return {std::max(0, begin - tile * kTile), std::min(kTile, end - tile * kTile)};
}

int32_t TilesUpTo(int32_t end) { return (end + kTile - 1) / kTile; }

// Queries of one KV head that meet each tile together.
struct QueryBlock {
  int n;
  const float* q;  // [d_head][n]
  int32_t begin[kMaxTileQueries];
  int32_t end[kMaxTileQueries];
  float* out[kMaxTileQueries];
  AttentionState states[kMaxTileQueries];

  [[nodiscard]] Keys keys(int i, int32_t tile) const { return KeysOf(begin[i], end[i], tile); }
  [[nodiscard]] bool Sees(int32_t tile) const {
    for (int i = 0; i < n; ++i) {
      if (begin[i] < (tile + 1) * kTile && end[i] > tile * kTile) {
        return true;
      }
    }
    return false;
  }
};

// What a thread works in; kept from call to call. Linear in the queries of a unit or, for a row
// that all threads share, in its keys.
struct Workspace {
  AlignedVector<QueryBlock> blocks;
  AlignedVector<float> q;
  AlignedVector<float> k;  // [d_head][32]
  AlignedVector<float> v;  // [32][d_head]
  AlignedVector<float> scores;
  AlignedVector<float> corrections;
};

Workspace& OwnWorkspace() {
  thread_local Workspace workspace;
  return workspace;
}

// Cuts the queries of `rows` and one KV head into blocks of nearly equal size, and packs them.
std::span<QueryBlock> MakeBlocks(const Call& call, int kv_head, std::span<const AttentionRow> rows,
                                 float* q, QueryBlock* blocks) {
  const int d_head = call.d_head();
  const int n_queries = static_cast<int>(rows.size()) * call.heads_per_kv;
  const int n_blocks = (n_queries + kMaxTileQueries - 1) / kMaxTileQueries;
  for (int b = 0; b < n_blocks; ++b) {
    QueryBlock& block = blocks[b];
    const int first = n_queries * b / n_blocks;
    block.n = n_queries * (b + 1) / n_blocks - first;
    block.q = q;
    const float* sources[kMaxTileQueries];
    for (int i = 0; i < block.n; ++i) {
      const AttentionRow& row = rows[static_cast<size_t>((first + i) / call.heads_per_kv)];
      const int head = kv_head * call.heads_per_kv + (first + i) % call.heads_per_kv;
      sources[i] = row.q + static_cast<int64_t>(head) * d_head;
      block.begin[i] = row.begin;
      block.end[i] = row.end;
      block.out[i] = row.out + static_cast<int64_t>(head) * d_head;
      block.states[i] = {-std::numeric_limits<float>::infinity(), 0.0f};
      std::fill_n(block.out[i], d_head, 0.0f);
    }
    for (int d = 0; d < d_head; ++d) {
      for (int i = 0; i < block.n; ++i) {
        *q++ = sources[i][d];
      }
    }
  }
  return {blocks, static_cast<size_t>(n_blocks)};
}

int BlocksOf(int64_t n_queries) {
  return static_cast<int>((n_queries + kMaxTileQueries - 1) / kMaxTileQueries);
}

void Finish(const Call& call, const QueryBlock& block) {
  for (int i = 0; i < block.n; ++i) {
    call.kernels.divide(block.states[i].sum, call.d_head(), block.out[i]);
  }
}

// Scores, softmax and values of a block for a tile that some of its queries see.
void AddTile(const Call& call, const KvTypeKernels& type, const KvTile& tile, int32_t t,
             QueryBlock* block) {
  alignas(64) float s[kMaxTileQueries * kTile];
  float corrections[kMaxTileQueries];
  type.scores(tile, block->q, block->n, s);
  for (int i = 0, end; i < block->n; i = end) {
    const Keys keys = block->keys(i, t);
    end = i + 1;
    while (end < block->n && block->keys(end, t) == keys) {
      ++end;
    }
    if (keys.low < keys.high) {
      call.kernels.softmax(
          {s + i * kTile, block->states + i, corrections, end - i, keys.low, keys.high});
      type.values(tile, {s + i * kTile, corrections, block->out + i, end - i, keys.low, keys.high,
                         0, call.d_head()});
    }
  }
}

// Rows of one sequence and one KV head, on this thread: each tile is converted once for all.
void AttendUnit(const Call& call, int kv_head, std::span<const AttentionRow> rows) {
  Workspace& own = OwnWorkspace();
  const int d_head = call.d_head();
  const auto n_queries = static_cast<int64_t>(rows.size()) * call.heads_per_kv;
  const std::span<QueryBlock> blocks =
      MakeBlocks(call, kv_head, rows, Reserve(&own.q, n_queries * d_head),
                 Reserve(&own.blocks, BlocksOf(n_queries)));
  int32_t begin = rows[0].begin;
  int32_t end = rows[0].end;
  for (const AttentionRow& row : rows) {
    begin = std::min(begin, row.begin);
    end = std::max(end, row.end);
  }
  std::byte* const* const stored = rows[0].blocks.data();
  const bool is_unpacked = blocks.size() > 1 && call.type.unpack != nullptr;
  for (int32_t t = begin / kTile; t < TilesUpTo(end); ++t) {
    const auto sees = [t](const QueryBlock& block) { return block.Sees(t); };
    if (std::none_of(blocks.begin(), blocks.end(), sees)) {
      continue;  // its block may be missing
    }
    KvTile tile = TileOf(call.layout, kv_head, stored[t]);
    if (!is_unpacked) {
      tile.after_k = tile.v;
      const bool is_last = t + 1 == TilesUpTo(end) || stored[t + 1] == nullptr;
      tile.after_v = is_last ? nullptr : TileOf(call.layout, kv_head, stored[t + 1]).k;
    } else {
      float* k = Reserve(&own.k, int64_t{d_head} * kTile);
      float* v = Reserve(&own.v, int64_t{d_head} * kTile);
      call.type.unpack(tile, k, v);
      tile = {reinterpret_cast<const std::byte*>(k),
              reinterpret_cast<const std::byte*>(v),
              nullptr,
              nullptr,
              d_head,
              nullptr,
              nullptr};
    }
    for (QueryBlock& block : blocks) {
      if (block.Sees(t)) {
        AddTile(call, is_unpacked ? call.kernels.f32 : call.type, tile, t, &block);
      }
    }
  }
  for (const QueryBlock& block : blocks) {
    Finish(call, block);
  }
}

// Items are pairs of a KV head and a row, all rows of the first KV head first.
void AttendItems(const Call& call, std::span<const AttentionRow> rows, int64_t begin, int64_t end) {
  const auto n_rows = static_cast<int64_t>(rows.size());
  const int64_t most =
      std::max<int64_t>(1, kUnitFloats / (int64_t{call.heads_per_kv} * call.d_head()));
  while (begin < end) {
    const int64_t first = begin % n_rows;
    const int64_t last = std::min({n_rows, first + most, first + end - begin});
    int64_t row = first + 1;
    const auto at = [rows](int64_t i) { return rows[static_cast<size_t>(i)].blocks.data(); };
    while (row < last && at(row) == at(first)) {
      ++row;
    }
    AttendUnit(call, static_cast<int>(begin / n_rows),
               rows.subspan(static_cast<size_t>(first), static_cast<size_t>(row - first)));
    begin += row - first;
  }
}

// Gives each thread a run of items with as many keys as the others'.
void AttendTogether(const ComputeContext& context, const Call& call,
                    std::span<const AttentionRow> rows) {
  const auto n_rows = static_cast<int64_t>(rows.size());
  std::vector<int64_t> keys_before = {0};
  keys_before.reserve(rows.size() + 1);
  for (const AttentionRow& row : rows) {
    keys_before.push_back(keys_before.back() + row.end - row.begin);
  }
  const int64_t keys_of_head = keys_before.back();
  const int64_t n_keys = keys_of_head * call.n_kv_heads();
  const int n_parts =
      n_keys * call.heads_per_kv * call.d_head() < kLeastProducts ? 1 : context.pool->n_threads();
  const auto border = [&](int64_t part) {
    const int64_t keys = n_keys * part / n_parts;
    const auto row = std::lower_bound(keys_before.begin(), keys_before.end(), keys % keys_of_head);
    return keys / keys_of_head * n_rows + (row - keys_before.begin());
  };
  context.pool->Run(
      n_parts, [&](int part) { AttendItems(call, rows, border(part), border(part + int64_t{1})); });
}

// One row with all threads: first the scores of different tiles, then the softmax of different
// heads, then different channels of the output.
class SplitRow {
 public:
  SplitRow(const Call& call, const AttentionRow& row)
      : call_(call),
        row_(row),
        first_tile_(row.begin / kTile),
        n_tiles_(TilesUpTo(row.end) - first_tile_),
        blocks_per_kv_(BlocksOf(call.heads_per_kv)) {
    Workspace& own = OwnWorkspace();
    const int n_blocks = call.n_kv_heads() * blocks_per_kv_;
    const int64_t q_of_head = int64_t{call.heads_per_kv} * call.d_head();
    blocks_ = Reserve(&own.blocks, n_blocks);
    float* q = Reserve(&own.q, call.n_kv_heads() * q_of_head);
    scores_ = Reserve(&own.scores, int64_t{n_blocks} * n_tiles_ * kMaxTileQueries * kTile);
    corrections_ = Reserve(&own.corrections, int64_t{n_blocks} * n_tiles_ * kMaxTileQueries);
    for (int head = 0; head < call.n_kv_heads(); ++head) {
      MakeBlocks(call, head, {&row, 1}, q + head * q_of_head, blocks_ + head * blocks_per_kv_);
    }
  }

  void Run(ThreadPool* pool) {
    pool->RunRanges(int64_t{call_.n_kv_heads()} * n_tiles_, 1,
                    [this](int64_t begin, int64_t end) { Scores(begin, end); });
    pool->RunRanges(int64_t{call_.n_kv_heads()} * call_.heads_per_kv, 1,
                    [this](int64_t begin, int64_t end) { Softmax(begin, end); });
    const int n_groups = (call_.d_head() + kChannelGroup - 1) / kChannelGroup;
    pool->RunRanges(
        int64_t{call_.n_kv_heads()} * n_groups, 1, [this, n_groups](int64_t begin, int64_t end) {
          for (int64_t next; begin < end; begin = next) {
            next = std::min(end, (begin / n_groups + 1) * n_groups);  // stays in one KV head
            const int64_t first = begin % n_groups * kChannelGroup;
            const int64_t last = first + (next - begin) * kChannelGroup;
            Values(static_cast<int>(begin / n_groups), static_cast<int>(first),
                   static_cast<int>(std::min<int64_t>(last, call_.d_head())));
          }
        });
    for (int b = 0; b < call_.n_kv_heads() * blocks_per_kv_; ++b) {
      Finish(call_, blocks_[b]);
    }
  }

 private:
  [[nodiscard]] KvTile Tile(int kv_head, int64_t t) const {
    return TileOf(call_.layout, kv_head, row_.blocks[static_cast<size_t>(first_tile_ + t)]);
  }
  [[nodiscard]] Keys KeysAt(int64_t t) const {
    return KeysOf(row_.begin, row_.end, first_tile_ + static_cast<int32_t>(t));
  }
  [[nodiscard]] int64_t Place(int block, int64_t t) const {
    return (block * int64_t{n_tiles_} + t) * kMaxTileQueries;
  }

  // Items are pairs of a KV head and a tile.
  void Scores(int64_t begin, int64_t end) const {
    for (int64_t item = begin; item < end; ++item) {
      const int kv_head = static_cast<int>(item / n_tiles_);
      const int64_t t = item % n_tiles_;
      KvTile tile = Tile(kv_head, t);
      tile.after_k = item + 1 < end && t + 1 < n_tiles_ ? Tile(kv_head, t + 1).k : nullptr;
      for (int b = kv_head * blocks_per_kv_; b < (kv_head + 1) * blocks_per_kv_; ++b) {
        call_.type.scores(tile, blocks_[b].q, blocks_[b].n, scores_ + Place(b, t) * kTile);
      }
    }
  }

  void Softmax(int64_t begin, int64_t end) const {
    int64_t first = 0;  // query of the block
    for (int b = 0; first < end; first += blocks_[b++].n) {
      const int64_t low = std::max<int64_t>(0, begin - first);
      const int64_t high = std::min<int64_t>(blocks_[b].n, end - first);
      for (int64_t t = 0; low < high && t < n_tiles_; ++t) {
        const Keys keys = KeysAt(t);
        const int64_t place = Place(b, t) + low;
        call_.kernels.softmax({scores_ + place * kTile, blocks_[b].states + low,
                               corrections_ + place, static_cast<int>(high - low), keys.low,
                               keys.high});
      }
    }
  }

  void Values(int kv_head, int begin, int end) const {
    for (int64_t t = 0; t < n_tiles_; ++t) {
      KvTile tile = Tile(kv_head, t);
      tile.after_v = t + 1 < n_tiles_ ? Tile(kv_head, t + 1).v : nullptr;
      const Keys keys = KeysAt(t);
      for (int b = kv_head * blocks_per_kv_; b < (kv_head + 1) * blocks_per_kv_; ++b) {
        call_.type.values(tile, {scores_ + Place(b, t) * kTile, corrections_ + Place(b, t),
                                 blocks_[b].out, blocks_[b].n, keys.low, keys.high, begin, end});
      }
    }
  }

  const Call& call_;
  const AttentionRow& row_;
  int32_t first_tile_;
  int32_t n_tiles_;
  int blocks_per_kv_;
  QueryBlock* blocks_;  // [n_kv_heads][blocks_per_kv]
  float* scores_;       // [n_blocks][n_tiles][8][32]
  float* corrections_;  // [n_blocks][n_tiles][8]
};

}  // namespace

void Attention(const ComputeContext& context, const KvLayout& layout, int n_heads,
               std::span<const AttentionRow> rows) {
  const KvShape& shape = layout.shape;
  FACET_CHECK(shape.d_head % (layout.type == KvType::kQ8_0 ? kChannelGroup : 8) == 0);
  FACET_CHECK(shape.n_kv_heads > 0 && n_heads % shape.n_kv_heads == 0);
  const AttentionKernels& kernels = *context.kernels->attention;
  const Call call = {kernels, KernelsOf(kernels, layout.type), layout, n_heads / shape.n_kv_heads};
  int64_t n_keys = 0;
  for (const AttentionRow& row : rows) {
    FACET_CHECK(row.begin >= 0 && row.begin < row.end);
    FACET_CHECK(static_cast<size_t>((row.end - 1) / kTile) < row.blocks.size());
    n_keys += row.end - row.begin;
  }
  // A row that is more than half of a thread's share would leave the others waiting.
  const int64_t n_threads = context.pool->n_threads();
  std::vector<AttentionRow> shared;
  std::vector<AttentionRow> whole;
  for (const AttentionRow& row : rows) {
    const int64_t n = row.end - row.begin;
    const bool is_large = n * shape.d_head * n_heads >= kLeastSplitProducts;
    const bool is_shared =
        n_threads > 1 && is_large && 2 * n * n_threads > n_keys * shape.n_kv_heads;
    (is_shared ? shared : whole).push_back(row);
  }
  for (const AttentionRow& row : shared) {
    SplitRow(call, row).Run(context.pool);
  }
  if (!whole.empty()) {
    AttendTogether(context, call, whole);
  }
}

}  // namespace facet
