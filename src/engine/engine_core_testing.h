// SPDX-License-Identifier: Apache-2.0
// An EngineCore over the scripted runner, and requests for it: what the tests of the core share.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/engine_core.h"
#include "engine/fake_runner.h"
#include "engine/request_check.h"

namespace facet::testing {

inline constexpr int kVocab = 40;

inline RunnerInfo Info(int n_context = 2000, int n_blocks = 200) {
  return {.n_vocab = kVocab,
          .n_context = n_context,
          .sliding_window = 48,
          .n_sliding_blocks = n_blocks,
          .n_full_blocks = n_blocks};
}

/// Of a model that sees and hears.
inline RunnerInfo MediaInfo(int n_context = 2000, int n_blocks = 200) {
  RunnerInfo info = Info(n_context, n_blocks);
  info.n_embd = 1;
  info.media.sees = true;
  info.media.hears = true;
  return info;
}

/// Of a model with a drafter, that sees and hears.
inline RunnerInfo DraftInfo(int n_context = 2000, int n_blocks = 200) {
  RunnerInfo info = MediaInfo(n_context, n_blocks);
  info.drafts = true;
  return info;
}

/// An item that FakeRunner encodes; `content` tells it from others.
inline MediaItemPtr MakeItem(int content, int n_tokens, MediaKind kind = MediaKind::kImage) {
  MediaItem item;
  item.kind = kind;
  item.n_tokens = n_tokens;
  item.width = content;
  item.hash = HashOf(item);
  return std::make_shared<const MediaItem>(std::move(item));
}

/// Tokens 0-25 are letters, the others add nothing.
inline std::string_view TokenBytes(int32_t token) {
  static constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz";
  return token < 26 ? kLetters.substr(static_cast<size_t>(token), 1) : std::string_view{};
}

inline EngineOptions Options() {
  EngineOptions options;
  options.max_rows = 64;
  options.max_rows_beside = 16;
  options.max_sequences = 8;
  options.token_bytes = TokenBytes;
  return options;
}

inline bool IsSame(const TokenLogprob& a, const TokenLogprob& b) {
  return a.token == b.token && a.logprob == b.logprob;
}

/// What became of a request. Two are equal in all that is told but for times and what depends on
/// who else ran.
struct Reply {
  std::vector<int32_t> tokens;
  std::string text;
  std::vector<Event> told;  ///< of each token
  std::optional<Event> finished;

  bool operator==(const Reply& other) const {
    const auto is_same = [](const Event& a, const Event& b) {
      return a.token == b.token && a.bytes == b.bytes && IsSame(a.logprob, b.logprob) &&
             std::equal(a.top_logprobs.begin(), a.top_logprobs.end(), b.top_logprobs.begin(),
                        b.top_logprobs.end(), IsSame);
    };
    const RequestStats& stats = finished->stats;
    const RequestStats& other_stats = other.finished->stats;
    return std::equal(told.begin(), told.end(), other.told.begin(), other.told.end(), is_same) &&
           finished->reason == other.finished->reason && finished->token == other.finished->token &&
           finished->error == other.finished->error && stats.n_prompt == other_stats.n_prompt &&
           stats.n_generated == other_stats.n_generated &&
           stats.n_thought == other_stats.n_thought &&
           stats.thought_was_cut == other_stats.thought_was_cut;
  }
};

/// A core, its runner and a clock that a test moves: each batch takes a second.
struct Machine {
  explicit Machine(FakeRunner::Script script, const RunnerInfo& info = Info(),
                   const EngineOptions& options = Options())
      : runner(info, std::move(script)), core(&runner, options, [this] { return now_s; }) {
    runner.before_run = [this](const Batch&) {
      now_s += 1;
      return Status();
    };
  }

  void Add(const Request& request) {
    const Status status = core.Add(request, now_s);
    ASSERT_TRUE(status.ok()) << status.error().Message();
  }

  void Step() {
    for (Event& event : core.Step()) {
      Reply& reply = replies[event.request_id];
      ASSERT_FALSE(reply.finished) << "an event after the end";
      if (event.kind == Event::Kind::kFinished) {
        reply.finished = event;
      } else {
        reply.tokens.push_back(event.token);
        reply.text += event.bytes;
        reply.told.push_back(std::move(event));
      }
    }
  }

  void StepUntilIdle() {
    for (int step = 0; core.has_work(); ++step) {
      ASSERT_LT(step, 200000) << "no end";
      Step();
    }
    ExpectClean();
  }

  void ExpectClean() {
    if (core.prefix_cache() != nullptr) {
      core.prefix_cache()->tree().Clear();
    }
    EXPECT_EQ(core.full_pool().n_free(), core.full_pool().n_blocks());
    EXPECT_EQ(core.sliding_pool().n_free(), core.sliding_pool().n_blocks());
    EXPECT_TRUE(runner.faults().empty()) << runner.faults().front();
  }

  double now_s = 0;
  FakeRunner runner;
  EngineCore core;
  std::map<uint64_t, Reply> replies;
};

inline Request MakeRequest(uint64_t id, int n_prompt, int max_tokens) {
  Request request;
  request.id = id;
  for (int n = 0; n < n_prompt; ++n) {
    request.prompt.push_back(
        static_cast<int32_t>((static_cast<uint64_t>(n) * 7 + id * 3) % kVocab));
  }
  request.max_tokens = max_tokens;
  request.sampling.seed = id;
  return request;
}

inline Reply Solo(const Request& request) {
  Machine machine(HashLogits, MediaInfo());
  machine.Add(request);
  machine.StepUntilIdle();
  return machine.replies[request.id];
}

inline Request RandomRequest(uint64_t id, std::mt19937& random, int n_context) {
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  const int n_prompt = 1 + below(below(3) != 0 ? 20 : n_context - 1);
  Request request = MakeRequest(id, n_prompt, below(3) == 0 ? -1 : 1 + below(150));
  request.sampling.temperature = static_cast<float>(below(3)) * 0.7F;
  request.sampling.top_k = below(3) * 10;
  request.sampling.top_p = below(2) == 0 ? 1.0F : 0.8F;
  request.sampling.min_p = below(2) == 0 ? 0.0F : 0.05F;
  request.sampling.repetition_penalty = below(2) == 0 ? 1.0F : 1.3F;
  request.sampling.presence_penalty = below(2) == 0 ? 0.0F : 0.4F;
  if (below(3) == 0) {
    request.sampling.logit_bias = {{below(kVocab), 3.0F}};
  }
  if (below(4) == 0) {
    request.stop = {"ab", "q", "xyz"};
  }
  if (below(4) == 0) {
    request.end_tokens = {30};
  }
  if (below(3) == 0) {
    request.suppressed_tokens = {below(kVocab)};
  }
  return request;
}

/// Puts pictures and sound into the prompt, few enough that requests share them; what `info` does
/// not hold is left out.
inline void AddRandomMedia(const RunnerInfo& info, std::mt19937& random, Request* request) {
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int begin = below(20); begin < static_cast<int>(request->prompt.size());) {
    const int content = 1 + below(6);
    request->media.push_back(
        {begin,
         MakeItem(content, content * 9, content % 3 == 0 ? MediaKind::kAudio : MediaKind::kImage)});
    if (CheckRequest(*request, info).ok()) {
      begin = request->media.back().end();
    } else {
      request->media.pop_back();
    }
    begin += below(40);
  }
}

}  // namespace facet::testing
