// SPDX-License-Identifier: Apache-2.0
#include "engine/sequence.h"

#include <gtest/gtest.h>

#include <string>

namespace facet {
namespace {

class SequenceTest : public ::testing::Test {
 protected:
  Sequence Make(const Request& request, int n_context = 1000, int window = 40) {
    return Sequence(request, {n_context, window}, &sliding_, &full_);
  }

  /// Accepts tokens (each with its letter as text) until one ends the reply; what was released and
  /// why it ended.
  static std::string Play(Sequence& sequence, const std::vector<int32_t>& tokens) {
    std::vector<TextPiece> released;
    std::optional<FinishReason> reason;
    for (const int32_t token : tokens) {
      const std::string bytes(1, static_cast<char>('a' + token));
      reason = sequence.Accept(token, bytes, released);
      if (reason) {
        break;
      }
    }
    std::string told;
    for (const TextPiece& piece : released) {
      told += piece.bytes;
    }
    return told + (reason ? " " + std::to_string(static_cast<int>(*reason)) : "");
  }

  static std::string Ends(const std::string& text, FinishReason reason) {
    return text + " " + std::to_string(static_cast<int>(reason));
  }

  Request request_ = [] {
    Request request;
    request.prompt = {0, 0, 0};
    return request;
  }();
  BlockPool sliding_{10};
  BlockPool full_{10};
};

TEST_F(SequenceTest, AnEndTokenEndsAndReleasesWhatIsHeld) {
  request_.end_tokens = {9, 5};
  request_.stop = {"bz"};
  Sequence sequence = Make(request_);
  EXPECT_EQ(Play(sequence, {0, 1, 5, 2}), Ends("ab", FinishReason::kEndToken));
  EXPECT_EQ(sequence.n_generated(), 3) << "the end token counts";
}

TEST_F(SequenceTest, AStopTextIsNotPartOfTheReply) {
  request_.stop = {"bc"};
  request_.max_tokens = 3;
  Sequence sequence = Make(request_);
  EXPECT_EQ(Play(sequence, {0, 1, 2, 3}), Ends("a", FinishReason::kStopString))
      << "before max_tokens";
}

TEST_F(SequenceTest, LimitsReleaseWhatIsHeld) {
  request_.stop = {"bz"};
  request_.max_tokens = 2;
  Sequence limited = Make(request_);
  EXPECT_EQ(limited.state().n_most, 5);
  EXPECT_EQ(Play(limited, {0, 1, 2}), Ends("ab", FinishReason::kMaxTokens));
  request_.max_tokens = -1;
  Sequence full = Make(request_, 6);
  EXPECT_EQ(full.state().n_most, 6);
  EXPECT_EQ(Play(full, {0, 2, 1, 2}), Ends("acb", FinishReason::kContext));
}

TEST_F(SequenceTest, TheGuardCanBeSwitchedOff) {
  const std::vector<int32_t> loop(300, 1);
  Sequence guarded = Make(request_);
  EXPECT_EQ(Play(guarded, loop), Ends(std::string(256, 'b'), FinishReason::kRepetition));
  request_.stops_on_repetition = false;
  Sequence free = Make(request_);
  EXPECT_EQ(Play(free, loop), std::string(300, 'b'));
}

TEST_F(SequenceTest, BlocksFollowTheWindowAndComeBack) {
  request_.prompt.assign(200, 0);
  {
    Sequence sequence = Make(request_);
    sequence.Reserve(150);
    EXPECT_EQ(sequence.blocks().full.size(), 5U);
    EXPECT_EQ(sequence.table(KvGroup::kSliding).n_held(), 5);
    EXPECT_EQ(sequence.table(KvGroup::kFull).n_held(), 5);
    sequence.Advance(150);
    sequence.DropPassed();  // the next row, at 150, sees 111 and later: three blocks are done with
    EXPECT_EQ(sequence.table(KvGroup::kSliding).n_held(), 2);
    EXPECT_EQ(sequence.table(KvGroup::kFull).n_held(), 5);
    EXPECT_EQ(sequence.blocks().sliding[2], kNoBlock);
    EXPECT_NE(sequence.blocks().sliding[3], kNoBlock);
    sequence.Reserve(47);
    EXPECT_EQ(sequence.table(KvGroup::kFull).n_held(), 7);
    sequence.Advance(10);  // 37 rows were drafts, and wrong: 160 positions are five blocks
    EXPECT_EQ(sequence.table(KvGroup::kSliding).n_held(), 2);
    EXPECT_EQ(sequence.table(KvGroup::kFull).n_held(), 5);
    sequence.Preempt();
    EXPECT_EQ(sequence.state().n_computed, 0);
    EXPECT_EQ(full_.n_free() + sliding_.n_free(), 20);
    sequence.Reserve(200);
    EXPECT_EQ(full_.n_free(), 3);
  }
  EXPECT_EQ(full_.n_free() + sliding_.n_free(), 20);
  Sequence no_window = Make(request_, 1000, 0);
  no_window.Reserve(32);
  EXPECT_EQ(sliding_.n_free(), 10) << "no sliding layers, no blocks";
}

}  // namespace
}  // namespace facet
