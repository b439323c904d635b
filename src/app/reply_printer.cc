// SPDX-License-Identifier: Apache-2.0
#include "app/reply_printer.h"

#include <fmt/format.h>

#include <cmath>

#include "app/prompt_maker.h"
#include "app/text_width.h"
#include "app/trace.h"

namespace facet {
namespace {

/// The number that was meant: 0.95, not the 0.949999988 that a float makes of it.
double Meant(float value) { return std::round(static_cast<double>(value) * 1e6) / 1e6; }

constexpr const char* kStandardOutput = "standard output";

std::string_view NameOf(ReplyDelta::Kind kind) {
  return kind == ReplyDelta::Kind::kThought ? "thought" : "content";
}

}  // namespace

Status TextPrinter::Write(const std::string& text) {
  if (text.empty()) {
    return {};
  }
  last_ = text.back();
  return WriteAll(fd_, text, kStandardOutput);
}

std::string TextPrinter::Switch(ReplyDelta::Kind kind) {
  std::string text;
  if (kind_ != ReplyDelta::Kind::kContent) {
    text += std::string(style_.reset) + "\n\n";
  } else if (last_ != '\n') {
    text += "\n";
  }
  kind_ = kind;
  if (kind == ReplyDelta::Kind::kThought) {
    text += style_.dim.empty() ? "[thought] " : std::string(style_.dim);
  }
  return text;
}

Status TextPrinter::Print(const ReplyDelta& delta) {
  if (is_terminal_) {
    return Write((delta.kind == kind_ ? "" : Switch(delta.kind)) + ShownText(delta.text));
  }
  return delta.kind == ReplyDelta::Kind::kContent ? Write(delta.text) : Status();
}

Status TextPrinter::Finish() {
  std::string end = kind_ == ReplyDelta::Kind::kContent ? "" : std::string(style_.reset);
  kind_ = ReplyDelta::Kind::kContent;
  end += last_ == '\n' ? "" : "\n";
  return Write(end);
}

Status JsonPrinter::Write(const Json& line) {
  return WriteAll(fd_, line.Dump() + "\n", kStandardOutput);
}

Status JsonPrinter::Start(const LoadedModel& model, const Request& request, int n_context) {
  const SamplingParams& sampling = request.sampling;
  Json line = Json::MakeObject({{"event", "start"},
                                {"model", model.checkpoint().config().name},
                                {"prompt_tokens", static_cast<int64_t>(request.prompt.size())},
                                {"context", n_context},
                                {"seed", sampling.seed},
                                {"temperature", Meant(sampling.temperature)},
                                {"top_k", sampling.top_k},
                                {"top_p", Meant(sampling.top_p)},
                                {"min_p", Meant(sampling.min_p)}});
  if (!request.media.empty()) {
    line.Set("media", MediaJson(request.media));
  }
  return Write(line);
}

Status JsonPrinter::Print(const ReplyDelta& delta) {
  return Write(
      Json::MakeObject({{"event", "delta"}, {"kind", NameOf(delta.kind)}, {"text", delta.text}}));
}

Status JsonPrinter::Finish(const Reply& reply, double load_s) {
  Json timings = TimingsOf(reply.stats);
  timings.Set("load_s", load_s);
  return Write(Json::MakeObject({{"event", "finish"},
                                 {"reason", facet::NameOf(reply.reason)},
                                 {"usage", UsageOf(reply.stats)},
                                 {"drafts", DraftsOf(reply.stats)},
                                 {"timings", std::move(timings)}}));
}

std::string FinishNote(const Reply& reply, int n_context) {
  switch (reply.reason) {
    case FinishReason::kMaxTokens:
      return fmt::format("[stopped: {} tokens (-n)]", reply.stats.n_generated);
    case FinishReason::kContext:
      return fmt::format("[stopped: the context of {} positions is full (-c)]", n_context);
    case FinishReason::kRepetition:
      return "[stopped: the reply repeats itself]";
    case FinishReason::kCancelled:
      return "[interrupted]";
    case FinishReason::kEndToken:
    case FinishReason::kStopString:
    case FinishReason::kQueueTimeout:
    case FinishReason::kError:
      break;
  }
  return "";
}

}  // namespace facet
