// SPDX-License-Identifier: Apache-2.0
#include "app/trace.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "app/terminal.h"

namespace facet {

Result<Trace> Trace::Create(const std::string& path) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) {
    return Refuse(path, fmt::format("cannot create: {}", std::strerror(errno)));
  }
  return Trace(path, file);
}

Trace::Trace(Trace&& other) noexcept
    : path_(std::move(other.path_)),
      file_(std::exchange(other.file_, -1)),
      status_(std::move(other.status_)) {}

Trace::~Trace() {
  if (file_ >= 0) {
    ::close(file_);
  }
}

void Trace::Write(const Json& line) {
  if (status_.ok()) {
    status_ = WriteAll(file_, line.Dump() + "\n", path_);
  }
}

void Trace::WritePrompt(const PromptInput& input) {
  Json runs = Json(Json::Array());
  for (const TextRun& run : input.prompt.runs) {
    runs.Append(Json::MakeObject({{"text", run.text}, {"parse_special", run.parse_special}}));
  }
  Json ids = Json(Json::Array());
  for (const int32_t token : input.tokens) {
    ids.Append(token);
  }
  Json line = Json::MakeObject(
      {{"trace", "prompt"}, {"runs", std::move(runs)}, {"tokens", std::move(ids)}});
  if (!input.media.empty()) {
    line.Set("media", MediaJson(input.media));
  }
  Write(line);
}

void Trace::WriteEvent(const Event& event) {
  if (event.kind == Event::Kind::kToken) {
    std::string hex;
    for (const char c : event.bytes) {
      hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
    }
    Write(Json::MakeObject({{"trace", "token"}, {"token", event.token}, {"bytes", hex}}));
    return;
  }
  Json line = Json::MakeObject(
      {{"trace", "finish"}, {"reason", NameOf(event.reason)}, {"token", event.token}});
  if (!event.error.empty()) {
    line.Set("error", event.error);
  }
  line.Set("usage", UsageOf(event.stats));
  line.Set("drafts", DraftsOf(event.stats));
  line.Set("timings", TimingsOf(event.stats));
  Write(line);
}

double PrefillRate(const RequestStats& stats) {
  return stats.prefill_s > 0 ? (stats.n_prompt - stats.n_cached) / stats.prefill_s : 0;
}

double DecodeRate(const RequestStats& stats) {
  return stats.decode_s > 0 && stats.n_generated > 1 ? (stats.n_generated - 1) / stats.decode_s : 0;
}

Json TimingsOf(const RequestStats& stats) {
  return Json::MakeObject({{"queue_s", stats.queue_s},
                           {"prefill_s", stats.prefill_s},
                           {"decode_s", stats.decode_s},
                           {"prefill_tokens_per_s", PrefillRate(stats)},
                           {"decode_tokens_per_s", DecodeRate(stats)}});
}

Json DraftsOf(const RequestStats& stats) {
  return Json::MakeObject({{"rounds", stats.n_draft_rounds},
                           {"drafted", stats.n_drafted},
                           {"accepted", stats.n_accepted}});
}

Json UsageOf(const RequestStats& stats) {
  return Json::MakeObject({{"prompt_tokens", stats.n_prompt},
                           {"completion_tokens", stats.n_generated},
                           {"total_tokens", stats.n_prompt + stats.n_generated}});
}

}  // namespace facet
