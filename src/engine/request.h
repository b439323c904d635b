// SPDX-License-Identifier: Apache-2.0
// What goes into the engine and what comes out of it. Plain data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "media/media_item.h"

namespace facet {

/// How a token is drawn. The order of the steps is fixed: logit bias, repetition penalty, presence
/// and frequency penalty, temperature, top-k, top-p, min-p (testdata/sampling/README.md defines
/// each).
struct SamplingParams {
  float temperature = 1.0F;         ///< 0: the best token, lowest id on a tie; filters are ignored
  int top_k = 64;                   ///< 0: off
  float top_p = 0.95F;              ///< 1: off
  float min_p = 0.0F;               ///< 0: off
  float repetition_penalty = 1.0F;  ///< over prompt and reply, each token once; 1: off
  float presence_penalty = 0.0F;    ///< over the reply
  float frequency_penalty = 0.0F;   ///< over the reply
  std::vector<std::pair<int32_t, float>> logit_bias;
  uint64_t seed = 0;
};

/// Bounds what a reply thinks: the tokens between `open` and `close`.
struct ThoughtLimit {
  int32_t open = -1;         ///< token that begins a thought; -1: nothing is bounded
  int32_t close = -1;        ///< token that ends it; drawn by force when the budget is spent
  bool starts_open = false;  ///< the prompt ends inside a thought
  int max_tokens = -1;  ///< of all thoughts of the reply, `open` and `close` not counted; -1: any
};

/// Which proposers may guess tokens ahead (engine/draft_governor.h). The reply is the same with
/// each.
enum class SpecMode { kOff = 0, kNgram = 1, kMtp = 2, kAuto = 3 };
inline constexpr int kMaxDrafts = 16;    ///< of one sequence in one step
std::string_view NameOf(SpecMode mode);  ///< "off", "ngram", "mtp", "auto"
std::optional<SpecMode> FindSpecMode(std::string_view name);

/// One generation. Checked by Engine before it is queued.
struct Request {
  uint64_t id = 0;                 ///< chosen by the caller, unique among running requests
  std::vector<int32_t> prompt;     ///< not empty
  std::vector<PlacedMedia> media;  ///< in the prompt; ascending, not overlapping
  SamplingParams sampling;
  int max_tokens = -1;              ///< -1: until the context is full
  std::vector<std::string> stop;    ///< texts that end the reply and are not part of it
  std::vector<int32_t> end_tokens;  ///< tokens that end the reply; their text is not part of it
  std::vector<int32_t> suppressed_tokens;  ///< never drawn
  bool stops_on_repetition = true;         ///< the guard against endless repetition
  ThoughtLimit thought;
  /// Log probabilities of the model itself (before penalties, temperature and filters) come with
  /// each token, and of so many of the likeliest tokens; -1: none.
  int n_top_logprobs = -1;
  bool reuses_prefix = true;        ///< may use, and leave, keys and values in the prefix tree
  SpecMode spec = SpecMode::kAuto;  ///< of what EngineOptions::spec allows
  std::string cache_salt;           ///< only requests of the same salt share a prefix
};

inline constexpr int kMaxTopLogprobs = 20;

struct TokenLogprob {
  int32_t token = -1;
  float logprob = 0;  ///< natural logarithm
};

enum class FinishReason {
  kEndToken,  ///< one of end_tokens; Event::token has it
  kStopString,
  kMaxTokens,
  kContext,     ///< the context is full
  kRepetition,  ///< the guard: the reply's end repeats itself
  kCancelled,
  kQueueTimeout,  ///< it waited longer than EngineOptions::max_queue_s
  kError,         ///< Event::error says why
};
std::string_view NameOf(FinishReason reason);  ///< "stop", "stop", "length", "length",
                                               ///< "repetition", "cancelled", "timeout", "error"

/// Counts and times of one request. Seconds are wall time on the engine's clock.
struct RequestStats {
  int n_prompt = 0;
  int n_cached = 0;   ///< of the prompt, taken from the prefix tree when it first ran
  int n_thought = 0;  ///< of the generated, inside of thoughts (ThoughtLimit::open is set)
  bool thought_was_cut = false;  ///< the budget of the thoughts was spent
  int n_preempted = 0;           ///< times that it lost its blocks and was resumed
  int n_generated = 0;           ///< tokens drawn, the end token included
  int n_draft_rounds = 0;        ///< steps that verified drafts
  int n_drafted = 0;             ///< tokens that were guessed and computed
  int n_accepted = 0;    ///< of these, drawn indeed; the others were wrong or behind the end
  double queue_s = 0;    ///< from submission to the first step
  double prefill_s = 0;  ///< from then to the first token
  double encode_s = 0;   ///< of prefill_s, in the encoders of its media
  double decode_s = 0;   ///< from the first token to the end
};

/// What the engine tells of a request, in order: any number of kToken, then exactly one kFinished.
struct Event {
  enum class Kind { kToken, kFinished };
  Kind kind = Kind::kToken;
  uint64_t request_id = 0;
  int32_t token = -1;  ///< kToken: the token; kFinished with kEndToken: the end token
  std::string bytes;  ///< kToken: what it adds to the text (may be part of a character; cut where a
                      ///< stop text begins)
  TokenLogprob logprob = {};                      ///< kToken, where n_top_logprobs was not -1
  std::vector<TokenLogprob> top_logprobs = {};    ///< likeliest first
  FinishReason reason = FinishReason::kEndToken;  ///< kFinished
  std::string error;                              ///< kFinished with kError
  RequestStats stats;                             ///< kFinished
};

}  // namespace facet
