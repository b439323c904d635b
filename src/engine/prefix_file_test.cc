// SPDX-License-Identifier: Apache-2.0
#include "engine/prefix_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/file.h"
#include "base/sha256.h"
#include "engine/fake_runner.h"
#include "kv/plan.h"
#include "support/testing.h"

namespace facet {
namespace {

constexpr int kVocab = 50;
constexpr int kWindow = 40;

using Tokens = std::vector<int32_t>;

Tokens Range(int n, int first) {
  Tokens tokens(static_cast<size_t>(n));
  for (int i = 0; i < n; ++i) {
    tokens[static_cast<size_t>(i)] = (first + i) % kVocab;
  }
  return tokens;
}

RunnerInfo InfoOf(int n_sliding, int n_full, int window) {
  return {.n_vocab = kVocab,
          .n_context = 1000,
          .sliding_window = window,
          .n_sliding_blocks = n_sliding,
          .n_full_blocks = n_full};
}

/// What of a server is between two starts.
struct Served {
  explicit Served(int n_sliding = 16, int n_full = 16, int window = kWindow)
      : runner(InfoOf(n_sliding, n_full, window), testing::HashLogits),
        sliding(n_sliding),
        full(n_full),
        tree(&sliding, &full, window) {}

  PrefixFileKey key() { return PrefixFileKeyOf("tiny", "f32", &runner); }
  Status Save(const std::string& path) { return SavePrefixFile(path, key(), tree, &runner); }
  Result<int> Load(const std::string& path) {
    return LoadPrefixFile(path, key(), {&tree, &sliding, &full, &runner});
  }

  /// The logits after the prompt, whose whole blocks are taken from the tree as far as they are
  /// there; it is left in the tree.
  std::vector<float> Run(const Tokens& prompt, int* n_reused = nullptr,
                         std::string_view salt = "") {
    const std::vector<PrefixUnit> units(prompt.begin(), prompt.end());
    const int n = static_cast<int>(prompt.size());
    const int n_match = tree.Match(salt, units, n - 1).n_positions / kBlockPositions;
    const PrefixMatch match = tree.Match(salt, units, n_match * kBlockPositions);
    tree.Touch(salt, units, match.n_positions);
    BlockTable sliding_table(&sliding);
    BlockTable full_table(&full);
    full_table.Share(match.full);
    if (runner.info().sliding_window > 0) {
      sliding_table.Share(match.sliding);
      tree.MakeRoom(KvGroup::kSliding, sliding_table.BlocksToGrow(n));
      EXPECT_TRUE(sliding_table.Grow(n));
    }
    tree.MakeRoom(KvGroup::kFull, full_table.BlocksToGrow(n));
    EXPECT_TRUE(full_table.Grow(n));
    Batch batch;
    batch.sequences.push_back({sliding_table.blocks(), full_table.blocks()});
    for (int pos = match.n_positions; pos < n; ++pos) {
      batch.rows.push_back(
          {.pos = pos, .token = prompt[static_cast<size_t>(pos)], .wants_logits = pos + 1 == n});
    }
    const auto logits = runner.Run(batch);
    tree.Insert(salt, units, true, &sliding_table, &full_table);
    if (n_reused != nullptr) {
      *n_reused = match.n_positions;
    }
    return {logits->begin(), logits->end()};
  }

  int Match(const Tokens& prompt, std::string_view salt = "") const {
    const std::vector<PrefixUnit> units(prompt.begin(), prompt.end());
    return tree.Match(salt, units, static_cast<int>(units.size())).n_positions;
  }

