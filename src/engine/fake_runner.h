// SPDX-License-Identifier: Apache-2.0
// A runner without a model, for tests of what stands above the seam. Its "keys and values" are the
// tokens themselves, one per slot of a block, and the logits of a row are a scripted function of
// the history that the fake reads back through the blocks. A wrong block table, a missing chunk, a
// stale block or a wrong position is a wrong history, so it becomes a wrong reply, and is counted
// besides.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "model/runner.h"

namespace facet::testing {

/// Used by one thread.
class FakeRunner : public Runner {
 public:
  /// Fills `logits` [n_vocab] of the row after `history` (all tokens of the sequence so far).
  using Script = std::function<void(std::span<const int32_t> history, std::span<float> logits)>;

  FakeRunner(const RunnerInfo& info, Script script);

  [[nodiscard]] const RunnerInfo& info() const override { return info_; }
  Result<std::span<const float>> Run(const Batch& batch) override;
  /// One number a soft token (RunnerInfo::n_embd is 1), which tells item and place.
  Result<std::vector<float>> Encode(std::span<const MediaItem* const> items) override;
  /// One number a row (RunnerInfo::n_embd is 1): a hash of its history.
  [[nodiscard]] std::span<const float> hidden() const override { return hidden_; }
  /// What `propose` says after the history that the blocks hold.
  Result<std::vector<int32_t>> Draft(std::span<const DraftTask> tasks) override;
  std::span<std::byte> block(KvGroup group, BlockId id) override;

  /// Hashes of what was encoded, call by call.
  [[nodiscard]] const std::vector<std::vector<std::string>>& encoded() const { return encoded_; }

  /// Called before each batch; an Error makes Run return it.
  std::function<Status(const Batch& batch)> before_run;

  /// Called before drafts are made; an Error makes Draft return it. May be empty.
  std::function<Status(std::span<const DraftTask> tasks)> before_draft;

  /// Guesses `n` tokens after `history` (its last is the task's token); RunnerInfo::drafts is set.
  std::function<std::vector<int32_t>(std::span<const int32_t> history, int n)> propose;

  /// Called before items are encoded; an Error makes Encode return it.
  std::function<Status(std::span<const MediaItem* const> items)> before_encode;

  /// What was wrong with batches so far; tests want it empty.
  [[nodiscard]] const std::vector<std::string>& faults() const { return faults_; }

 private:
  struct Slot {
    int32_t pos = -1;
    int32_t token = -1;
  };
  struct Pool {
    std::vector<Slot> slots;
    std::vector<int64_t> written_in;  ///< [block]: batch * 2^20 + sequence that last wrote into it
  };

  Slot Read(const Pool& pool, std::span<const BlockId> blocks, int pos);
  void Write(Pool& pool, std::span<const BlockId> blocks, const Row& row, int32_t token);
  std::vector<int32_t> History(const Batch& batch, const Row& first);
  int32_t TokenOf(const Batch& batch, const Row& row);
  void CheckOrder(const Batch& batch);
  void Fault(std::string text);

  RunnerInfo info_;
  Script script_;
  Pool sliding_;
  Pool full_;
  int64_t n_batches_ = 0;
  std::vector<float> logits_;
  std::vector<float> hidden_;
  std::vector<std::vector<std::string>> encoded_;
  std::vector<std::string> faults_;
};

/// What stands in the history of FakeRunner where a soft token was.
int32_t SoftTokenOf(const MediaItem& item, int offset);

/// Pseudo-random logits in [-4, 4) that depend on every token of the history and its place.
void HashLogits(std::span<const int32_t> history, std::span<float> logits);

/// What EchoLogits likes to follow `token`.
int32_t EchoOf(int32_t token, int n_vocab);

/// HashLogits, and 7 more for the echo of the last token: text that repeats itself before long.
void EchoLogits(std::span<const int32_t> history, std::span<float> logits);

/// A script that says `reply` token by token after any prompt of `n_prompt` tokens (then its last
/// token for ever): the scripted token has logit 20, all others 0.
FakeRunner::Script Say(size_t n_prompt, std::vector<int32_t> reply);

}  // namespace facet::testing
