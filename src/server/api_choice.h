// SPDX-License-Identifier: Apache-2.0
// One choice of a reply: the engine's events as parts that clients know, each with the tokens it is
// made of, and why it ended. Knows nothing of JSON; api_reply.h puts the parts into answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/utf8.h"
#include "chat/reply.h"
#include "engine/request.h"
#include "server/api_request.h"
#include "text/vocab.h"

namespace facet {

/// A token of the text with its log probability.
struct ListedToken {
  TokenLogprob logprob;
  std::vector<TokenLogprob> top_logprobs;  ///< likeliest first
  size_t offset = 0;                       ///< of its first character in a completion's text
};

struct ChoicePart {
  ReplyDelta delta;
  std::vector<ListedToken> tokens = {};  ///< of content, where log probabilities were asked for
};

/// Not for several threads.
class ApiChoice {
 public:
  /// `tools`: of the request; `prompt`: what the reply continues; `offset`: characters that stand
  /// before the reply in a completion's text. `request` and `vocab` must outlive it.
  ApiChoice(const ApiRequest& request, const Vocab& vocab,
            std::shared_ptr<const OfferedTools> tools, std::span<const int32_t> prompt,
            size_t offset);

  /// What an event adds; a kFinished what was held back. No text is empty but a call's.
  std::vector<ChoicePart> Add(const Event& event);

  [[nodiscard]] bool is_finished() const { return reason_.has_value(); }
  /// A reply that may have one call only has it: what the engine still draws is not looked at.
  [[nodiscard]] bool has_all_it_may() const { return was_ended_; }
  /// Why the engine ended it, or nothing where the first call did. Finished only.
  [[nodiscard]] std::optional<FinishReason> engine_reason() const;
  /// "stop", "length" or "tool_calls"; "error" where there is no reply. Finished only.
  [[nodiscard]] std::string_view finish_reason() const;

  /// Of the engine; n_generated without what was not looked at. Finished only.
  [[nodiscard]] RequestStats stats() const;
  [[nodiscard]] int n_calls() const { return n_calls_; }
  [[nodiscard]] int n_parse_errors() const { return splitter_.n_parse_errors(); }
  [[nodiscard]] int n_repairs() const { return splitter_.n_repairs(); }

 private:
  std::vector<ReplyDelta> Split(const Event& event);
  std::vector<ReplyDelta> SplitEnd(const Event& event);
  [[nodiscard]] bool IsMark(int32_t token) const;
  void Hold(const Event& event);
  /// Drops the held tokens of thoughts and calls but the last ones, which spell `n_kept` bytes.
  void DropOthers(size_t n_kept);
  std::vector<ChoicePart> MakeParts(std::vector<ReplyDelta> deltas);

  const ApiRequest* request_;
  const Vocab* vocab_;
  ReplySplitter splitter_;         // of a chat
  Utf8Stream characters_;          // of a completion
  size_t offset_;                  // characters handed out, and those before
  std::vector<ListedToken> held_;  // their text is still to come, or was none
  size_t n_content_ = 0;           // so many of them are of content for certain
  int n_tokens_ = 0;
  int n_calls_ = 0;
  bool was_ended_ = false;
  std::optional<FinishReason> reason_;
  RequestStats stats_;
};

}  // namespace facet
