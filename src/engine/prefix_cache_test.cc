// SPDX-License-Identifier: Apache-2.0
#include "engine/prefix_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "engine/engine_core_testing.h"

namespace facet {
namespace {

using testing::AddRandomMedia;
using testing::HashLogits;
using testing::Info;
using testing::kVocab;
using testing::Machine;
using testing::MakeItem;
using testing::MakeRequest;
using testing::MediaInfo;
using testing::RandomRequest;
using testing::Reply;
using testing::Solo;

EngineOptions Options() {
  EngineOptions options = testing::Options();
  options.reuses_prefixes = true;
  return options;
}

/// What the client of `request` sends next: its conversation and a new message.
Request NextTurn(uint64_t id, const Request& request, const Reply& reply, int n_new) {
  Request next = request;
  next.id = id;
  next.prompt.insert(next.prompt.end(), reply.tokens.begin(), reply.tokens.end());
  for (int n = 0; n < n_new; ++n) {
    next.prompt.push_back(static_cast<int32_t>((id * 5 + static_cast<uint64_t>(n) * 11) % kVocab));
  }
  return next;
}

TEST(PrefixCache, TheSamePromptAgainIsAllButOneToken) {
  Machine machine(HashLogits, Info(), Options());
  uint64_t id = 0;
  for (const int n_prompt : {31, 32, 33, 64, 100, 500}) {
    Request request = MakeRequest(++id, n_prompt, 20);
    machine.Add(request);
    while (machine.core.has_work()) {
      machine.Step();
    }
    EXPECT_EQ(machine.replies[request.id].finished->stats.n_cached, 0);
    Request again = request;
    again.id += 1000;
    machine.Add(again);
    while (machine.core.has_work()) {
      machine.Step();
    }
    EXPECT_EQ(machine.replies[again.id].finished->stats.n_cached, n_prompt - 1);
    EXPECT_EQ(machine.replies[again.id], machine.replies[request.id]);
    EXPECT_EQ(machine.replies[again.id], Solo(request));
  }
  machine.ExpectClean();
}

TEST(PrefixCache, AConversationGoesOnWhereItWas) {
  Machine machine(HashLogits, Info(), Options());
  Request request = MakeRequest(1, 200, 50);
  for (uint64_t turn = 2; turn < 8; ++turn) {
    machine.Add(request);
    while (machine.core.has_work()) {
      machine.Step();
    }
    const Reply& reply = machine.replies[request.id];
    EXPECT_EQ(reply, Solo(request));
    Request next = NextTurn(turn, request, reply, 30);
    if (turn > 2) {
      // The reply's last token was drawn and never computed.
      EXPECT_EQ(reply.finished->stats.n_cached, static_cast<int>(request.prompt.size()) - 31);
    }
    request = std::move(next);
  }
  machine.ExpectClean();
}

TEST(PrefixCache, AnEditedAnswerCostsNoMoreThanItself) {
  Machine machine(HashLogits, Info(), Options());
  Request request = MakeRequest(1, 700, 60);
  machine.Add(request);
  while (machine.core.has_work()) {
    machine.Step();
  }
  Request edited = NextTurn(2, request, machine.replies[1], 10);
  edited.prompt[720] = (edited.prompt[720] + 1) % kVocab;
  machine.Add(edited);
  machine.StepUntilIdle();
  EXPECT_EQ(machine.replies[2].finished->stats.n_cached, 720);
  EXPECT_EQ(machine.replies[2], Solo(edited));
}

TEST(PrefixCache, APictureIsFoundByItsContentAndNeverCut) {
  Machine machine(HashLogits, MediaInfo(), Options());
  const auto cached = [&](uint64_t id, std::vector<PlacedMedia> media) {
    Request request = MakeRequest(1, 300, 5);
    request.id = id;
    request.media = std::move(media);
    machine.Add(request);
    while (machine.core.has_work()) {
      machine.Step();
    }
    EXPECT_EQ(machine.replies[id], Solo(request)) << id;
    return machine.replies[id].finished->stats.n_cached;
  };
  const MediaItemPtr picture = MakeItem(1, 100);
  EXPECT_EQ(cached(1, {{70, picture}}), 0);
  EXPECT_EQ(cached(2, {{70, picture}}), 299);
  EXPECT_EQ(cached(3, {{70, MakeItem(1, 100)}}), 299) << "an equal one";
  EXPECT_EQ(cached(4, {{70, MakeItem(2, 100)}}), 70) << "up to another";
  EXPECT_EQ(cached(5, {}), 70) << "text is no picture";
  EXPECT_EQ(cached(6, {{70, picture}, {200, MakeItem(2, 100)}}), 200) << "past the first";
  EXPECT_EQ(cached(7, {{70, picture}, {200, MakeItem(2, 100)}}), 200)
      << "one token is left to be computed, and its picture with it";
  EXPECT_EQ(cached(8, {{70, MakeItem(1, 100, MediaKind::kAudio)}}), 70);
  machine.ExpectClean();
}

TEST(PrefixCache, SaltsKeepTenantsApartAndRequestsMayStayOut) {
  Machine machine(HashLogits, Info(), Options());
  const auto cached = [&](uint64_t id, const std::string& salt, bool reuses) {
    Request request = MakeRequest(1, 100, 5);
    request.id = id;
    request.cache_salt = salt;
    request.reuses_prefix = reuses;
    machine.Add(request);
    while (machine.core.has_work()) {
      machine.Step();
    }
    return machine.replies[id].finished->stats.n_cached;
  };
  EXPECT_EQ(cached(1, "", false), 0);
  EXPECT_EQ(cached(2, "", true), 0) << "the first left nothing";
  EXPECT_EQ(cached(3, "", false), 0) << "and this one takes nothing";
  EXPECT_EQ(cached(4, "a", true), 0);
  EXPECT_EQ(cached(5, "b", true), 0);
  EXPECT_EQ(cached(6, "a", true), 99);
  EXPECT_EQ(cached(7, "", true), 99);
  machine.ExpectClean();
}

TEST(PrefixCache, WhatComesTogetherIsComputedOnce) {
  Machine machine(HashLogits, Info(), Options());
  std::vector<Request> requests;
  for (uint64_t id = 1; id <= 8; ++id) {
    Request request = MakeRequest(1, 320, 20);  // the same 320 tokens
    request.id = id;
    request.prompt.push_back(static_cast<int32_t>(id));
    request.sampling.seed = id;
    requests.push_back(request);
    machine.Add(request);
  }
  machine.StepUntilIdle();
  EXPECT_EQ(machine.core.counters().n_rows, 320 + 8 * 20);
  for (const Request& request : requests) {
    EXPECT_EQ(machine.replies[request.id], Solo(request));
  }
}

TEST(PrefixCache, APreemptedSequenceComesBackCheaply) {
  Machine machine(HashLogits, Info(2000, 12), Options());
  Machine without(HashLogits, Info(2000, 12));
  for (uint64_t id = 1; id <= 4; ++id) {
    machine.Add(MakeRequest(id, 20, 200));
    without.Add(MakeRequest(id, 20, 200));
  }
  machine.StepUntilIdle();
  without.StepUntilIdle();
  EXPECT_GT(machine.core.counters().n_preempted, 0);
  EXPECT_LT(machine.core.counters().n_rows, without.core.counters().n_rows);
  int n_preempted = 0;
  for (uint64_t id = 1; id <= 4; ++id) {
    EXPECT_EQ(machine.replies[id], Solo(MakeRequest(id, 20, 200)));
    n_preempted += machine.replies[id].finished->stats.n_preempted;
  }
  EXPECT_EQ(n_preempted, machine.core.counters().n_preempted);
}

/// Many conversations that share beginnings, in pools that are too small for them.
class RandomConversations {
 public:
  explicit RandomConversations(unsigned seed) : seed_(seed), random_(seed) {
    options_ = Options();
    options_.max_rows = 1 + Below(90);
    options_.max_rows_beside = 1 + Below(40);
    options_.max_sequences = 1 + Below(8);
    info_ = MediaInfo(300, 6 + Below(30));
    info_.sliding_window = Below(3) == 0 ? 0 : 1 + Below(100);
    info_.n_sliding_blocks = 4 + Below(20);
    machine_ = std::make_unique<Machine>(HashLogits, info_, options_);
  }

