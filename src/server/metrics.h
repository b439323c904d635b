// SPDX-License-Identifier: Apache-2.0
// Counters of what the server does, and their text for Prometheus (exposition format 0.0.4).
// docs/http_api.md lists the names.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chat/media_prompt.h"
#include "engine/engine.h"
#include "server/request_log.h"

namespace facet {

/// Counts of values by the least bound that is not below them.
class Histogram {
 public:
  /// `bounds` ascend.
  explicit Histogram(std::vector<double> bounds);
  void Add(double value);

  [[nodiscard]] const std::vector<double>& bounds() const { return bounds_; }
  /// One for each bound and one for what is above all.
  [[nodiscard]] const std::vector<uint64_t>& counts() const { return counts_; }
  [[nodiscard]] double sum() const { return sum_; }

 private:
  std::vector<double> bounds_;
  std::vector<uint64_t> counts_;
  double sum_ = 0;
};

/// Writes the text format; families one after the other, each with its samples.
class MetricsText {
 public:
  using Labels = std::vector<std::pair<std::string_view, std::string>>;

  /// `type`: "counter", "gauge" or "histogram".
  void Family(std::string_view name, std::string_view type, std::string_view help);
  /// Of the latest family.
  void Sample(const Labels& labels, double value);
  void Samples(const Histogram& histogram);
  [[nodiscard]] std::string Take() { return std::move(text_); }

 private:
  void Line(std::string_view suffix, const Labels& labels, double value);

  std::string text_;
  std::string name_;
};

/// May be used by several threads.
class Metrics {
 public:
  struct BlockBytes {
    int64_t sliding = 0;  ///< 0: not told
    int64_t full = 0;
  };
  explicit Metrics(BlockBytes block_bytes);

  void AddStep(const StepReport& report);
  void AddArrival();
  /// A request is over, one for each AddArrival.
  void AddRequest(const RequestRecord& record);
  /// Refused before it was a request (bad HTTP, too large, too slow).
  void AddTransportError(int status);
  /// Sequences given to the engine, and those that have ended.
  void AddSubmitted(int n_sequences);
  void AddFinished(const RequestStats& stats);
  /// Media of a request were read, or an error ended that; `seconds` it took.
  void AddMedia(std::span<const MediaPart> parts, double seconds);
  void AddFirstToken(double seconds);
  void AddTokenGap(double seconds);

  [[nodiscard]] std::string Text(size_t n_connections) const;

 private:
  struct TokenCounts {
    uint64_t prompt = 0;
    uint64_t cached = 0;
    uint64_t generated = 0;
    uint64_t thought = 0;
    uint64_t calls = 0;
    uint64_t parse_errors = 0;
    uint64_t repairs = 0;
  };
  void WriteRequests(MetricsText* text) const;
  void WriteTokens(MetricsText* text) const;
  void WriteMedia(MetricsText* text) const;
  void WriteDrafts(MetricsText* text) const;
  void WriteEngine(MetricsText* text) const;

  const BlockBytes block_bytes_;
  mutable std::mutex mutex_;
  // All that follows is guarded by mutex_.
  std::map<std::pair<std::string, int>, uint64_t> requests_;  // by route and status
  std::map<std::string, uint64_t> errors_;
  TokenCounts tokens_;
  std::array<uint64_t, 3> n_media_ = {};  // by MediaPartKind
  double media_s_ = 0;
  int64_t n_in_flight_ = 0;
  int64_t n_sequences_ = 0;
  uint64_t n_preempted_ = 0;
  uint64_t n_steps_ = 0;
  double run_s_ = 0;
  uint64_t n_drafted_ = 0;
  uint64_t n_accepted_ = 0;
  double draft_s_ = 0;
  uint64_t n_encoded_ = 0;
  double encode_s_ = 0;
  StepReport last_step_;
  Histogram batch_rows_;
  Histogram first_token_;
  Histogram token_gap_;
  Histogram queue_;
  Histogram request_;
};

}  // namespace facet
