// SPDX-License-Identifier: Apache-2.0
#include "engine/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <string>

#include "base/random.h"
#include "support/testing.h"

namespace facet {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

const SamplingParams& Plain() {
  static const SamplingParams params = [] {
    SamplingParams plain;
    plain.top_k = 0;
    plain.top_p = 1;
    return plain;
  }();
  return params;
}

std::vector<int32_t> Tokens(const Json& json) {
  std::vector<int32_t> tokens;
  for (const Json& item : json.items()) {
    tokens.push_back(static_cast<int32_t>(item.as_int()));
  }
  return tokens;
}

std::vector<float> Floats(const Json& json) {
  std::vector<float> values;
  for (const Json& item : json.items()) {
    values.push_back(static_cast<float>(item.as_double()));
  }
  return values;
}

SamplingParams ParamsOf(const Json& json) {
  SamplingParams params = Plain();
  const auto number = [&](const char* key, float otherwise) {
    return static_cast<float>(json[key].as_double(static_cast<double>(otherwise)));
  };
  params.temperature = number("temperature", 1);
  params.top_k = static_cast<int>(json["top_k"].as_int());
  params.top_p = number("top_p", 1);
  params.min_p = number("min_p", 0);
  params.repetition_penalty = number("repetition_penalty", 1);
  params.presence_penalty = number("presence_penalty", 0);
  params.frequency_penalty = number("frequency_penalty", 0);
  for (const auto& [token, bias] : json["logit_bias"].members()) {
    params.logit_bias.emplace_back(std::stoi(token), static_cast<float>(bias.as_double()));
  }
  return params;
}

Sampler MakeSampler(const Json& sample, const SamplingParams& params) {
  Sampler sampler(params, {}, Tokens(sample["prompt"]));
  for (const int32_t token : Tokens(sample["generated"])) {
    sampler.Accept(token);
  }
  return sampler;
}

const std::map<std::string, SamplingStep>& Steps() {
  static const std::map<std::string, SamplingStep> steps{
      {"logits", SamplingStep::kLogits},
      {"logit_bias", SamplingStep::kLogitBias},
      {"repetition_penalty", SamplingStep::kRepetitionPenalty},
      {"presence_frequency", SamplingStep::kPresenceFrequency},
      {"temperature", SamplingStep::kTemperature},
      {"greedy", SamplingStep::kTemperature},
      {"top_k", SamplingStep::kTopK},
      {"top_p", SamplingStep::kTopP},
      {"min_p", SamplingStep::kMinP}};
  return steps;
}

TEST(Sampler, EveryStepOfEveryCaseAgreesWithTheReference) {
  const Json cases = testing::JsonOrDie(testing::TestdataPath("sampling/sampling_cases.json"));
  size_t n_stages = 0;
  for (const Json& sample : cases.items()) {
    const std::vector<float> logits = Floats(sample["logits"]);
    const SamplingParams params = ParamsOf(sample["params"]);
    for (const Json& stage : sample["stages"].items()) {
      SCOPED_TRACE(sample["id"].as_string() + " after " + stage["after"].as_string());
      Sampler sampler = MakeSampler(sample, UpTo(params, Steps().at(stage["after"].as_string())));
      const auto found = sampler.Distribution(logits);
      ASSERT_TRUE(found.ok());
      ASSERT_EQ(found->size(), stage["probs"].items().size());
      for (size_t token = 0; token < found->size(); ++token) {
        const double wanted = stage["probs"].items()[token].as_double();
        EXPECT_NEAR((*found)[token], wanted, 1e-5) << token;
        if (wanted == 0) {
          // The reference rounds tiny probabilities to 0 too; a removed one is exactly 0 with us.
          EXPECT_LT((*found)[token], 1e-9) << token;
        }
      }
      ++n_stages;
    }
    // The last stage is what is drawn from: a removed token has exactly 0.
    Sampler sampler = MakeSampler(sample, params);
    const auto last = sampler.Distribution(logits);
    const bool is_filtered =
        params.top_k > 0 || params.top_p < 1 || params.min_p > 0 || params.temperature == 0;
    for (size_t token = 0; is_filtered && token < logits.size(); ++token) {
      const double wanted = sample["stages"].items().back()["probs"].items()[token].as_double();
      EXPECT_EQ((*last)[token] == 0, wanted == 0) << sample["id"].as_string() << " token " << token;
    }
  }
  EXPECT_EQ(cases.items().size(), 67U);
  EXPECT_GT(n_stages, 130U);
}

/// The definition, in the plainest form: all tokens sorted, filters one after the other.
int32_t DrawSlowly(const std::vector<float>& logits, const SamplingParams& params, double uniform) {
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto score = [&](int32_t token) { return logits[static_cast<size_t>(token)]; };
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return score(a) > score(b); });
  if (params.top_k > 0 && static_cast<size_t>(params.top_k) < order.size()) {
    const float border = score(order[static_cast<size_t>(params.top_k) - 1]);
    std::erase_if(order, [&](int32_t token) { return score(token) < border; });
  }
  std::vector<double> weights;
  for (const int32_t token : order) {
    weights.push_back(
        std::exp((double{score(token)} - double{score(order[0])}) / double{params.temperature}));
  }
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  size_t n_kept = 0;
  double sum = 0;
  while (n_kept < order.size() &&
         (n_kept == 0 || (sum < double{params.top_p} * total || params.top_p == 1))) {
    if (n_kept > 0 && weights[n_kept] < double{params.min_p}) {
      break;
    }
    sum += weights[n_kept++];
  }
  double reached = 0;
  for (size_t n = 0; n < n_kept; ++n) {
    reached += weights[n];
    if (reached > uniform * sum) {
      return order[n];
    }
  }
  return order[n_kept - 1];
}

