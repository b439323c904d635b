// SPDX-License-Identifier: Apache-2.0
// Why what no sequence holds can be evicted at any time, though inner nodes must outlive their
// children: a sequence that holds the full block of a node holds those of all nodes above it. It
// got the block either from a match, with all above it, or from Insert, which makes the tables
// refer to the tree's block in every whole node of the path, and only whole nodes have children.
// Tables give full blocks back from the end. So a node that nobody but the tree holds has nothing
// below it that is held either, and evicting leaf by leaf reaches it.
#include "kv/prefix_tree.h"

#include <algorithm>
#include <array>
#include <list>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "kv/plan.h"

namespace facet {

namespace {

using Units = std::span<const PrefixUnit>;

struct Node;
Units UnitsOf(const Node* node);
Units UnitsOf(Units units) { return units; }

struct ByUnits {
  using is_transparent = void;
  template <typename A, typename B>
  bool operator()(const A& a, const B& b) const {
    const Units left = UnitsOf(a);
    const Units right = UnitsOf(b);
    return std::lexicographical_compare(left.begin(), left.end(), right.begin(), right.end());
  }
};

/// No one's units are the beginning of another's. So in this order the beginning of some units
/// stands right before them, what they begin stands right after, and so does what has most in
/// common with them, on one side or the other.
using Children = std::set<Node*, ByUnits>;

/// When a block was used: the number of the use, and which of its blocks comes first in that use,
/// which makes it unique.
using Use = std::pair<uint64_t, int>;
using Order = std::map<Use, Node*>;

struct Node {
  Node* parent = nullptr;  ///< null: a root, which stands before the first block
  int index = -1;          ///< which block of its path
  size_t n_units = 0;
  std::array<PrefixUnit, kBlockPositions> units{};
  BlockId full = kNoBlock;
  BlockId sliding = kNoBlock;
  uint64_t used = 0;  ///< at least its children's: a path is used whole
  uint64_t sliding_used = 0;
  Children children;
  Children sliding_children;          ///< those that have a sliding block
  std::list<Node>::iterator self;     ///< unless a root
  const std::string* salt = nullptr;  ///< of a root
};

Units UnitsOf(const Node* node) { return Units(node->units).first(node->n_units); }

size_t CommonLength(Units a, Units b) {
  const size_t n = std::min(a.size(), b.size());
  return static_cast<size_t>(
      std::mismatch(a.begin(), a.begin() + static_cast<ptrdiff_t>(n), b.begin()).first - a.begin());
}

bool IsBeginning(Units beginning, Units of) {
  return CommonLength(beginning, of) == beginning.size();
}

/// The units from a block's first position on, as many as a block holds.
Units BlockOf(Units units, size_t index) {
  const Units rest = units.subspan(index * kBlockPositions);
  return rest.first(std::min<size_t>(rest.size(), kBlockPositions));
}

struct Overlap {
  Node* node = nullptr;
  size_t n_common = 0;
};

/// The node that begins with the most of `units`.
Overlap Closest(const Children& nodes, Units units) {
  Overlap best;
  const auto consider = [&](Node* node) {
    const size_t n_common = CommonLength(UnitsOf(node), units);
    if (n_common > best.n_common) {
      best = {node, n_common};
    }
  };
  const auto next = nodes.lower_bound(units);
  if (next != nodes.end()) {
    consider(*next);
  }
  if (next != nodes.begin()) {
    consider(*std::prev(next));
  }
  return best;
}

/// Deeper blocks count as older, so that a parent stands behind the child that made it a leaf.
Use LeafUse(const Node* node) { return {node->used, -node->index}; }
/// Deeper blocks count as newer: the front of a long prompt goes first, its end can be resumed.
Use SlidingUse(const Node* node) { return {node->sliding_used, node->index}; }

}  // namespace

struct PrefixTree::State {
  BlockPool* sliding_pool;
  BlockPool* full_pool;
  int window;
  std::list<Node> nodes;  // without the roots; flat, so that no depth of a path is a depth of calls
  std::map<std::string, Node, std::less<>> roots;
  Order leaves;
  Order sliding;
  uint64_t n_uses = 0;

