// SPDX-License-Identifier: Apache-2.0
#include "engine/request_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "base/check.h"
#include "kv/plan.h"

namespace facet {

namespace {

Status CheckRange(const char* name, float value, float least, float most) {
  if (!(value >= least && value <= most)) {
    return Refuse(name, fmt::format("{}", value),
                  fmt::format("a number from {} to {}", least, most));
  }
  return {};
}

/// Above 0, unlike CheckRange's closed range.
Status CheckPositive(const char* name, float value, float most) {
  if (!(value > 0 && value <= most)) {
    return Refuse(name, fmt::format("{}", value),
                  fmt::format("a number above 0, at most {}", most));
  }
  return {};
}

Status CheckToken(const char* name, size_t index, int32_t token, int n_vocab) {
  if (token < 0 || token >= n_vocab) {
    return Refuse(fmt::format("{}[{}]", name, index), fmt::format("token {}", token),
                  fmt::format("0 to {}", n_vocab - 1));
  }
  return {};
}

Status CheckTokens(const char* name, std::span<const int32_t> tokens, int n_vocab) {
  for (size_t n = 0; n < tokens.size(); ++n) {
    FACET_RETURN_IF_ERROR(CheckToken(name, n, tokens[n], n_vocab));
  }
  return {};
}

Status CheckSampling(const SamplingParams& sampling, int n_vocab) {
  FACET_RETURN_IF_ERROR(CheckRange("temperature", sampling.temperature, 0, 100));
  if (sampling.top_k < 0) {
    return Refuse("top_k", fmt::format("{}", sampling.top_k), "at least 0");
  }
  FACET_RETURN_IF_ERROR(CheckPositive("top_p", sampling.top_p, 1));
  FACET_RETURN_IF_ERROR(CheckRange("min_p", sampling.min_p, 0, 1));
  FACET_RETURN_IF_ERROR(CheckPositive("repetition_penalty", sampling.repetition_penalty, 10));
  FACET_RETURN_IF_ERROR(CheckRange("presence_penalty", sampling.presence_penalty, -2, 2));
  FACET_RETURN_IF_ERROR(CheckRange("frequency_penalty", sampling.frequency_penalty, -2, 2));
  for (size_t n = 0; n < sampling.logit_bias.size(); ++n) {
    const auto& [token, bias] = sampling.logit_bias[n];
    FACET_RETURN_IF_ERROR(CheckToken("logit_bias", n, token, n_vocab));
    FACET_RETURN_IF_ERROR(CheckRange(fmt::format("logit_bias[{}]", n).c_str(), bias, -100, 100));
  }
  return {};
}

Status CheckStops(std::span<const std::string> stops) {
  if (stops.size() > kMaxStopTexts) {
    return Refuse("stop", fmt::format("{} texts", stops.size()),
                  fmt::format("at most {}", kMaxStopTexts));
  }
  for (size_t n = 0; n < stops.size(); ++n) {
    if (stops[n].empty() || stops[n].size() > kMaxStopBytes) {
      return Refuse(fmt::format("stop[{}]", n), fmt::format("{} bytes", stops[n].size()),
                    fmt::format("1 to {}", kMaxStopBytes));
    }
  }
  return {};
}

Status CheckThought(const ThoughtLimit& thought, int n_vocab) {
  if (thought.open < 0) {
    return thought.max_tokens < 0 ? Status()
                                  : Refuse("thinking budget", fmt::format("{}", thought.max_tokens),
                                           "none: the vocabulary has no marks of thoughts");
  }
  FACET_RETURN_IF_ERROR(CheckTokens("thought", std::array{thought.open, thought.close}, n_vocab));
  return thought.max_tokens >= -1 ? Status()
                                  : Refuse("thinking budget", fmt::format("{}", thought.max_tokens),
                                           "at least 0, or -1 for no limit");
}

/// Whether the model takes the item, and its place is one of the prompt's.
Status CheckItem(const std::string& where, const PlacedMedia& placed, int least_begin,
                 const Request& request, const RunnerInfo& info) {
  const bool is_sound = placed.item->kind == MediaKind::kAudio;
  if (!(is_sound ? info.media.hears : info.media.sees)) {
    return Refuse(where, is_sound ? "sound" : "a picture", "what the model has an encoder for");
  }
  const auto n_prompt = static_cast<int>(request.prompt.size());
  const int n_tokens = placed.item->n_tokens;
  if (n_tokens < 1 || placed.begin < least_begin || placed.begin > n_prompt - n_tokens) {
    return Refuse(where, fmt::format("{} tokens at {}", n_tokens, placed.begin),
                  fmt::format("positions from {} to {}", least_begin, n_prompt));
  }
  // A picture is computed in one step, beside what its first row sees.
  const int n_passed = FirstVisible(placed.begin, info.sliding_window) / kBlockPositions;
  if (!is_sound && info.sliding_window > 0 &&
      BlocksFor(placed.end()) - n_passed > info.n_sliding_blocks) {
    return Refuse(where, fmt::format("a picture of {} tokens", n_tokens),
                  fmt::format("one that {} blocks of {} positions hold with the window before it",
                              info.n_sliding_blocks, kBlockPositions));
  }
  return {};
}

Status CheckMedia(const Request& request, const RunnerInfo& info) {
  int least_begin = 0;
  for (size_t n = 0; n < request.media.size(); ++n) {
    const PlacedMedia& placed = request.media[n];
    FACET_CHECK(placed.item != nullptr);
    FACET_RETURN_IF_ERROR(
        CheckItem(fmt::format("media[{}]", n), placed, least_begin, request, info));
    least_begin = placed.end();
  }
  return {};
}

}  // namespace

Status CheckRequest(const Request& request, const RunnerInfo& info) {
  const int n_vocab = info.n_vocab;
  const int n_context = info.n_context;
  if (request.prompt.empty()) {
    return Refuse("prompt", "no tokens", "at least 1");
  }
  // One position is kept for the reply: a prompt that fills the context could not be answered.
  const auto n_most = static_cast<size_t>(std::max(n_context - 1, 0));
  if (request.prompt.size() > n_most) {
    return Refuse(
        "prompt", fmt::format("{} tokens", request.prompt.size()),
        fmt::format("at most {} (a context of {} with room for a reply)", n_most, n_context));
  }
  FACET_RETURN_IF_ERROR(CheckTokens("prompt", request.prompt, n_vocab));
  FACET_RETURN_IF_ERROR(CheckMedia(request, info));
  if (request.max_tokens < -1 || request.max_tokens == 0) {
    return Refuse("max_tokens", fmt::format("{}", request.max_tokens),
                  "at least 1, or -1 for no limit");
  }
  FACET_RETURN_IF_ERROR(CheckSampling(request.sampling, n_vocab));
  FACET_RETURN_IF_ERROR(CheckStops(request.stop));
  FACET_RETURN_IF_ERROR(CheckTokens("end_tokens", request.end_tokens, n_vocab));
  FACET_RETURN_IF_ERROR(CheckTokens("suppressed_tokens", request.suppressed_tokens, n_vocab));
  FACET_RETURN_IF_ERROR(CheckThought(request.thought, n_vocab));
  const int n_top_most = std::min(kMaxTopLogprobs, n_vocab);
  if (request.n_top_logprobs < -1 || request.n_top_logprobs > n_top_most) {
    return Refuse("top_logprobs", fmt::format("{}", request.n_top_logprobs),
                  fmt::format("0 to {}", n_top_most));
  }
  return request.cache_salt.size() <= kMaxSaltBytes
             ? Status()
             : Refuse("cache_salt", fmt::format("{} bytes", request.cache_salt.size()),
                      fmt::format("at most {}", kMaxSaltBytes));
}

}  // namespace facet