  testing::FakeRunner runner;
  BlockPool sliding;
  BlockPool full;
  PrefixTree tree;
};

std::vector<float> LogitsOf(const Tokens& history) {
  std::vector<float> logits(kVocab);
  testing::HashLogits(history, logits);
  return logits;
}

TEST(PrefixFile, ARepliesTheSameAfterARestart) {
  const std::string path = testing::MakeTempDir() + "/cache";
  const Tokens prompt = Range(100, 3);
  Tokens longer = prompt;
  longer.insert(longer.end(), {1, 2, 3});
  for (const int window : {0, kWindow}) {
    Served before(window > 0 ? 16 : 0, 16, window);
    before.Run(prompt);
    before.Run(Range(40, 9), nullptr, "salt");
    ASSERT_TRUE(before.Save(path).ok());
    EXPECT_FALSE(FileExists(path + ".part"));
    Served after(window > 0 ? 16 : 0, 16, window);
    const auto n_nodes = after.Load(path);
    ASSERT_TRUE(n_nodes.ok()) << n_nodes.error().Message();
    EXPECT_EQ(*n_nodes, 6);
    EXPECT_EQ(after.Match(prompt), 100);
    EXPECT_EQ(after.Match(Range(40, 9)), 0) << "a salt stays one";
    EXPECT_EQ(after.Match(Range(40, 9), "salt"), 40);
    int n_reused = 0;
    EXPECT_EQ(after.Run(longer, &n_reused), LogitsOf(longer));
    EXPECT_EQ(n_reused, 96);
    EXPECT_TRUE(after.runner.faults().empty()) << after.runner.faults().front();
    after.tree.Clear();
    EXPECT_EQ(after.full.n_free(), after.full.n_blocks());
    EXPECT_EQ(after.sliding.n_free(), after.sliding.n_blocks());
  }
}

TEST(PrefixFile, AnEmptyTreeIsAFileToo) {
  const std::string path = testing::MakeTempDir() + "/cache";
  Served served;
  ASSERT_TRUE(served.Save(path).ok());
  Served after;
  const auto n_nodes = after.Load(path);
  ASSERT_TRUE(n_nodes.ok());
  EXPECT_EQ(*n_nodes, 0);
}

TEST(PrefixFile, SavingTwiceGivesTheSameBytes) {
  const std::string dir = testing::MakeTempDir();
  Served served;
  served.Run(Range(70, 0));
  served.Run(Range(70, 5));
  ASSERT_TRUE(served.Save(dir + "/a").ok());
  Served after;
  ASSERT_TRUE(after.Load(dir + "/a").ok());
  ASSERT_TRUE(after.Save(dir + "/b").ok());
  EXPECT_EQ(testing::ReadOrDie(dir + "/a"), testing::ReadOrDie(dir + "/b"));
}

TEST(PrefixFile, WhatWasUsedLastIsKeptWhereNotAllFits) {
  const std::string path = testing::MakeTempDir() + "/cache";
  Served before;
  before.Run(Range(64, 0));
  before.Run(Range(64, 10));
  before.Run(Range(64, 20));
  before.Run(Range(70, 0));
  ASSERT_TRUE(before.Save(path).ok());
  const struct {
    int n_sliding;
    int n_full;
    int n_nodes;
    int n_first;  ///< positions of each prompt that can be resumed
    int n_second;
    int n_third;
  } cases[] = {{16, 16, 7, 70, 64, 64}, {16, 6, 6, 70, 32, 64}, {16, 4, 4, 70, 0, 32},
               {16, 2, 2, 64, 0, 0},    {3, 16, 7, 70, 0, 0},   {2, 16, 7, 0, 0, 0},
               {1, 16, 7, 0, 0, 0},     {16, 0, 0, 0, 0, 0}};
  for (const auto& sample : cases) {
    Served after(sample.n_sliding, sample.n_full);
    // A runner without blocks does not know the size of one.
    const PrefixFileKey key = before.key();
    const auto n_nodes =
        LoadPrefixFile(path, key, {&after.tree, &after.sliding, &after.full, &after.runner});
    ASSERT_TRUE(n_nodes.ok()) << n_nodes.error().Message();
    EXPECT_EQ(*n_nodes, sample.n_nodes);
    EXPECT_EQ(after.Match(Range(70, 0)), sample.n_first) << sample.n_sliding << sample.n_full;
    EXPECT_EQ(after.Match(Range(64, 10)), sample.n_second) << sample.n_sliding << sample.n_full;
    EXPECT_EQ(after.Match(Range(64, 20)), sample.n_third) << sample.n_sliding << sample.n_full;
    if (sample.n_full >= 4 && sample.n_sliding >= 3) {
      EXPECT_EQ(after.Run(Range(69, 0)), LogitsOf(Range(69, 0)));
    }
    EXPECT_TRUE(after.runner.faults().empty());
  }
}

// --- writing that fails --------------------------------------------------------------------------

/// Dies when its n-th block is asked for.
class DyingRunner : public testing::FakeRunner {
 public:
  DyingRunner(const RunnerInfo& info, int n_blocks)
      : FakeRunner(info, testing::HashLogits), n_left_(n_blocks) {}
  std::span<std::byte> block(KvGroup group, BlockId id) override {
    if (--n_left_ < 0) {
      (void)::raise(SIGKILL);
    }
    return FakeRunner::block(group, id);
  }

