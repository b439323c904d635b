// SPDX-License-Identifier: Apache-2.0
#include "engine/fake_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/random.h"
#include "kv/plan.h"

namespace facet::testing {

namespace {

/// Small enough for a float to hold it exactly.
float HiddenOf(std::span<const int32_t> history) {
  uint64_t hash = history.size();
  for (const int32_t token : history) {
    hash = RandomBits(hash, static_cast<uint32_t>(token));
  }
  return static_cast<float>(hash >> 44U);
}

}  // namespace

FakeRunner::FakeRunner(const RunnerInfo& info, Script script)
    : info_(info), script_(std::move(script)) {
  const auto resize = [](Pool& pool, int n_blocks) {
    pool.slots.resize(static_cast<size_t>(n_blocks) * kBlockPositions);
    pool.written_in.resize(static_cast<size_t>(n_blocks), -1);
  };
  resize(sliding_, info_.n_sliding_blocks);
  resize(full_, info_.n_full_blocks);
}

Result<std::vector<float>> FakeRunner::Encode(std::span<const MediaItem* const> items) {
  if (before_encode) {
    FACET_RETURN_IF_ERROR(before_encode(items));
  }
  std::vector<float> soft;
  std::vector<std::string>& hashes = encoded_.emplace_back();
  for (const MediaItem* item : items) {
    hashes.push_back(item->hash);
    for (int offset = 0; offset < item->n_tokens; ++offset) {
      soft.push_back(static_cast<float>(SoftTokenOf(*item, offset)));
    }
  }
  return soft;
}

std::span<std::byte> FakeRunner::block(KvGroup group, BlockId id) {
  Pool& pool = group == KvGroup::kFull ? full_ : sliding_;
  return std::as_writable_bytes(
      std::span(pool.slots).subspan(static_cast<size_t>(id) * kBlockPositions, kBlockPositions));
}

void FakeRunner::Fault(std::string text) {
  if (faults_.size() < 20) {
    faults_.push_back(std::move(text));
  }
}

FakeRunner::Slot FakeRunner::Read(const Pool& pool, std::span<const BlockId> blocks, int pos) {
  const auto entry = static_cast<size_t>(pos / kBlockPositions);
  if (entry >= blocks.size() || blocks[entry] == kNoBlock) {
    Fault(fmt::format("position {} is visible and has no block", pos));
    return {};
  }
  const auto first_slot = static_cast<size_t>(blocks[entry]) * kBlockPositions;
  const Slot slot = pool.slots.at(first_slot + static_cast<size_t>(pos % kBlockPositions));
  if (slot.pos != pos) {
    Fault(fmt::format("position {} is visible, its block holds {}", pos, slot.pos));
    return {};
  }
  return slot;
}

void FakeRunner::Write(Pool& pool, std::span<const BlockId> blocks, const Row& row, int32_t token) {
  const auto entry = static_cast<size_t>(row.pos / kBlockPositions);
  if (entry >= blocks.size() || blocks[entry] == kNoBlock) {
    Fault(fmt::format("position {} is written and has no block", row.pos));
    return;
  }
  const auto block = static_cast<size_t>(blocks[entry]);
  const int64_t writer = (n_batches_ << 20) + row.sequence;
  int64_t& written_in = pool.written_in.at(block);
  if (written_in >> 20 == n_batches_ && written_in != writer) {
    Fault(fmt::format("block {} is written by two sequences", block));
  }
  written_in = writer;
  pool.slots.at(block * kBlockPositions + static_cast<size_t>(row.pos % kBlockPositions)) = {
      row.pos, token};
}

/// The tokens before `first`, by the full group's blocks, each compared with the sliding group's
/// where that sees it.
std::vector<int32_t> FakeRunner::History(const Batch& batch, const Row& first) {
  const SequenceBlocks& blocks = batch.sequences.at(static_cast<size_t>(first.sequence));
  const int first_visible =
      info_.sliding_window == 0 ? first.pos : FirstVisible(first.pos, info_.sliding_window);
  std::vector<int32_t> history;
  for (int pos = 0; pos < first.pos; ++pos) {
    int32_t token = Read(full_, blocks.full, pos).token;
    if (pos >= first_visible && Read(sliding_, blocks.sliding, pos).token != token) {
      Fault(fmt::format("position {} differs between the groups", pos));
      token = -1;
    }
    history.push_back(token);
  }
  return history;
}

/// What a row adds to the history; of a soft row, what Encode gave for it.
int32_t FakeRunner::TokenOf(const Batch& batch, const Row& row) {
  if (row.soft_row < 0) {
    return row.token;
  }
  if (static_cast<size_t>(row.soft_row) >= batch.soft.size()) {
    Fault(fmt::format("soft row {} of {}", row.soft_row, batch.soft.size()));
    return -1;
  }
  return static_cast<int32_t>(batch.soft[static_cast<size_t>(row.soft_row)]);
}

void FakeRunner::CheckOrder(const Batch& batch) {
  std::vector<int> next(batch.sequences.size(), -1);
  for (const Row& row : batch.rows) {
    int& expected = next.at(static_cast<size_t>(row.sequence));
    if (expected >= 0 && row.pos != expected) {
      Fault(fmt::format("row at position {} after {}", row.pos, expected - 1));
    }
    expected = row.pos + 1;
    const auto last = static_cast<size_t>(&row - batch.rows.data()) +
                      static_cast<size_t>(std::max(0, row.span_end - 1 - row.pos));
    if (last >= batch.rows.size() || batch.rows[last].sequence != row.sequence) {
      Fault(fmt::format("the span of position {} is cut", row.pos));
    }
  }
}

Result<std::span<const float>> FakeRunner::Run(const Batch& batch) {
  if (before_run) {
    FACET_RETURN_IF_ERROR(before_run(batch));
  }
  ++n_batches_;
  CheckOrder(batch);
  std::vector<std::vector<int32_t>> histories(batch.sequences.size());
  std::vector<bool> is_begun(batch.sequences.size());
  const auto n_vocab = static_cast<size_t>(info_.n_vocab);
  logits_.clear();
  hidden_.clear();
  for (const Row& row : batch.rows) {
    const auto sequence = static_cast<size_t>(row.sequence);
    if (!is_begun.at(sequence)) {
      is_begun[sequence] = true;
      histories[sequence] = History(batch, row);
    }
    const int32_t token = TokenOf(batch, row);
    Write(full_, batch.sequences[sequence].full, row, token);
    if (info_.sliding_window > 0) {
      Write(sliding_, batch.sequences[sequence].sliding, row, token);
    }
    histories[sequence].push_back(token);
    if (row.wants_logits) {
      hidden_.push_back(HiddenOf(histories[sequence]));
      logits_.resize(logits_.size() + n_vocab);
      script_(histories[sequence], std::span(logits_).last(n_vocab));
    }
  }
  return std::span<const float>(logits_);
}

/// The blocks' history must be the one that the hidden row was made of.
Result<std::vector<int32_t>> FakeRunner::Draft(std::span<const DraftTask> tasks) {
  if (before_draft) {
    FACET_RETURN_IF_ERROR(before_draft(tasks));
  }
  std::vector<int32_t> drafts;
  Batch batch;
  for (const DraftTask& task : tasks) {
    batch.sequences = {task.blocks};
    std::vector<int32_t> history = History(batch, {.pos = task.pos});
    if (task.hidden.size() != 1 || task.hidden[0] != HiddenOf(history)) {
      Fault(fmt::format("drafts at position {} from another row's hidden state", task.pos));
    }
    history.push_back(task.token);
    const std::vector<int32_t> guessed = propose(history, task.n_drafts);
    FACET_CHECK(guessed.size() == static_cast<size_t>(task.n_drafts));
    drafts.insert(drafts.end(), guessed.begin(), guessed.end());
  }
  return drafts;
}

int32_t SoftTokenOf(const MediaItem& item, int offset) {
  // Below every token and -1; small enough for a float to hold it exactly.
  const auto number = static_cast<int32_t>(std::stoul(item.hash.substr(0, 5), nullptr, 16));
  return -2 - (number * 8 + offset);
}

void HashLogits(std::span<const int32_t> history, std::span<float> logits) {
  uint64_t hash = 0x9E3779B97F4A7C15u;
  for (const int32_t token : history) {
    hash = (hash ^ static_cast<uint32_t>(token)) * 0xD6E8FEB86659FD93u;
    hash ^= hash >> 32;
  }
  for (size_t token = 0; token < logits.size(); ++token) {
    logits[token] = static_cast<float>(RandomUniform(hash, token) * 8 - 4);
  }
}

int32_t EchoOf(int32_t token, int n_vocab) {
  return static_cast<int32_t>((static_cast<uint32_t>(token) * 7U + 3U) %
                              static_cast<uint32_t>(n_vocab));
}

void EchoLogits(std::span<const int32_t> history, std::span<float> logits) {
  HashLogits(history, logits);
  logits[static_cast<size_t>(EchoOf(history.back(), static_cast<int>(logits.size())))] += 7;
}

FakeRunner::Script Say(size_t n_prompt, std::vector<int32_t> reply) {
  return [n_prompt, reply = std::move(reply)](std::span<const int32_t> history,
                                              std::span<float> logits) {
    std::fill(logits.begin(), logits.end(), 0.0F);
    const size_t n_said = std::min(history.size() - n_prompt, reply.size() - 1);
    logits[static_cast<size_t>(reply[n_said])] = 20;
  };
}

}  // namespace facet::testing
