// SPDX-License-Identifier: Apache-2.0
// What the prefix tree gives back is what would have been computed: replies with reuse equal
// replies without, to the bit of every log probability, on models of every shape.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engine/engine_core.h"
#include "model/model.h"
#include "support/testing.h"

namespace facet::testing {
namespace {

struct Case {
  std::string file;
  KvType kv_type;
};

/// Tokens and the bits of their log probabilities.
using Reply = std::vector<std::pair<int32_t, uint32_t>>;

class Machine {
 public:
  Machine(const Checkpoint& checkpoint, KvType kv_type, bool reuses_prefixes) {
    RunnerOptions options;
    options.n_context = std::min(512, checkpoint.config().n_context);
    options.n_sequences = 3;
    options.n_threads = 1;
    options.kv_type = kv_type;
    auto runner = MakeRunner(checkpoint, options);
    if (!runner.ok()) {
      ADD_FAILURE() << runner.error().Message();
      return;
    }
    runner_ = *std::move(runner);
    EngineOptions engine;
    engine.max_rows = 48;
    engine.max_rows_beside = 20;
    engine.max_sequences = 3;
    engine.reuses_prefixes = reuses_prefixes;
    engine.token_bytes = [](int32_t) { return std::string_view("x"); };
    core_ = std::make_unique<EngineCore>(runner_.get(), engine, [] { return 0.0; });
  }

  void Add(const Request& request) {
    const Status status = core_->Add(request, 0);
    ASSERT_TRUE(status.ok()) << status.error().Message();
  }

  void Run() {
    while (core_->has_work()) {
      for (const Event& event : core_->Step()) {
        if (event.kind == Event::Kind::kToken) {
          replies[event.request_id].emplace_back(event.token,
                                                 std::bit_cast<uint32_t>(event.logprob.logprob));
        } else {
          EXPECT_EQ(event.reason, FinishReason::kMaxTokens) << event.error;
          n_cached += event.stats.n_cached;
        }
      }
    }
  }

  std::map<uint64_t, Reply> replies;
  int n_cached = 0;

 private:
  std::unique_ptr<Runner> runner_;
  std::unique_ptr<EngineCore> core_;
};

class Prefixes : public ::testing::TestWithParam<Case> {};

TEST_P(Prefixes, AreTheSameBits) {
  const auto checkpoint = Checkpoint::Open(SourcePath(GetParam().file));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().Message();
  const int n_vocab = checkpoint->config().n_vocab;
  std::mt19937 random(7);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };

  Machine with(*checkpoint, GetParam().kv_type, true);
  std::vector<Request> requests;
  for (uint64_t round = 0; round < 5; ++round) {
    for (int n = 0; n < 3; ++n) {
      Request request;
      request.id = requests.size() + 1;
      if (!requests.empty() && below(4) != 0) {
        const Request& from =
            requests[static_cast<size_t>(below(static_cast<int>(requests.size())))];
        request.prompt = from.prompt;
        for (const auto& [token, bits] : with.replies[from.id]) {
          request.prompt.push_back(token);
        }
        request.prompt.resize(1 +
                              static_cast<size_t>(below(static_cast<int>(request.prompt.size()))));
      }
      const int n_new = 1 + below(70);
      for (int i = 0; i < n_new; ++i) {
        request.prompt.push_back(below(n_vocab));
      }
      request.prompt.resize(std::min<size_t>(request.prompt.size(), 400));
      request.max_tokens = 1 + below(24);
      request.sampling.temperature = 1.5F;
      request.sampling.seed = request.id;
      request.stops_on_repetition = false;
      request.n_top_logprobs = 0;
      with.Add(request);
      requests.push_back(std::move(request));
    }
    with.Run();
  }
  EXPECT_GT(with.n_cached, 100);

  for (const Request& request : requests) {
    Machine alone(*checkpoint, GetParam().kv_type, false);
    alone.Add(request);
    alone.Run();
    EXPECT_EQ(with.replies[request.id], alone.replies[request.id]) << "request " << request.id;
  }
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  std::vector<std::string> files = {"models/tiny/facet-tiny.gguf"};
  for (const auto& entry : std::filesystem::directory_iterator(TestdataPath("text/gguf"))) {
    const std::string name = entry.path().filename();
    if (name.ends_with(".gguf") && name.find("assistant") == std::string::npos) {
      files.push_back("testdata/text/gguf/" + name);
    }
  }
  std::sort(files.begin(), files.end());
  for (const std::string& file : files) {
    cases.push_back({file, KvType::kF16});
  }
  for (const KvType type : {KvType::kF32, KvType::kBf16, KvType::kQ8_0}) {
    cases.push_back({"models/tiny/facet-tiny.gguf", type});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Files, Prefixes, ::testing::ValuesIn(Cases()));

}  // namespace
}  // namespace facet::testing
