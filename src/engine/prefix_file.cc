// SPDX-License-Identifier: Apache-2.0
#include "engine/prefix_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"
#include "base/file.h"
#include "base/mapped_file.h"
#include "base/sha256.h"
#include "engine/request_check.h"

namespace facet {

namespace {

constexpr std::string_view kMagic = "FACETPFX";
constexpr uint32_t kVersion = 1;
constexpr size_t kDigestBytes = 64;  // SHA-256 in hexadecimal digits, of all before it
constexpr size_t kFlushBytes = size_t{1} << 20;

// Of a node without salt and units: parent, whether it has a sliding block, number of units.
constexpr uint64_t kNodeBytes = sizeof(int32_t) + 2 * sizeof(uint8_t);

uint64_t BlockBytes(const PrefixFileKey& key, bool has_sliding) {
  return key.full_block_bytes + (has_sliding ? key.sliding_block_bytes : 0);
}

void AppendText(std::string& out, std::string_view text) {
  Append(out, static_cast<uint32_t>(text.size()));
  out += text;
}

// --- writing -------------------------------------------------------------------------------------

std::string HeadOf(const PrefixFileKey& key, uint64_t file_bytes, size_t n_nodes) {
  std::string head(kMagic);
  Append(head, kVersion);
  Append(head, file_bytes);
  AppendText(head, key.model);
  AppendText(head, key.kv_type);
  Append(head, static_cast<int32_t>(key.window));
  Append(head, key.full_block_bytes);
  Append(head, key.sliding_block_bytes);
  Append(head, static_cast<uint64_t>(n_nodes));
  return head;
}

void AppendNode(std::string& out, const PrefixRecord& record) {
  Append(out, record.parent);
  Append(out, static_cast<uint8_t>(record.sliding != kNoBlock ? 1 : 0));
  Append(out, static_cast<uint8_t>(record.units.size()));
  if (record.parent < 0) {
    AppendText(out, record.salt);
  }
  for (const PrefixUnit unit : record.units) {
    Append(out, unit);
  }
}

uint64_t NodeBytes(const PrefixRecord& record) {
  return kNodeBytes + (record.parent < 0 ? sizeof(uint32_t) + record.salt.size() : 0) +
         record.units.size() * sizeof(PrefixUnit);
}

/// A file that is hashed while it is written.
class HashedFile {
 public:
  explicit HashedFile(AtomicFile file) : file_(std::move(file)) {}

  Status Write(std::span<const std::byte> bytes) {
    hash_.Add(bytes);
    return file_.Write(AsText(bytes));
  }
  Status Commit() {
    FACET_RETURN_IF_ERROR(file_.Write(hash_.Hex()));
    return file_.Commit();
  }