  void Play() {
    constexpr size_t kRequests = 30;
    for (int step = 0; requests_.size() < kRequests || machine_->core.has_work(); ++step) {
      ASSERT_LT(step, 100000) << "no end";
      if (requests_.size() < kRequests && Below(4) == 0) {
        AddOne();
      }
      if (!requests_.empty() && Below(60) == 0) {
        const uint64_t id = 1 + static_cast<uint64_t>(Below(static_cast<int>(requests_.size())));
        if (!machine_->replies[id].finished) {
          cancelled_.insert(id);
          machine_->core.Cancel(id);
        }
      }
      machine_->Step();
    }
    machine_->ExpectClean();
  }

  void ExpectSoloReplies() const {
    EngineOptions options = options_;
    options.reuses_prefixes = false;
    for (const auto& [id, request] : requests_) {
      Machine alone(HashLogits, info_, options);
      alone.Add(request);
      alone.StepUntilIdle();
      if (!cancelled_.contains(id)) {
        EXPECT_EQ(machine_->replies[id], alone.replies[id])
            << "seed " << seed_ << " request " << id;
      }
    }
  }

  int n_cached() const {
    int n = 0;
    for (const auto& [id, reply] : machine_->replies) {
      n += reply.finished->stats.n_cached;
    }
    return n;
  }
  int64_t n_preempted() const { return machine_->core.counters().n_preempted; }