TEST(Sampler, DrawsTheInverseDistributionAtTheUniformOfSeedAndPosition) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal(0, 3);
  const std::vector<SamplingParams> variants = [] {
    std::vector<SamplingParams> all;
    for (const int top_k : {0, 1, 7, 64, 5000}) {
      for (const float top_p : {1.0F, 0.95F, 0.3F}) {
        for (const float min_p : {0.0F, 0.02F}) {
          for (const float temperature : {0.3F, 1.0F, 30.0F}) {
            SamplingParams params;
            params.temperature = temperature;
            params.top_k = top_k;
            params.top_p = top_p;
            params.min_p = min_p;
            params.seed = 99;
            all.push_back(params);
          }
        }
      }
    }
    return all;
  }();
  for (const size_t n_vocab : {size_t{1}, size_t{50}, size_t{3000}, size_t{20000}}) {
    std::vector<float> logits(n_vocab);
    for (float& logit : logits) {
      logit = std::round(normal(random) * 64) / 64;  // with ties
    }
    for (const SamplingParams& params : variants) {
      Sampler sampler(params, {}, {});
      for (const int position : {0, 1, 77}) {
        const double uniform = RandomUniform(99, static_cast<uint64_t>(position));
        const auto token = sampler.Draw(logits, position);
        ASSERT_TRUE(token.ok());
        ASSERT_EQ(*token, DrawSlowly(logits, params, uniform))
            << n_vocab << " k " << params.top_k << " p " << params.top_p << " m " << params.min_p
            << " T " << params.temperature << " at " << position;
      }
    }
  }
}

TEST(Sampler, DrawsAsOftenAsProbable) {
  const std::vector<float> logits{0, 1, 2, 3, -1};
  Sampler sampler(Plain(), {}, {});
  const auto wanted = sampler.Distribution(logits);
  std::vector<int> counts(logits.size());
  constexpr int kDraws = 40000;
  for (int position = 0; position < kDraws; ++position) {
    ++counts[static_cast<size_t>(*sampler.Draw(logits, position))];
  }
  for (size_t token = 0; token < logits.size(); ++token) {
    EXPECT_NEAR(counts[token] / double{kDraws}, (*wanted)[token], 0.01) << token;
  }
}

TEST(Sampler, TheSameSeedAndPositionDrawTheSame) {
  std::vector<float> logits(1000);
  for (size_t token = 0; token < logits.size(); ++token) {
    logits[token] = static_cast<float>(RandomUniform(3, token) * 4);
  }
  SamplingParams params = Plain();
  params.seed = 7;
  Sampler a(params, {}, {});
  Sampler b(params, {}, {});
  params.seed = 8;
  Sampler other(params, {}, {});
  int n_different = 0;
  EXPECT_TRUE(a.Draw(logits, 1000).ok());  // what was drawn before does not matter
  for (int position = 0; position < 100; ++position) {
    const int32_t token = *a.Draw(logits, position);
    EXPECT_EQ(token, *b.Draw(logits, position));
    n_different += token != *other.Draw(logits, position) ? 1 : 0;
  }
  EXPECT_GT(n_different, 90);
}

TEST(Sampler, SuppressedTokensAreNeverDrawn) {
  SamplingParams params = Plain();
  params.temperature = 0;
  params.logit_bias = {{2, 100.0F}};
  Sampler greedy(params, {2}, {});
  EXPECT_EQ(*greedy.Draw(std::vector<float>{1, 3, 9}, 0), 1) << "the runner-up, whatever the bias";
  params.temperature = 100;
  params.repetition_penalty = 0.1F;
  Sampler hot(params, {2, 0}, std::vector<int32_t>{2});
  hot.Accept(2);
  for (int position = 0; position < 200; ++position) {
    EXPECT_EQ(*hot.Draw(std::vector<float>{1, 3, 9}, position), 1);
  }
}

TEST(Sampler, UnsoundLogitsAreAnError) {
  for (const float temperature : {0.0F, 1.0F}) {
    SamplingParams params;
    params.temperature = temperature;
    Sampler sampler(params, {0}, {});
    const float nan = std::numeric_limits<float>::quiet_NaN();
    EXPECT_EQ(sampler.Draw(std::vector<float>{0, 1, nan}, 0).error().Message(),
              "logits: nan at token 2, wanted finite numbers");
    EXPECT_EQ(sampler.Draw(std::vector<float>{0, kInfinity, 1}, 0).error().Message(),
              "logits: inf at token 1, wanted finite numbers");
    EXPECT_EQ(sampler.Draw(std::vector<float>{5, -kInfinity, -kInfinity}, 0).error().Message(),
              "logits: no token that can be drawn, wanted at least 1");
    EXPECT_EQ(*sampler.Draw(std::vector<float>{5, -kInfinity, 1}, 0), 2)
        << "-infinity is a masked token";
  }
}

TEST(Sampler, ExtremesStayFinite) {
  constexpr float kLargest = std::numeric_limits<float>::max();
  SamplingParams params = Plain();
  params.repetition_penalty = 1e-30F;
  params.temperature = 1e-40F;
  Sampler sampler(params, {}, std::vector<int32_t>{0, 1});
  EXPECT_EQ(*sampler.Draw(std::vector<float>{kLargest, -kLargest, 3}, 0), 0);
  EXPECT_EQ(*sampler.Draw(std::vector<float>{-kLargest, -kLargest, kLargest}, 0), 2);
  const auto probabilities = sampler.Distribution(std::vector<float>{1, 2, 3});
  EXPECT_EQ(std::accumulate(probabilities->begin(), probabilities->end(), 0.0), 1);
}

}  // namespace
}  // namespace facet
