// SPDX-License-Identifier: Apache-2.0
// Files of the prefix cache: any bytes are refused or give nodes that a tree takes as they are.
// They are read once as they come, and once with the size and the checksum that they should have.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/check.h"
#include "base/sha256.h"
#include "engine/prefix_file.h"

namespace {

void Read(std::span<const std::byte> bytes) {
  const facet::PrefixFileKey key{.model = "m",
                                 .kv_type = "k",
                                 .window = 4,
                                 .n_vocab = 10,
                                 .full_block_bytes = 2,
                                 .sliding_block_bytes = 1};
  const auto nodes = facet::ParsePrefixFile(bytes, "fuzz", key);
  if (!nodes.ok()) {
    FACET_CHECK(!nodes.error().Message().empty());
    return;
  }
  const auto n_nodes = static_cast<int>(nodes->size());
  facet::BlockPool sliding(n_nodes);
  facet::BlockPool full(n_nodes);
  facet::PrefixTree tree(&sliding, &full, key.window);
  std::vector<facet::PrefixRecord> records;
  records.reserve(nodes->size());
  for (const facet::StoredPrefix& node : *nodes) {
    FACET_CHECK(node.full.size() == 2 && node.sliding.size() == (node.has_sliding ? 1 : 0));
    records.push_back(node.record);
    records.back().full = *full.Allocate();
    if (node.has_sliding) {
      records.back().sliding = *sliding.Allocate();
    }
  }
  tree.Import(records);
  FACET_CHECK(tree.n_evictable(facet::KvGroup::kFull) == n_nodes);
  tree.Clear();
  FACET_CHECK(full.n_free() == n_nodes && sliding.n_free() == n_nodes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Read(std::as_bytes(std::span(data, size)));
  constexpr size_t kSizeOffset = 12;
  std::string sealed(reinterpret_cast<const char*>(data), size);
  const uint64_t n_bytes = size + 64;
  if (size >= kSizeOffset + sizeof n_bytes) {
    std::memcpy(sealed.data() + kSizeOffset, &n_bytes, sizeof n_bytes);
    sealed += facet::Sha256Hex(sealed);
    Read(facet::AsBytes(sealed));
  }
  return 0;
}