  [[nodiscard]] bool is_empty() const { return nodes.empty(); }
  Node* RootOf(std::string_view salt);
  [[nodiscard]] const Node* FindRoot(std::string_view salt) const;

  Node* Add(Node* parent, Units units, BlockId full_block, BlockId sliding_block);
  void Replace(Node* leaf, Units units, BlockId full_block, BlockId sliding_block);
  void Remove(Node* leaf);
  void AddSliding(Node* node, BlockId block);
  void RemoveSliding(Node* node);
  void MarkUsed(Node* node);
  void MarkSlidingUsed(Node* node);

  [[nodiscard]] const Children& ResumableChildren(const Node& node) const;
  [[nodiscard]] int FirstSliding(int n_positions) const;
  [[nodiscard]] int LongestResumable(const Node* root, Units units) const;
  [[nodiscard]] std::vector<Node*> PathOf(const Node* root, Units units) const;
  Node* Place(Node* parent, Units units, BlockTable* sliding_table, BlockTable* full_table);

  bool EvictFull(int n_blocks);
  bool EvictSliding(int n_blocks);
};

Node* PrefixTree::State::RootOf(std::string_view salt) {
  auto root = roots.find(salt);
  if (root == roots.end()) {
    root = roots.emplace(salt, Node{}).first;
    root->second.salt = &root->first;
  }
  return &root->second;
}

const Node* PrefixTree::State::FindRoot(std::string_view salt) const {
  const auto root = roots.find(salt);
  return root == roots.end() ? nullptr : &root->second;
}

/// Takes over a reference on each block.
Node* PrefixTree::State::Add(Node* parent, Units units, BlockId full_block, BlockId sliding_block) {
  if (parent->parent != nullptr && parent->children.empty()) {
    leaves.erase(LeafUse(parent));
  }
  Node* node = &nodes.emplace_back();
  node->self = std::prev(nodes.end());
  node->parent = parent;
  node->index = parent->index + 1;
  node->n_units = units.size();
  std::copy(units.begin(), units.end(), node->units.begin());
  node->full = full_block;
  full_pool->SetCached(full_block, true);
  node->used = n_uses;
  parent->children.insert(node);
  leaves.emplace(LeafUse(node), node);
  if (sliding_block != kNoBlock) {
    AddSliding(node, sliding_block);
  }
  return node;
}

/// The leaf's units are the beginning of these, so it keeps its place among its siblings. Takes
/// over a reference on each block.
void PrefixTree::State::Replace(Node* leaf, Units units, BlockId full_block,
                                BlockId sliding_block) {
  std::copy(units.begin(), units.end(), leaf->units.begin());
  leaf->n_units = units.size();
  full_pool->SetCached(leaf->full, false);
  full_pool->Release(std::exchange(leaf->full, full_block));
  full_pool->SetCached(full_block, true);
  if (leaf->sliding != kNoBlock) {
    RemoveSliding(leaf);
  }
  if (sliding_block != kNoBlock) {
    AddSliding(leaf, sliding_block);
  }
  MarkUsed(leaf);
}

void PrefixTree::State::Remove(Node* leaf) {
  if (leaf->sliding != kNoBlock) {
    RemoveSliding(leaf);
  }
  full_pool->SetCached(leaf->full, false);
  full_pool->Release(leaf->full);
  leaves.erase(LeafUse(leaf));
  Node* parent = leaf->parent;
  parent->children.erase(leaf);
  nodes.erase(leaf->self);
  if (!parent->children.empty()) {
    return;
  }
  if (parent->parent != nullptr) {
    leaves.emplace(LeafUse(parent), parent);
  } else {
    roots.erase(roots.find(*parent->salt));
  }
}

/// Takes over a reference.
void PrefixTree::State::AddSliding(Node* node, BlockId block) {
  node->sliding = block;
  sliding_pool->SetCached(block, true);
  node->sliding_used = n_uses;
  node->parent->sliding_children.insert(node);
  sliding.emplace(SlidingUse(node), node);
}

void PrefixTree::State::RemoveSliding(Node* node) {
  sliding.erase(SlidingUse(node));
  node->parent->sliding_children.erase(node);
  sliding_pool->SetCached(node->sliding, false);
  sliding_pool->Release(std::exchange(node->sliding, kNoBlock));
}

void PrefixTree::State::MarkUsed(Node* node) {
  if (!node->children.empty()) {
    node->used = n_uses;
    return;
  }
  auto leaf = leaves.extract(LeafUse(node));
  node->used = n_uses;
  leaf.key() = LeafUse(node);
  leaves.insert(std::move(leaf));
}

void PrefixTree::State::MarkSlidingUsed(Node* node) {
  auto entry = sliding.extract(SlidingUse(node));
  node->sliding_used = n_uses;
  entry.key() = SlidingUse(node);
  sliding.insert(std::move(entry));
}

/// Those that a position inside of them can be resumed in.
const Children& PrefixTree::State::ResumableChildren(const Node& node) const {
  return window > 0 ? node.sliding_children : node.children;
}

/// The first block of the sliding group that is needed to go on after `n_positions`.
int PrefixTree::State::FirstSliding(int n_positions) const {
  return window > 0 ? FirstVisible(n_positions, window) / kBlockPositions : BlocksFor(n_positions);
}

int PrefixTree::State::LongestResumable(const Node* root, Units units) const {
  std::vector<const Node*> path = {root};  // whole blocks: path[n] ends the first n
  std::vector<int> n_sliding = {0};        // how many of them, up to the n-th, have sliding blocks
  while (units.size() - (path.size() - 1) * kBlockPositions >= kBlockPositions) {
    const Children& children = path.back()->children;
    const auto child = children.find(BlockOf(units, path.size() - 1));
    if (child == children.end()) {
      break;
    }
    path.push_back(*child);
    n_sliding.push_back((*child)->sliding != kNoBlock ? n_sliding.back() + 1 : 0);
  }
  // Inside one node a later position needs less before the node, so only the last can be the
  // longest.
  for (size_t n_whole = path.size(); n_whole-- > 0;) {
    const auto is_resumable = [&](int n_positions) {
      return static_cast<int>(n_whole) - FirstSliding(n_positions) <= n_sliding[n_whole];
    };
    const int n_before = static_cast<int>(n_whole) * kBlockPositions;
    const Overlap inside = Closest(ResumableChildren(*path[n_whole]), BlockOf(units, n_whole));
    const int n_inside = n_before + static_cast<int>(inside.n_common);
    if (n_inside > n_before && is_resumable(n_inside)) {
      return n_inside;
    }
    if (is_resumable(n_before)) {
      return n_before;
    }
  }
  return 0;
}

/// The nodes of these units as far as there are any; the last may go on after them.
std::vector<Node*> PrefixTree::State::PathOf(const Node* root, Units units) const {
  std::vector<Node*> path;
  path.reserve(units.size() / kBlockPositions + 1);
  const Node* parent = root;
  while (path.size() * kBlockPositions < units.size()) {
    const Units wanted = BlockOf(units, path.size());
    const bool is_whole = wanted.size() == kBlockPositions;
    const Overlap next = Closest(is_whole ? parent->children : ResumableChildren(*parent), wanted);
    if (next.n_common < wanted.size()) {
      break;
    }
    path.push_back(next.node);
    parent = next.node;
  }
  return path;
}

/// The child that has these units, new if there was none; tree and tables share its blocks.
Node* PrefixTree::State::Place(Node* parent, Units units, BlockTable* sliding_table,
                               BlockTable* full_table) {
  const int index = parent->index + 1;
  const auto entry = static_cast<size_t>(index);
  const BlockId full_block = full_table->blocks()[entry];
  const BlockId sliding_block = window > 0 ? sliding_table->blocks()[entry] : kNoBlock;
  const auto next = parent->children.lower_bound(units);
  if (next == parent->children.end() || !IsBeginning(units, UnitsOf(*next))) {
    Node* const before = next == parent->children.begin() ? nullptr : *std::prev(next);
    full_pool->AddRef(full_block);
    if (sliding_block != kNoBlock) {
      sliding_pool->AddRef(sliding_block);
    }
    if (before != nullptr && IsBeginning(UnitsOf(before), units)) {
      Replace(before, units, full_block, sliding_block);
      return before;
    }
    return Add(parent, units, full_block, sliding_block);
  }
  Node* const node = *next;
  MarkUsed(node);
  if (sliding_block != kNoBlock && node->sliding != kNoBlock) {
    MarkSlidingUsed(node);
  } else if (sliding_block != kNoBlock && node->n_units == units.size()) {
    sliding_pool->AddRef(sliding_block);
    AddSliding(node, sliding_block);
  }
  // A partial block stays the sequence's own, which may write into the rest of it.
  if (units.size() == kBlockPositions) {
    full_table->Adopt(index, node->full);
    if (sliding_block != kNoBlock) {
      sliding_table->Adopt(index, node->sliding);
    }
  }
  return node;
}

/// What is held was used lately, and is passed over.
bool PrefixTree::State::EvictFull(int n_blocks) {
  auto leaf = leaves.begin();
  while (full_pool->n_free() < n_blocks && leaf != leaves.end()) {
    const auto [use, node] = *leaf;
    if (full_pool->refs(node->full) > 1) {
      ++leaf;
      continue;
    }
    Remove(node);
    leaf = leaves.lower_bound(use);
  }
  return full_pool->n_free() >= n_blocks;
}

bool PrefixTree::State::EvictSliding(int n_blocks) {
  auto entry = sliding.begin();
  while (sliding_pool->n_free() < n_blocks && entry != sliding.end()) {
    Node* const node = entry->second;
    ++entry;
    if (sliding_pool->refs(node->sliding) == 1) {
      RemoveSliding(node);
    }
  }
  return sliding_pool->n_free() >= n_blocks;
}

PrefixTree::PrefixTree(BlockPool* sliding, BlockPool* full, int window) {
  FACET_CHECK(sliding != nullptr && full != nullptr && window >= 0);
  state_ = std::make_unique<State>();
  state_->sliding_pool = sliding;
  state_->full_pool = full;
  state_->window = window;
}

PrefixTree::~PrefixTree() {
  while (!state_->leaves.empty()) {
    state_->Remove(state_->leaves.begin()->second);
  }
}

PrefixMatch PrefixTree::Match(std::string_view salt, Units units, int max_positions) const {
  PrefixMatch match;
  const Node* root = state_->FindRoot(salt);
  if (root == nullptr || max_positions <= 0) {
    return match;
  }
  units = units.first(std::min(units.size(), static_cast<size_t>(max_positions)));
  match.n_positions = state_->LongestResumable(root, units);
  const auto path = state_->PathOf(root, units.first(static_cast<size_t>(match.n_positions)));
  const int first_sliding = state_->FirstSliding(match.n_positions);
  match.full.reserve(path.size());
  match.sliding.reserve(path.size());
  for (const Node* node : path) {
    match.full.push_back(node->full);
    match.sliding.push_back(node->index < first_sliding ? kNoBlock : node->sliding);
  }
  return match;
}

void PrefixTree::Insert(std::string_view salt, Units units, bool with_partial, BlockTable* sliding,
                        BlockTable* full) {
  const size_t n_whole = units.size() / kBlockPositions;
  const size_t n_blocks =
      with_partial ? (units.size() + kBlockPositions - 1) / kBlockPositions : n_whole;
  FACET_CHECK(full->blocks().size() >= n_blocks);
  FACET_CHECK(state_->window == 0 || sliding->blocks().size() >= n_blocks);
  if (n_blocks == 0) {
    return;
  }
  ++state_->n_uses;
  Node* node = state_->RootOf(salt);
  for (size_t index = 0; index < n_blocks; ++index) {
    node = state_->Place(node, BlockOf(units, index), sliding, full);
  }
}

void PrefixTree::Touch(std::string_view salt, Units units, int n_positions) {
  const Node* root = state_->FindRoot(salt);
  if (root == nullptr || n_positions <= 0) {
    return;
  }
  ++state_->n_uses;
  const int first_sliding = state_->FirstSliding(n_positions);
  const size_t n = std::min(units.size(), static_cast<size_t>(n_positions));
  for (Node* node : state_->PathOf(root, units.first(n))) {
    state_->MarkUsed(node);
    if (node->index >= first_sliding && node->sliding != kNoBlock) {
      state_->MarkSlidingUsed(node);
    }
  }
}

bool PrefixTree::MakeRoom(KvGroup group, int n_blocks) {
  return group == KvGroup::kFull ? state_->EvictFull(n_blocks) : state_->EvictSliding(n_blocks);
}

void PrefixTree::Clear() {
  (void)state_->EvictFull(state_->full_pool->n_blocks());
  (void)state_->EvictSliding(state_->sliding_pool->n_blocks());
}

int PrefixTree::n_evictable(KvGroup group) const {
  return group == KvGroup::kFull ? state_->full_pool->n_idle() : state_->sliding_pool->n_idle();
}

int PrefixTree::n_blocks(KvGroup group) const {
  return static_cast<int>(group == KvGroup::kFull ? state_->nodes.size() : state_->sliding.size());
}

std::vector<PrefixRecord> PrefixTree::Export() const {
  std::vector<const Node*> by_use;
  by_use.reserve(state_->nodes.size());
  for (const Node& node : state_->nodes) {
    by_use.push_back(&node);
  }
  std::sort(by_use.begin(), by_use.end(), [](const Node* a, const Node* b) {
    return std::pair(a->used, a->index) < std::pair(b->used, b->index);
  });
  std::vector<PrefixRecord> records;
  records.reserve(by_use.size());
  std::unordered_map<const Node*, int32_t> placed;
  std::vector<const Node*> path;
  for (const Node* last : by_use) {
    for (const Node* node = last; node->parent != nullptr && !placed.contains(node);
         node = node->parent) {
      path.push_back(node);
    }
    for (; !path.empty(); path.pop_back()) {
      const Node& node = *path.back();
      const bool is_first = node.parent->parent == nullptr;
      const Units units = UnitsOf(&node);
      placed.emplace(&node, static_cast<int32_t>(records.size()));
      records.push_back({.parent = is_first ? -1 : placed.at(node.parent),
                         .salt = is_first ? *node.parent->salt : std::string(),
                         .units = {units.begin(), units.end()},
                         .sliding = node.sliding,
                         .full = node.full});
    }
  }
  return records;
}

void PrefixTree::Import(std::span<const PrefixRecord> records) {
  FACET_CHECK(state_->is_empty());
  // A record's place is its use; a path is used whole, so a parent counts as its latest child.
  std::vector<uint64_t> uses(records.size());
  for (size_t i = records.size(); i-- > 0;) {
    const int32_t parent = records[i].parent;
    FACET_CHECK(parent >= -1 && parent < static_cast<int64_t>(i));
    uses[i] = std::max<uint64_t>(uses[i], i + 1);
    if (parent >= 0) {
      auto& parent_use = uses[static_cast<size_t>(parent)];
      parent_use = std::max(parent_use, uses[i]);
    }
  }
  std::vector<Node*> added;
  added.reserve(records.size());
  for (size_t i = 0; i < records.size(); ++i) {
    const PrefixRecord& record = records[i];
    const bool is_first = record.parent < 0;
    FACET_CHECK(!record.units.empty() && record.units.size() <= kBlockPositions);
    FACET_CHECK(is_first || record.salt.empty());
    FACET_CHECK(record.sliding == kNoBlock || state_->window > 0);
    Node* const parent =
        is_first ? state_->RootOf(record.salt) : added[static_cast<size_t>(record.parent)];
    FACET_CHECK(is_first || parent->n_units == kBlockPositions);
    const Overlap twin = Closest(parent->children, record.units);
    FACET_CHECK(twin.node == nullptr ||
                twin.n_common < std::min(twin.node->n_units, record.units.size()));
    state_->n_uses = uses[i];
    added.push_back(state_->Add(parent, record.units, record.full, record.sliding));
  }
  state_->n_uses = records.size();
}

}  // namespace facet