 private:
  AtomicFile file_;
  Sha256 hash_;
};

Status WriteNodes(std::string head, std::span<const PrefixRecord> records, HashedFile& file) {
  std::string buffer = std::move(head);
  for (const PrefixRecord& record : records) {
    AppendNode(buffer, record);
    if (buffer.size() >= kFlushBytes) {
      FACET_RETURN_IF_ERROR(file.Write(AsBytes(buffer)));
      buffer.clear();
    }
  }
  return file.Write(AsBytes(buffer));
}

// --- reading -------------------------------------------------------------------------------------

/// What follows in the cursor must be this text, which `what` names.
Status ExpectText(ByteCursor& cursor, std::string_view what, const std::string& wanted) {
  FACET_ASSIGN(const auto size, cursor.Read<uint32_t>(what));
  FACET_ASSIGN(const auto text, cursor.Take(size, what));
  // What stands there is not told: it may be anything.
  if (AsText(text) != wanted) {
    return Refuse(cursor.name(), fmt::format("another {}", what), wanted);
  }
  return {};
}

template <typename T>
Status ExpectNumber(ByteCursor& cursor, std::string_view what, T wanted) {
  FACET_ASSIGN(const T found, cursor.Read<T>(what));
  if (found != wanted) {
    return Refuse(cursor.name(), fmt::format("{} {}", what, found), fmt::format("{}", wanted));
  }
  return {};
}

/// From the beginning of a file of `n_bytes` to the key's end.
Status ReadHead(ByteCursor& cursor, uint64_t n_bytes, const PrefixFileKey& key) {
  FACET_ASSIGN(const auto magic, cursor.Take(kMagic.size(), "magic"));
  if (AsText(magic) != kMagic) {
    return Refuse(cursor.name(), "no prefix cache", fmt::format("{} at its beginning", kMagic));
  }
  FACET_RETURN_IF_ERROR(ExpectNumber(cursor, "version", kVersion));
  FACET_ASSIGN(const auto wanted_bytes, cursor.Read<uint64_t>("file size"));
  if (n_bytes != wanted_bytes) {
    return Refuse(cursor.name(), fmt::format("{} bytes", n_bytes), fmt::format("{}", wanted_bytes));
  }
  FACET_RETURN_IF_ERROR(ExpectText(cursor, "model", key.model));
  FACET_RETURN_IF_ERROR(ExpectText(cursor, "KV type", key.kv_type));
  FACET_RETURN_IF_ERROR(ExpectNumber(cursor, "window", static_cast<int32_t>(key.window)));
  FACET_RETURN_IF_ERROR(ExpectNumber(cursor, "bytes of a full block", key.full_block_bytes));
  return ExpectNumber(cursor, "bytes of a sliding block", key.sliding_block_bytes);
}

Status CheckDigest(std::span<const std::byte> bytes, const std::string& name) {
  Sha256 hash;
  hash.Add(bytes.first(bytes.size() - kDigestBytes));
  if (AsText(bytes.last(kDigestBytes)) != hash.Hex()) {
    return Refuse(name, "damaged bytes", "those that fit the checksum");
  }
  return {};
}

Status CheckParent(const std::string& where, int32_t parent, std::span<const StoredPrefix> before) {
  const bool is_found = parent >= -1 && parent < static_cast<int64_t>(before.size());
  if (!is_found ||
      (parent >= 0 && before[static_cast<size_t>(parent)].record.units.size() != kBlockPositions)) {
    return Refuse(where, fmt::format("parent {}", parent), "-1 or an earlier whole node");
  }
  return {};
}

Result<StoredPrefix> ReadNode(ByteCursor& cursor, const PrefixFileKey& key,
                              std::span<const StoredPrefix> before) {
  const std::string where = fmt::format("{}: node {}", cursor.name(), before.size());
  StoredPrefix node;
  PrefixRecord& record = node.record;
  FACET_ASSIGN(record.parent, cursor.Read<int32_t>("parent"));
  FACET_RETURN_IF_ERROR(CheckParent(where, record.parent, before));
  FACET_ASSIGN(const auto n_sliding, cursor.Read<uint8_t>("number of sliding blocks"));
  const int most_sliding = key.window > 0 ? 1 : 0;
  if (n_sliding > most_sliding) {
    return Refuse(where, fmt::format("{} sliding blocks", n_sliding),
                  fmt::format("at most {}", most_sliding));
  }
  node.has_sliding = n_sliding == 1;
  FACET_ASSIGN(const auto n_units, cursor.Read<uint8_t>("number of units"));
  if (n_units < 1 || n_units > kBlockPositions) {
    return Refuse(where, fmt::format("{} units", n_units), fmt::format("1 to {}", kBlockPositions));
  }
  if (record.parent < 0) {
    FACET_ASSIGN(const auto n_salt, cursor.Read<uint32_t>("salt"));
    if (n_salt > kMaxSaltBytes) {
      return Refuse(where, fmt::format("a salt of {} bytes", n_salt),
                    fmt::format("at most {}", kMaxSaltBytes));
    }
    FACET_ASSIGN(const auto salt, cursor.Take(n_salt, "salt"));
    record.salt = AsText(salt);
  }
  FACET_ASSIGN(const auto units, cursor.Take(n_units * sizeof(PrefixUnit), "units"));
  record.units.resize(n_units);
  std::memcpy(record.units.data(), units.data(), units.size());
  for (const PrefixUnit unit : record.units) {
    if (unit >= key.n_vocab) {
      return Refuse(where, fmt::format("token {}", unit), fmt::format("below {}", key.n_vocab));
    }
  }
  return node;
}

/// Refuses nodes of one parent of which one's units are the beginning of another's.
Status CheckTwins(const std::string& name, std::span<const StoredPrefix> nodes) {
  std::vector<const PrefixRecord*> order;
  order.reserve(nodes.size());
  for (const StoredPrefix& node : nodes) {
    order.push_back(&node.record);
  }
  const auto scope = [](const PrefixRecord* node) {
    return std::pair<int32_t, const std::string&>(node->parent, node->salt);
  };
  std::sort(order.begin(), order.end(), [&](const PrefixRecord* a, const PrefixRecord* b) {
    return scope(a) != scope(b) ? scope(a) < scope(b) : a->units < b->units;
  });
  for (size_t i = 1; i < order.size(); ++i) {
    const PrefixRecord& a = *order[i - 1];
    const PrefixRecord& b = *order[i];
    if (scope(&a) == scope(&b) && a.units.size() <= b.units.size() &&
        std::equal(a.units.begin(), a.units.end(), b.units.begin())) {
      return Refuse(name, "a node that begins another", "nodes that differ");
    }
  }
  return {};
}

// --- choosing what fits --------------------------------------------------------------------------

/// For each node whether it is kept: from the last, which was used last, with all above it, until
/// `n_blocks` are kept.
std::vector<bool> NewestThatFit(std::span<const StoredPrefix> nodes, size_t n_blocks) {
  std::vector<bool> is_kept(nodes.size());
  std::vector<size_t> path;
  for (size_t last = nodes.size(); last-- > 0 && n_blocks > 0;) {
    for (size_t at = last; !is_kept[at]; at = static_cast<size_t>(nodes[at].record.parent)) {
      path.push_back(at);
      if (nodes[at].record.parent < 0) {
        break;
      }
    }
    for (; !path.empty() && n_blocks > 0; path.pop_back(), --n_blocks) {
      is_kept[path.back()] = true;
    }
  }
  return is_kept;
}

BlockId Take(BlockPool* pool, Runner* runner, KvGroup group, std::span<const std::byte> bytes) {
  const BlockId block = *pool->Allocate();
  const std::span<std::byte> memory = runner->block(group, block);
  FACET_CHECK(memory.size() == bytes.size());
  std::copy(bytes.begin(), bytes.end(), memory.begin());
  return block;
}

/// From the last on: with few sliding blocks, those that were used last have them.
void TakeBlocks(std::span<const StoredPrefix> nodes, const std::vector<bool>& is_kept,
                const PrefixFileTarget& target, std::vector<PrefixRecord>& records) {
  auto record = records.rbegin();
  for (size_t n = nodes.size(); n-- > 0;) {
    if (!is_kept[n]) {
      continue;
    }
    record->full = Take(target.full, target.runner, KvGroup::kFull, nodes[n].full);
    if (nodes[n].has_sliding && target.sliding->n_free() > 0) {
      record->sliding = Take(target.sliding, target.runner, KvGroup::kSliding, nodes[n].sliding);
    }
    ++record;
  }
}

}  // namespace

PrefixFileKey PrefixFileKeyOf(std::string model, std::string kv_type, Runner* runner) {
  const RunnerInfo& info = runner->info();
  const auto block_bytes = [&](KvGroup group, int n_blocks) -> uint64_t {
    return n_blocks > 0 ? runner->block(group, 0).size() : 0;
  };
  return {.model = std::move(model),
          .kv_type = std::move(kv_type),
          .window = info.n_sliding_blocks > 0 ? info.sliding_window : 0,
          .n_vocab = info.n_vocab,
          .full_block_bytes = block_bytes(KvGroup::kFull, info.n_full_blocks),
          .sliding_block_bytes = block_bytes(KvGroup::kSliding, info.n_sliding_blocks)};
}

Status SavePrefixFile(const std::string& path, const PrefixFileKey& key, const PrefixTree& tree,
                      Runner* runner) {
  const std::vector<PrefixRecord> records = tree.Export();
  uint64_t n_bytes = HeadOf(key, 0, 0).size() + kDigestBytes;
  for (const PrefixRecord& record : records) {
    n_bytes += NodeBytes(record) + BlockBytes(key, record.sliding != kNoBlock);
  }
  FACET_ASSIGN(AtomicFile part, AtomicFile::CreatePrivate(path));
  HashedFile file(std::move(part));
  FACET_RETURN_IF_ERROR(WriteNodes(HeadOf(key, n_bytes, records.size()), records, file));
  for (const PrefixRecord& record : records) {
    FACET_RETURN_IF_ERROR(file.Write(runner->block(KvGroup::kFull, record.full)));
    if (record.sliding != kNoBlock) {
      FACET_RETURN_IF_ERROR(file.Write(runner->block(KvGroup::kSliding, record.sliding)));
    }
  }
  return file.Commit();
}

Result<std::vector<StoredPrefix>> ParsePrefixFile(std::span<const std::byte> bytes,
                                                  const std::string& name,
                                                  const PrefixFileKey& key) {
  ByteCursor cursor(bytes.first(bytes.size() - std::min(bytes.size(), kDigestBytes)), name);
  FACET_RETURN_IF_ERROR(ReadHead(cursor, bytes.size(), key));
  FACET_RETURN_IF_ERROR(CheckDigest(bytes, name));
  FACET_ASSIGN(const auto n_nodes, cursor.Read<uint64_t>("number of nodes"));
  const uint64_t most = std::min<uint64_t>(
      cursor.remaining() / (kNodeBytes + sizeof(PrefixUnit) + key.full_block_bytes),
      std::numeric_limits<int32_t>::max());
  if (n_nodes > most) {
    return Refuse(name, fmt::format("{} nodes", n_nodes), fmt::format("at most {}", most));
  }
  std::vector<StoredPrefix> nodes;
  nodes.reserve(static_cast<size_t>(n_nodes));
  for (uint64_t n = 0; n < n_nodes; ++n) {
    FACET_ASSIGN(StoredPrefix node, ReadNode(cursor, key, nodes));
    nodes.push_back(std::move(node));
  }
  FACET_RETURN_IF_ERROR(CheckTwins(name, nodes));
  for (StoredPrefix& node : nodes) {
    FACET_ASSIGN(node.full, cursor.Take(key.full_block_bytes, "full block"));
    if (node.has_sliding) {
      FACET_ASSIGN(node.sliding, cursor.Take(key.sliding_block_bytes, "sliding block"));
    }
  }
  if (cursor.remaining() != 0) {
    return Refuse(name, fmt::format("{} bytes after the blocks", cursor.remaining()), "none");
  }
  return nodes;
}

Result<int> LoadPrefixFile(const std::string& path, const PrefixFileKey& key,
                           const PrefixFileTarget& target) {
  FACET_ASSIGN(const MappedFile file, MappedFile::Open(path));
  FACET_ASSIGN(const std::vector<StoredPrefix> nodes, ParsePrefixFile(file.bytes(), path, key));
  const std::vector<bool> is_kept =
      NewestThatFit(nodes, static_cast<size_t>(target.full->n_free()));
  std::vector<PrefixRecord> records;
  records.reserve(nodes.size());
  std::vector<int32_t> places(nodes.size());
  for (size_t n = 0; n < nodes.size(); ++n) {
    if (is_kept[n]) {
      places[n] = static_cast<int32_t>(records.size());
      records.push_back(nodes[n].record);
      int32_t& parent = records.back().parent;
      parent = parent < 0 ? -1 : places[static_cast<size_t>(parent)];
    }
  }
  TakeBlocks(nodes, is_kept, target, records);
  target.tree->Import(records);
  return static_cast<int>(records.size());
}

}  // namespace facet
