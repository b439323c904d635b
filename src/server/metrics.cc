// SPDX-License-Identifier: Apache-2.0
#include "server/metrics.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>

namespace facet {
namespace {

std::string Escaped(std::string_view text, bool is_label) {
  std::string escaped;
  escaped.reserve(text.size());
  for (const char c : text) {
    if (c == '\n') {
      escaped += "\\n";
    } else if (c == '\\' || (c == '"' && is_label)) {
      escaped += '\\';
      escaped += c;
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string Number(double value) {
  if (std::isinf(value)) {
    return value > 0 ? "+Inf" : "-Inf";
  }
  return std::isnan(value) ? "NaN" : fmt::format("{}", value);
}

/// Bytes of the process in memory; nothing where the system does not tell.
std::optional<double> ResidentBytes() {
  std::FILE* file = std::fopen("/proc/self/statm", "re");
  if (file == nullptr) {
    return std::nullopt;
  }
  char line[128] = {};
  const bool has_line = std::fgets(line, sizeof line, file) != nullptr;
  std::fclose(file);
  const char* second = has_line ? std::find(line, line + sizeof line, ' ') : line + sizeof line;
  if (second == line + sizeof line) {
    return std::nullopt;
  }
  return static_cast<double>(std::strtoull(second, nullptr, 10)) *
         static_cast<double>(::sysconf(_SC_PAGESIZE));
}

void Gauge(MetricsText* text, std::string_view name, std::string_view help, double value) {
  text->Family(name, "gauge", help);
  text->Sample({}, value);
}

void Counter(MetricsText* text, std::string_view name, std::string_view help, double value) {
  text->Family(name, "counter", help);
  text->Sample({}, value);
}

void Distribution(MetricsText* text, std::string_view name, std::string_view help,
                  const Histogram& histogram) {
  text->Family(name, "histogram", help);
  text->Samples(histogram);
}

uint64_t Count(int n) { return static_cast<uint64_t>(std::max(n, 0)); }

}  // namespace

Histogram::Histogram(std::vector<double> bounds)
    : bounds_(std::move(bounds)), counts_(bounds_.size() + 1) {}

void Histogram::Add(double value) {
  const auto bound = std::lower_bound(bounds_.begin(), bounds_.end(), value);
  ++counts_[static_cast<size_t>(bound - bounds_.begin())];
  sum_ += value;
}

void MetricsText::Family(std::string_view name, std::string_view type, std::string_view help) {
  name_ = name;
  text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, Escaped(help, false), name, type);
}

void MetricsText::Line(std::string_view suffix, const Labels& labels, double value) {
  text_ += name_;
  text_ += suffix;
  for (size_t n = 0; n < labels.size(); ++n) {
    text_ += fmt::format("{}{}=\"{}\"", n == 0 ? "{" : ",", labels[n].first,
                         Escaped(labels[n].second, true));
  }
  text_ += fmt::format("{} {}\n", labels.empty() ? "" : "}", Number(value));
}

void MetricsText::Sample(const Labels& labels, double value) { Line("", labels, value); }

void MetricsText::Samples(const Histogram& histogram) {
  uint64_t n_below = 0;
  for (size_t n = 0; n < histogram.counts().size(); ++n) {
    n_below += histogram.counts()[n];
    const bool is_last = n == histogram.bounds().size();
    Line("_bucket", {{"le", is_last ? "+Inf" : Number(histogram.bounds()[n])}},
         static_cast<double>(n_below));
  }
  Line("_sum", {}, histogram.sum());
  Line("_count", {}, static_cast<double>(n_below));
}

Metrics::Metrics(BlockBytes block_bytes)
    : block_bytes_(block_bytes),
      batch_rows_({1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048}),
      first_token_({0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300}),
      token_gap_({0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10}),
      queue_({0.001, 0.01, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300}),
      request_({0.01, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800}) {}

void Metrics::AddStep(const StepReport& report) {
  const std::lock_guard lock(mutex_);
  ++n_steps_;
  n_preempted_ += Count(report.n_preempted);
  run_s_ += report.run_s;
  n_drafted_ += Count(report.n_drafted);
  n_accepted_ += Count(report.n_accepted);
  draft_s_ += report.draft_s;
  n_encoded_ += Count(report.n_encoded);
  encode_s_ += report.encode_s;
  batch_rows_.Add(report.n_rows);
  last_step_ = report;
}

void Metrics::AddArrival() {
  const std::lock_guard lock(mutex_);
  ++n_in_flight_;
}

void Metrics::AddRequest(const RequestRecord& record) {
  const std::lock_guard lock(mutex_);
  --n_in_flight_;
  ++requests_[{record.route, record.status}];
  if (!record.error.empty()) {
    ++errors_[record.error];
  }
  if (!record.has_reply) {
    return;
  }
  request_.Add(record.total_s);
  tokens_.prompt += Count(record.tokens.n_prompt);
  tokens_.cached += Count(record.tokens.n_cached);
  tokens_.generated += Count(record.tokens.n_generated);
  tokens_.thought += Count(record.tokens.n_thought);
  tokens_.calls += Count(record.tokens.n_calls);
  tokens_.parse_errors += Count(record.tokens.n_parse_errors);
  tokens_.repairs += Count(record.tokens.n_repairs);
}

void Metrics::AddTransportError(int status) {
  const std::lock_guard lock(mutex_);
  ++errors_[fmt::format("http_{}", status)];
}

void Metrics::AddSubmitted(int n_sequences) {
  const std::lock_guard lock(mutex_);
  n_sequences_ += n_sequences;
}

void Metrics::AddFinished(const RequestStats& stats) {
  const std::lock_guard lock(mutex_);
  --n_sequences_;
  queue_.Add(stats.queue_s);
}

void Metrics::AddMedia(std::span<const MediaPart> parts, double seconds) {
  const std::lock_guard lock(mutex_);
  for (const MediaPart& part : parts) {
    ++n_media_[static_cast<size_t>(part.kind)];
  }
  media_s_ += seconds;
}

void Metrics::AddFirstToken(double seconds) {
  const std::lock_guard lock(mutex_);
  first_token_.Add(seconds);
}

void Metrics::AddTokenGap(double seconds) {
  const std::lock_guard lock(mutex_);
  token_gap_.Add(seconds);
}

void Metrics::WriteRequests(MetricsText* text) const {
  text->Family("facet_requests_total", "counter",
               "Requests that are over, by route and HTTP status (499: the client went).");
  for (const auto& [key, n] : requests_) {
    text->Sample({{"route", key.first}, {"status", fmt::format("{}", key.second)}},
                 static_cast<double>(n));
  }
  text->Family("facet_errors_total", "counter", "Errors by kind.");
  for (const auto& [kind, n] : errors_) {
    text->Sample({{"kind", kind}}, static_cast<double>(n));
  }
  Gauge(text, "facet_requests_in_flight", "Requests without their whole answer.",
        static_cast<double>(n_in_flight_));
  Distribution(text, "facet_request_seconds", "Requests to the model, from arrival to end.",
               request_);
}

void Metrics::WriteTokens(MetricsText* text) const {
  const auto count = [&](std::string_view name, std::string_view help, uint64_t n) {
    Counter(text, name, help, static_cast<double>(n));
  };
  count("facet_prompt_tokens_total", "Tokens of prompts.", tokens_.prompt);
  count("facet_cached_prompt_tokens_total", "Tokens of prompts that were not computed again.",
        tokens_.cached);
  count("facet_generated_tokens_total", "Tokens drawn.", tokens_.generated);
  count("facet_thought_tokens_total", "Tokens drawn inside of thoughts.", tokens_.thought);
  count("facet_tool_calls_total", "Tool calls in replies.", tokens_.calls);
  count("facet_tool_call_errors_total", "Tool calls that could not be read.", tokens_.parse_errors);
  count("facet_tool_call_repairs_total", "Tool calls that were read with repairs.",
        tokens_.repairs);
  Distribution(text, "facet_time_to_first_token_seconds",
               "From a request's arrival to its first token.", first_token_);
  Distribution(text, "facet_inter_token_seconds", "Between two tokens of a sequence.", token_gap_);
}

void Metrics::WriteMedia(MetricsText* text) const {
  static constexpr std::array<std::pair<std::string_view, MediaPartKind>, 3> kNames = {
      {{"image", MediaPartKind::kImage},
       {"audio", MediaPartKind::kAudio},
       {"video", MediaPartKind::kVideo}}};
  text->Family("facet_media_total", "counter", "Media of requests that were read, by kind.");
  for (const auto& [name, kind] : kNames) {
    text->Sample({{"kind", std::string(name)}},
                 static_cast<double>(n_media_[static_cast<size_t>(kind)]));
  }
  Counter(text, "facet_media_read_seconds_total",
          "Time in fetching, decoding and sizing media of requests.", media_s_);
  Counter(text, "facet_media_encoded_total", "Pictures, frames and clips that were encoded.",
          static_cast<double>(n_encoded_));
  Counter(text, "facet_media_encode_seconds_total", "Time in the encoders.", encode_s_);
}

void Metrics::WriteDrafts(MetricsText* text) const {
  Counter(text, "facet_draft_tokens_total", "Tokens that were guessed and verified.",
          static_cast<double>(n_drafted_));
  Counter(text, "facet_draft_accepted_tokens_total", "Of these, tokens that were drawn indeed.",
          static_cast<double>(n_accepted_));
  Counter(text, "facet_draft_seconds_total", "Time in the drafter.", draft_s_);
}

void Metrics::WriteEngine(MetricsText* text) const {
  // The latest step is no news of an engine that has nothing to do.
  const StepReport now =
      n_sequences_ > 0 ? last_step_
                       : StepReport{.n_sliding_blocks_cached = last_step_.n_sliding_blocks_cached,
                                    .n_full_blocks_cached = last_step_.n_full_blocks_cached};
  Gauge(text, "facet_sequences_running", "Sequences that hold blocks.", now.n_running);
  Gauge(text, "facet_sequences_waiting", "Sequences that wait for blocks or their turn.",
        now.n_waiting);
  Counter(text, "facet_preemptions_total", "Times a sequence lost its blocks and was resumed.",
          static_cast<double>(n_preempted_));
  Counter(text, "facet_steps_total", "Batches run.", static_cast<double>(n_steps_));
  Counter(text, "facet_step_seconds_total", "Time in batches.", run_s_);
  Distribution(text, "facet_batch_rows", "Rows of a batch.", batch_rows_);
  Distribution(text, "facet_queue_seconds", "From submission of a sequence to its first step.",
               queue_);
  struct Blocks {
    std::string_view group;
    std::string_view state;
    int n;
    int64_t bytes_each;
  };
  const std::array all_blocks = {
      Blocks{"sliding", "held", now.n_sliding_blocks_held, block_bytes_.sliding},
      Blocks{"sliding", "cached", now.n_sliding_blocks_cached, block_bytes_.sliding},
      Blocks{"full", "held", now.n_full_blocks_held, block_bytes_.full},
      Blocks{"full", "cached", now.n_full_blocks_cached, block_bytes_.full}};
  text->Family("facet_kv_blocks", "gauge",
               "Blocks of keys and values: held by sequences, cached for later ones.");
  for (const Blocks& blocks : all_blocks) {
    text->Sample({{"group", std::string(blocks.group)}, {"state", std::string(blocks.state)}},
                 blocks.n);
  }
  if (block_bytes_.sliding == 0 && block_bytes_.full == 0) {
    return;
  }
  text->Family("facet_kv_bytes", "gauge", "The same in bytes.");
  for (const Blocks& blocks : all_blocks) {
    text->Sample({{"group", std::string(blocks.group)}, {"state", std::string(blocks.state)}},
                 static_cast<double>(blocks.n) * static_cast<double>(blocks.bytes_each));
  }
}

std::string Metrics::Text(size_t n_connections) const {
  MetricsText text;
  {
    const std::lock_guard lock(mutex_);
    WriteRequests(&text);
    WriteTokens(&text);
    WriteMedia(&text);
    WriteDrafts(&text);
    WriteEngine(&text);
  }
  Gauge(&text, "facet_connections", "Open connections.", static_cast<double>(n_connections));
  if (const std::optional<double> bytes = ResidentBytes()) {
    Gauge(&text, "facet_process_resident_memory_bytes", "Memory of the process.", *bytes);
  }
  return text.Take();
}

}  // namespace facet