 private:
  int Below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }

  void AddOne() {
    const uint64_t id = requests_.size() + 1;
    const auto n_most = static_cast<size_t>(machine_->core.info().n_context - 1);
    Request request = RandomRequest(id, random_, machine_->core.info().n_context);
    const RunnerInfo& info = machine_->core.info();
    if (Below(3) == 0) {
      AddRandomMedia(info, random_, &request);
    }
    if (!requests_.empty() && Below(4) != 0) {
      // Goes on from an earlier one, or from somewhere inside it.
      const uint64_t from = 1 + static_cast<uint64_t>(Below(static_cast<int>(requests_.size())));
      std::vector<int32_t> prompt =
          NextTurn(id, requests_.at(from), machine_->replies[from], 1 + Below(20)).prompt;
      if (Below(3) == 0) {
        prompt[static_cast<size_t>(Below(static_cast<int>(prompt.size())))] = Below(kVocab);
      }
      prompt.resize(std::min(prompt.size(), n_most));
      request.prompt = std::move(prompt);
      request.media = requests_.at(from).media;
      while (!CheckRequest(request, info).ok()) {  // what the end of the prompt cuts off
        request.media.pop_back();
      }
    }
    request.cache_salt = Below(8) == 0 ? "other" : "";
    request.reuses_prefix = Below(8) != 0;
    machine_->Add(request);
    requests_.emplace(id, std::move(request));
  }

  unsigned seed_;
  std::mt19937 random_;
  EngineOptions options_;
  RunnerInfo info_;
  std::unique_ptr<Machine> machine_;
  std::map<uint64_t, Request> requests_;
  std::set<uint64_t> cancelled_;
};

TEST(PrefixCache, RandomConversationsEqualTheirRepliesWithoutReuse) {
  int64_t n_preempted = 0;
  int n_cached = 0;
  for (unsigned seed = 1; seed <= 120; ++seed) {
    RandomConversations conversations(seed);
    conversations.Play();
    conversations.ExpectSoloReplies();
    n_preempted += conversations.n_preempted();
    n_cached += conversations.n_cached();
  }
  EXPECT_GT(n_preempted, 50);
  EXPECT_GT(n_cached, 10000);
}

}  // namespace
}  // namespace facet
