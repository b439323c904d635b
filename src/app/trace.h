// SPDX-License-Identifier: Apache-2.0
// One request written down from text to tokens to events, as JSON lines: what --trace gives.
#pragma once

#include <string>

#include "app/prompt_maker.h"
#include "base/json.h"
#include "base/status.h"
#include "engine/request.h"

namespace facet {

/// Writes as things happen, so that a trace of a crash is there too. Failures are kept and told by
/// Close.
class Trace {
 public:
  static Result<Trace> Create(const std::string& path);
  Trace(Trace&& other) noexcept;
  Trace& operator=(Trace&&) = delete;
  ~Trace();

  /// {"trace":"prompt","runs":[{"text":…,"parse_special":…}],"tokens":[…]}, and where there are
  /// media, "media":[…] (MediaJson)
  void WritePrompt(const PromptInput& input);
  /// {"trace":"token","token":…,"bytes":"hex"} or {"trace":"finish",…}
  void WriteEvent(const Event& event);
  [[nodiscard]] const Status& status() const { return status_; }

 private:
  Trace(std::string path, int file) : path_(std::move(path)), file_(file) {}
  void Write(const Json& line);

  std::string path_;
  int file_;
  Status status_;
};

/// {"queue_s":…,"prefill_s":…,…}
Json TimingsOf(const RequestStats& stats);
/// {"rounds":…,"drafted":…,"accepted":…}; how many there are depends on times, as timings do
Json DraftsOf(const RequestStats& stats);
/// OpenAI's: {"prompt_tokens":…,"completion_tokens":…,"total_tokens":…}
Json UsageOf(const RequestStats& stats);
/// Tokens per second of the prompt (what was computed of it), and of the reply from its second
/// token on; 0 where there is no time.
double PrefillRate(const RequestStats& stats);
double DecodeRate(const RequestStats& stats);

}  // namespace facet
