// SPDX-License-Identifier: Apache-2.0
#include "engine/request_check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "engine/engine_core_testing.h"

namespace facet {
namespace {

/// What is said of a sound request after `change`; "" when nothing is.
std::string Check(const std::function<void(Request&)>& change) {
  Request request;
  request.prompt = {1, 2, 3};
  request.stop = {"\n"};
  request.end_tokens = {0};
  change(request);
  const Status status = CheckRequest(request, {.n_vocab = 100, .n_context = 8});
  return status.ok() ? "" : status.error().Message();
}

TEST(RequestCheck, AcceptsTheLimits) {
  EXPECT_EQ(Check([](Request&) {}), "");
  EXPECT_EQ(Check([](Request& r) { r.prompt.resize(7); }), "");
  EXPECT_EQ(Check([](Request& r) {
              r.max_tokens = 1;
              r.sampling = {.temperature = 0,
                            .top_k = 0,
                            .top_p = 1,
                            .min_p = 1,
                            .repetition_penalty = 10,
                            .presence_penalty = -2,
                            .frequency_penalty = 2,
                            .logit_bias = {{0, -100.0F}, {99, 100.0F}},
                            .seed = 1};
              r.stop.assign(64, std::string(4096, 'x'));
              r.suppressed_tokens = {99};
            }),
            "");
}

TEST(RequestCheck, RefusesPromptsAndLimits) {
  EXPECT_EQ(Check([](Request& r) { r.prompt.clear(); }), "prompt: no tokens, wanted at least 1");
  EXPECT_EQ(Check([](Request& r) { r.prompt.resize(8); }),
            "prompt: 8 tokens, wanted at most 7 (a context of 8 with room for a reply)");
  EXPECT_EQ(Check([](Request& r) { r.prompt[1] = 100; }), "prompt[1]: token 100, wanted 0 to 99");
  EXPECT_EQ(Check([](Request& r) { r.prompt[0] = -1; }), "prompt[0]: token -1, wanted 0 to 99");
  EXPECT_EQ(Check([](Request& r) {
              r.end_tokens = {0, 100};
            }),
            "end_tokens[1]: token 100, wanted 0 to 99");
  EXPECT_EQ(Check([](Request& r) { r.suppressed_tokens = {-5}; }),
            "suppressed_tokens[0]: token -5, wanted 0 to 99");
  EXPECT_EQ(Check([](Request& r) { r.max_tokens = 0; }),
            "max_tokens: 0, wanted at least 1, or -1 for no limit");
  EXPECT_EQ(Check([](Request& r) { r.max_tokens = -2; }),
            "max_tokens: -2, wanted at least 1, or -1 for no limit");
}

TEST(RequestCheck, RefusesSamplingValues) {
  EXPECT_EQ(Check([](Request& r) { r.sampling.temperature = -0.5F; }),
            "temperature: -0.5, wanted a number from 0 to 100");
  EXPECT_EQ(Check([](Request& r) { r.sampling.temperature = NAN; }),
            "temperature: nan, wanted a number from 0 to 100");
  EXPECT_EQ(Check([](Request& r) { r.sampling.temperature = INFINITY; }),
            "temperature: inf, wanted a number from 0 to 100");
  EXPECT_EQ(Check([](Request& r) { r.sampling.top_k = -1; }), "top_k: -1, wanted at least 0");
  EXPECT_EQ(Check([](Request& r) { r.sampling.top_p = 0; }),
            "top_p: 0, wanted a number above 0, at most 1");
  EXPECT_EQ(Check([](Request& r) { r.sampling.top_p = 1.5F; }),
            "top_p: 1.5, wanted a number above 0, at most 1");
  EXPECT_EQ(Check([](Request& r) { r.sampling.min_p = NAN; }),
            "min_p: nan, wanted a number from 0 to 1");
  EXPECT_EQ(Check([](Request& r) { r.sampling.repetition_penalty = 0; }),
            "repetition_penalty: 0, wanted a number above 0, at most 10");
  EXPECT_EQ(Check([](Request& r) { r.sampling.presence_penalty = 2.5F; }),
            "presence_penalty: 2.5, wanted a number from -2 to 2");
  EXPECT_EQ(Check([](Request& r) { r.sampling.frequency_penalty = -2.5F; }),
            "frequency_penalty: -2.5, wanted a number from -2 to 2");
  EXPECT_EQ(Check([](Request& r) {
              r.sampling.logit_bias = {{3, 0.0F}, {4, 101.0F}};
            }),
            "logit_bias[1]: 101, wanted a number from -100 to 100");
  EXPECT_EQ(Check([](Request& r) {
              r.sampling.logit_bias = {{100, 0.0F}};
            }),
            "logit_bias[0]: token 100, wanted 0 to 99");
}

TEST(RequestCheck, RefusesStopTexts) {
  EXPECT_EQ(Check([](Request& r) { r.stop.assign(65, "x"); }), "stop: 65 texts, wanted at most 64");
  EXPECT_EQ(Check([](Request& r) { r.stop = {"x", ""}; }), "stop[1]: 0 bytes, wanted 1 to 4096");
  EXPECT_EQ(Check([](Request& r) { r.stop = {std::string(4097, 'x')}; }),
            "stop[0]: 4097 bytes, wanted 1 to 4096");
}

TEST(FinishReason, Names) {
  EXPECT_EQ(NameOf(FinishReason::kEndToken), "stop");
  EXPECT_EQ(NameOf(FinishReason::kStopString), "stop");
  EXPECT_EQ(NameOf(FinishReason::kMaxTokens), "length");
  EXPECT_EQ(NameOf(FinishReason::kContext), "length");
  EXPECT_EQ(NameOf(FinishReason::kRepetition), "repetition");
  EXPECT_EQ(NameOf(FinishReason::kCancelled), "cancelled");
  EXPECT_EQ(NameOf(FinishReason::kError), "error");
}

TEST(SpecMode, Names) {
  EXPECT_EQ(FindSpecMode("off"), SpecMode::kOff);
  EXPECT_EQ(FindSpecMode("ngram"), SpecMode::kNgram);
  EXPECT_EQ(FindSpecMode("mtp"), SpecMode::kMtp);
  EXPECT_EQ(FindSpecMode("auto"), SpecMode::kAuto);
  EXPECT_EQ(FindSpecMode("on"), std::nullopt);
  EXPECT_EQ(FindSpecMode(""), std::nullopt);
}

TEST(CheckRequest, MediaMustFitTheModelAndThePrompt) {
  RunnerInfo info = testing::MediaInfo(500, 3);
  info.sliding_window = 48;
  const auto message = [&info](const std::vector<PlacedMedia>& media) {
    Request request;
    request.prompt.assign(200, 1);
    request.media = media;
    const Status status = CheckRequest(request, info);
    return status.ok() ? std::string("fine") : status.error().Message();
  };
  const auto picture = [](int n_tokens) { return testing::MakeItem(1, n_tokens); };
  const auto sound = [](int n_tokens) { return testing::MakeItem(1, n_tokens, MediaKind::kAudio); };
  EXPECT_EQ(message({{0, picture(96)}, {96, sound(100)}, {196, picture(4)}}), "fine");
  EXPECT_EQ(message({{0, picture(97)}}),
            "media[0]: a picture of 97 tokens, wanted one that 3 blocks of 32 positions hold with "
            "the window before it");
  EXPECT_EQ(message({{64, picture(64)}}),
            "media[0]: a picture of 64 tokens, wanted one that 3 blocks of 32 positions hold with "
            "the window before it");
  EXPECT_EQ(message({{0, sound(200)}}), "fine") << "sound is cut where need be";
  EXPECT_EQ(message({{0, sound(201)}}),
            "media[0]: 201 tokens at 0, wanted positions from 0 to 200");
  EXPECT_EQ(message({{0, sound(10)}, {9, sound(10)}}),
            "media[1]: 10 tokens at 9, wanted positions from 10 to 200");
  EXPECT_EQ(message({{-1, sound(10)}}),
            "media[0]: 10 tokens at -1, wanted positions from 0 to 200");
  info.media.sees = false;
  EXPECT_EQ(message({{0, picture(4)}}),
            "media[0]: a picture, wanted what the model has an encoder for");
  info.media.hears = false;
  EXPECT_EQ(message({{0, sound(4)}}), "media[0]: sound, wanted what the model has an encoder for");
}

TEST(CheckRequest, ThoughtsLogprobsAndSalts) {
  const auto message = [](const std::function<void(Request&)>& change) {
    Request request;
    request.prompt = {1};
    change(request);
    const Status status = CheckRequest(request, {.n_vocab = 10, .n_context = 100});
    return status.ok() ? std::string("fine") : status.error().Message();
  };
  EXPECT_EQ(message([](Request& r) { r.thought = {3, 4, true, 0}; }), "fine");
  EXPECT_EQ(message([](Request& r) { r.thought.max_tokens = 5; }),
            "thinking budget: 5, wanted none: the vocabulary has no marks of thoughts");
  EXPECT_EQ(message([](Request& r) {
              r.thought = {3, 10, true, 0};
            }),
            "thought[1]: token 10, wanted 0 to 9");
  EXPECT_EQ(message([](Request& r) {
              r.thought = {3, 4, true, -2};
            }),
            "thinking budget: -2, wanted at least 0, or -1 for no limit");
  EXPECT_EQ(message([](Request& r) { r.n_top_logprobs = 10; }), "fine");
  EXPECT_EQ(message([](Request& r) { r.n_top_logprobs = 11; }), "top_logprobs: 11, wanted 0 to 10");
  EXPECT_EQ(message([](Request& r) { r.cache_salt = std::string(513, 'a'); }),
            "cache_salt: 513 bytes, wanted at most 512");
}

}  // namespace
}  // namespace facet
