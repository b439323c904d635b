// SPDX-License-Identifier: Apache-2.0
// The answer to one API call, from the engine's events to the bytes that are sent: JSON as a whole,
// or chunks of an event stream ("data: ...\n\n"). Knows neither engine nor connection.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/request.h"
#include "server/api_error.h"
#include "server/api_request.h"
#include "server/served_model.h"

namespace facet {

/// Not for several threads. Choices are numbered prompt by prompt, n for each.
class ApiReply {
 public:
  /// `prompts`: tokens of each prompt (one for a chat). `id`: "chatcmpl-..." or "cmpl-...".
  /// `request` and `model` must outlive it.
  ApiReply(const ApiRequest& request, const ServedModel& model, std::string id, int64_t created,
           const std::vector<std::vector<int32_t>>& prompts);
  ~ApiReply();

  /// What a stream begins with (the chunks with the role; of an echo, the prompt). Without stream
  /// empty, as are Add's.
  std::string Start();
  /// What a stream sends now for an event of choice `choice`; may be empty.
  std::string Add(int choice, const Event& event);
  /// A choice has all that it may have (the first call of a reply that may have one, or another
  /// choice has failed), but the engine does not know: it is to be cancelled. What comes until its
  /// kFinished is not looked at.
  [[nodiscard]] bool wants_no_more(int choice) const;
  /// All choices have had their kFinished.
  [[nodiscard]] bool is_complete() const;
  /// The rest of a stream ([DONE] included; nothing after an error), or the whole body. Complete
  /// only.
  std::string Finish();
  /// Why it failed, if a choice ended with kError or kQueueTimeout; a stream tells it by itself,
  /// without stream the caller answers with it in place of Finish.
  [[nodiscard]] const std::optional<ApiError>& error() const;

  /// Of all choices together, for metrics and the log; a prompt counts once. Complete only.
  struct Totals {
    int n_prompt = 0;
    int n_cached = 0;
    int n_image = 0;  ///< of the prompt, soft tokens of pictures
    int n_audio = 0;
    int n_video = 0;
    int n_generated = 0;
    int n_thought = 0;
    int n_drafted = 0;   ///< tokens that were guessed and computed
    int n_accepted = 0;  ///< of these, part of the reply
    int n_calls = 0;
    int n_parse_errors = 0;
    int n_repairs = 0;
  };
  [[nodiscard]] Totals totals() const;
  /// Of choice 0, as clients get it ("stop", "length", "tool_calls"), or "error". Complete only.
  [[nodiscard]] std::string finish_reason() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace facet