 private:
  int n_left_;
};

TEST(PrefixFile, AKillWhileSavingLeavesTheOldFile) {
  const std::string path = testing::MakeTempDir() + "/cache";
  Served old;
  old.Run(Range(40, 0));
  ASSERT_TRUE(old.Save(path).ok());
  const std::string bytes = testing::ReadOrDie(path);
  Served served;
  served.Run(Range(300, 0));
  for (const int n_blocks : {0, 1, 7}) {
    DyingRunner dying(served.runner.info(), n_blocks);
    EXPECT_EXIT((void)SavePrefixFile(path, served.key(), served.tree, &dying),
                ::testing::KilledBySignal(SIGKILL), "");
    EXPECT_EQ(testing::ReadOrDie(path), bytes);
  }
  ASSERT_TRUE(FileExists(path + ".part"));
  ASSERT_TRUE(served.Save(path).ok()) << "the rest of a killed save is written over";
  Served after;
  EXPECT_TRUE(after.Load(path).ok());
  EXPECT_EQ(after.Match(Range(300, 0)), 300);
}

/// Exits with 0 when the failure is told and nothing but the old file is left.
[[noreturn]] void SaveWhereThereIsNoSpace(Served& served, const std::string& path) {
  (void)::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{1000, 1000};
  (void)::setrlimit(RLIMIT_FSIZE, &limit);
  const Status saved = served.Save(path);
  const bool is_told =
      !saved.ok() && saved.error().Message() == path + ": cannot write: File too large";
  std::_Exit(is_told && !FileExists(path + ".part") ? 0 : 1);
}

TEST(PrefixFile, AFullDiskLeavesTheOldFile) {
  const std::string path = testing::MakeTempDir() + "/cache";
  Served served;
  ASSERT_TRUE(served.Save(path).ok());
  served.Run(Range(300, 0));
  EXPECT_EXIT(SaveWhereThereIsNoSpace(served, path), ::testing::ExitedWithCode(0), "");
  Served after;
  EXPECT_TRUE(after.Load(path).ok());
  const Status nowhere = served.Save(path + "/in/a/file");
  ASSERT_FALSE(nowhere.ok());
  EXPECT_EQ(nowhere.error().Message(), path + "/in/a/file: cannot create: Not a directory");
}

// --- files that are refused ----------------------------------------------------------------------

const PrefixFileKey kSmall{.model = "m",
                           .kv_type = "k",
                           .window = 4,
                           .n_vocab = 10,
                           .full_block_bytes = 2,
                           .sliding_block_bytes = 1};

struct Node {
  int32_t parent = -1;
  int n_sliding = 1;
  std::vector<PrefixUnit> units = {1, 2};
  std::string salt = {};
  int n_units = -1;  ///< if not that of the units
};

struct FileParts {
  std::string magic = "FACETPFX";
  uint32_t version = 1;
  PrefixFileKey key = kSmall;
  std::vector<Node> nodes = {};
  int64_t n_nodes = -1;    ///< if not that of the nodes
  std::string after = {};  ///< the blocks
};

/// Written by what docs/prefix-cache.md says, with the right size and checksum.
std::string Assemble(const FileParts& parts) {
  std::string out = parts.magic;
  Append(out, parts.version);
  Append(out, uint64_t{0});
  for (const std::string& text : {parts.key.model, parts.key.kv_type}) {
    Append(out, static_cast<uint32_t>(text.size()));
    out += text;
  }
  Append(out, static_cast<int32_t>(parts.key.window));
  Append(out, parts.key.full_block_bytes);
  Append(out, parts.key.sliding_block_bytes);
  Append(out, parts.n_nodes < 0 ? static_cast<uint64_t>(parts.nodes.size())
                                : static_cast<uint64_t>(parts.n_nodes));
  std::string blocks;
  for (const Node& node : parts.nodes) {
    Append(out, node.parent);
    Append(out, static_cast<uint8_t>(node.n_sliding));
    Append(out, static_cast<uint8_t>(node.n_units < 0 ? static_cast<int>(node.units.size())
                                                      : node.n_units));
    if (node.parent < 0) {
      Append(out, static_cast<uint32_t>(node.salt.size()));
      out += node.salt;
    }
    for (const PrefixUnit unit : node.units) {
      Append(out, unit);
    }
    blocks += node.n_sliding != 0 ? "ffs" : "ff";
  }
  out += blocks + parts.after;
  const uint64_t n_bytes = out.size() + 64;
  std::memcpy(out.data() + 12, &n_bytes, sizeof n_bytes);
  return out + Sha256Hex(out);
}

std::string MessageOf(const std::string& bytes) {
  const auto nodes = ParsePrefixFile(AsBytes(bytes), "file", kSmall);
  return nodes.ok() ? "" : nodes.error().Message();
}

std::vector<PrefixUnit> Whole() { return std::vector<PrefixUnit>(32, -7); }

TEST(PrefixFile, ReadsWhatTheFormatSays) {
  const std::string bytes = Assemble({.nodes = {{.units = Whole(), .salt = "s"},
                                                {.parent = 0, .n_sliding = 0, .units = {9}},
                                                {.units = {9}}}});
  const auto nodes = ParsePrefixFile(AsBytes(bytes), "file", kSmall);
  ASSERT_TRUE(nodes.ok()) << nodes.error().Message();
  ASSERT_EQ(nodes->size(), 3U);
  EXPECT_EQ((*nodes)[0].record.salt, "s");
  EXPECT_EQ((*nodes)[0].record.units, Whole());
  EXPECT_EQ(AsText((*nodes)[0].sliding), "s");
  EXPECT_EQ((*nodes)[1].record.parent, 0);
  EXPECT_EQ(AsText((*nodes)[1].full), "ff");
  EXPECT_FALSE((*nodes)[1].has_sliding);
}

TEST(PrefixFile, RefusesWhatDoesNotFit) {
  const auto with = [](auto change) {
    PrefixFileKey key = kSmall;
    change(key);
    return MessageOf(Assemble({.key = key}));
  };
  EXPECT_EQ(MessageOf(Assemble({.magic = "FACETPFY"})),
            "file: no prefix cache, wanted FACETPFX at its beginning");
  EXPECT_EQ(MessageOf(Assemble({.version = 2})), "file: version 2, wanted 1");
  EXPECT_EQ(with([](PrefixFileKey& key) { key.model = "n"; }), "file: another model, wanted m");
  EXPECT_EQ(with([](PrefixFileKey& key) { key.kv_type = ""; }), "file: another KV type, wanted k");
  EXPECT_EQ(with([](PrefixFileKey& key) { key.window = 5; }), "file: window 5, wanted 4");
  EXPECT_EQ(with([](PrefixFileKey& key) { key.full_block_bytes = 3; }),
            "file: bytes of a full block 3, wanted 2");
  EXPECT_EQ(with([](PrefixFileKey& key) { key.sliding_block_bytes = 0; }),
            "file: bytes of a sliding block 0, wanted 1");
  EXPECT_EQ(MessageOf(""), "file, byte 0: 0 bytes left for magic, wanted 8");
  EXPECT_EQ(MessageOf(std::string(70, 'F')), "file, byte 0: 6 bytes left for magic, wanted 8");
  const std::string whole = Assemble({});
  EXPECT_EQ(MessageOf(whole), "");
  EXPECT_EQ(MessageOf(whole + "x"), "file: 123 bytes, wanted 122");
  EXPECT_EQ(MessageOf(whole.substr(0, 100)), "file: 100 bytes, wanted 122");
  std::string damaged = whole;
  damaged[55] = '\1';
  EXPECT_EQ(MessageOf(damaged), "file: damaged bytes, wanted those that fit the checksum");
}

TEST(PrefixFile, RefusesNodesThatAreNoTree) {
  const auto nodes = [](std::vector<Node> list) {
    return MessageOf(Assemble({.nodes = std::move(list)}));
  };
  EXPECT_EQ(nodes({{.parent = -2}}), "file: node 0: parent -2, wanted -1 or an earlier whole node");
  EXPECT_EQ(nodes({{.parent = 0}}), "file: node 0: parent 0, wanted -1 or an earlier whole node");
  EXPECT_EQ(nodes({{}, {.parent = 0}}),
            "file: node 1: parent 0, wanted -1 or an earlier whole node");
  EXPECT_EQ(nodes({{.n_sliding = 2}}), "file: node 0: 2 sliding blocks, wanted at most 1");
  EXPECT_EQ(nodes({{.units = Whole()}, {.units = {}}}), "file: node 1: 0 units, wanted 1 to 32");
  EXPECT_EQ(nodes({{.units = std::vector<PrefixUnit>(33)}}),
            "file: node 0: 33 units, wanted 1 to 32");
  EXPECT_EQ(nodes({{.units = {3, 10}}}), "file: node 0: token 10, wanted below 10");
  EXPECT_EQ(nodes({{.units = {1, 2}}, {.units = {1, 2}}}),
            "file: a node that begins another, wanted nodes that differ");
  EXPECT_EQ(nodes({{.units = {1, 2, 3}}, {.units = {5}}, {.units = {1, 2}}}),
            "file: a node that begins another, wanted nodes that differ");
  EXPECT_EQ(nodes({{.units = {1, 2}}, {.units = {1, 2}, .salt = "s"}}), "");
  EXPECT_EQ(MessageOf(Assemble({.n_nodes = 1})), "file: 1 nodes, wanted at most 0");
  EXPECT_EQ(MessageOf(Assemble({.nodes = {{}}, .n_nodes = 1LL << 62})),
            "file: 4611686018427387904 nodes, wanted at most 1");
  EXPECT_EQ(MessageOf(Assemble({.nodes = {{}}, .n_nodes = 0})),
            "file: 29 bytes after the blocks, wanted none");
}

/// What is refused leaves tree and pools as they were.
void ExpectRefused(Served& served, const std::string& path, const std::string& bytes) {
  ASSERT_TRUE(WriteFile(path, bytes).ok());
  const auto n_nodes = served.Load(path);
  ASSERT_FALSE(n_nodes.ok());
  ASSERT_FALSE(n_nodes.error().Message().empty());
  ASSERT_EQ(served.full.n_free(), served.full.n_blocks());
  ASSERT_EQ(served.sliding.n_free(), served.sliding.n_blocks());
  ASSERT_EQ(served.tree.n_blocks(KvGroup::kFull), 0);
}

TEST(PrefixFile, EveryCutAndEveryChangedByteIsRefused) {
  const std::string whole =
      Assemble({.nodes = {{.units = Whole(), .salt = "salt"}, {.parent = 0, .units = {-1, 2}}}});
  ASSERT_EQ(MessageOf(whole), "");
  for (size_t n = 0; n < whole.size(); ++n) {
    ASSERT_NE(MessageOf(whole.substr(0, n)), "") << n;
    for (const int mask : {1, 0x80, 0xFF}) {
      std::string changed = whole;
      changed[n] = static_cast<char>(changed[n] ^ mask);
      ASSERT_NE(MessageOf(changed), "") << n;
    }
  }
  // The same without a checksum that sees it: each is refused or is another tree.
  for (size_t n = 20; n + 64 < whole.size(); ++n) {
    for (const int mask : {1, 0x80, 0xFF}) {
      std::string changed = whole.substr(0, whole.size() - 64);
      changed[n] = static_cast<char>(changed[n] ^ mask);
      (void)MessageOf(changed + Sha256Hex(changed));
    }
  }
}

TEST(PrefixFile, NothingIsKeptOfWhatIsRefused) {
  const std::string path = testing::MakeTempDir() + "/cache";
  Served before;
  before.Run(Range(70, 0));
  ASSERT_TRUE(before.Save(path).ok());
  const std::string whole = testing::ReadOrDie(path);
  Served after;
  for (size_t n = 0; n < whole.size(); n += 97) {
    ExpectRefused(after, path, whole.substr(0, n));
    std::string changed = whole;
    changed[n] = static_cast<char>(changed[n] ^ 4);
    ExpectRefused(after, path, changed);
  }
  EXPECT_EQ(after.Load(path + ".none").error().Message(),
            path + ".none: cannot open: No such file or directory");
  ASSERT_TRUE(WriteFile(path, whole).ok());
  EXPECT_TRUE(after.Load(path).ok()) << "and the right one is taken afterwards";
}

}  // namespace
}  // namespace facet
