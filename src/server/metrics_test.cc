// SPDX-License-Identifier: Apache-2.0
#include "server/metrics.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <regex>
#include <set>
#include <sstream>

namespace facet {
namespace {

/// Samples by name and labels as they stand; empty, with a failure, where the text is not in the
/// format.
std::map<std::string, double> ParseStrictly(const std::string& text) {
  static const std::regex kHelp(R"(# HELP ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+))");
  static const std::regex kType(R"(# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) (counter|gauge|histogram))");
  static const std::regex kSample(
      R"re(([a-zA-Z_:][a-zA-Z0-9_:]*)((\{([a-zA-Z_][a-zA-Z0-9_]*="([^"\\\n]|\\[\\"n])*",?)+\})?) (\S+))re");
  std::map<std::string, double> samples;
  std::set<std::string> families;
  std::string family;
  std::string type;
  std::istringstream lines(text);
  EXPECT_TRUE(text.ends_with('\n'));
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (std::regex_match(line, match, kHelp)) {
      family = match[1];
      type.clear();
      EXPECT_TRUE(families.insert(family).second) << "twice: " << family;
    } else if (std::regex_match(line, match, kType)) {
      EXPECT_EQ(match[1], family) << line;
      type = match[2];
      EXPECT_EQ(type == "counter", family.ends_with("_total")) << line;
    } else if (std::regex_match(line, match, kSample)) {
      const std::string name = match[1];
      const bool is_part =
          type == "histogram" &&
          (name == family + "_bucket" || name == family + "_sum" || name == family + "_count");
      EXPECT_TRUE(type == "histogram" ? is_part : name == family) << line;
      char* end = nullptr;
      const std::string number = match[6];
      const double value = std::strtod(number.c_str(), &end);
      EXPECT_EQ(*end, '\0') << line;
      EXPECT_TRUE(samples.emplace(name + std::string(match[2]), value).second) << "twice: " << line;
    } else {
      ADD_FAILURE() << "no line of the format: " << line;
    }
  }
  return samples;
}

TEST(Metrics, IsInTheFormatOfPrometheus) {
  Metrics metrics({.sliding = 100, .full = 1000});
  const auto empty = ParseStrictly(metrics.Text(0));
  EXPECT_EQ(empty.at("facet_generated_tokens_total"), 0);
  EXPECT_EQ(empty.at("facet_batch_rows_count"), 0);

  metrics.AddArrival();
  metrics.AddArrival();
  RequestRecord record;
  record.route = "/v1/chat/completions";
  record.status = 200;
  record.has_reply = true;
  record.total_s = 3;
  record.tokens = {.n_prompt = 10, .n_cached = 4, .n_generated = 7, .n_thought = 2, .n_calls = 1};
  metrics.AddRequest(record);
  const std::vector<MediaPart> media = {{.kind = MediaPartKind::kAudio, .items = {}},
                                        {.kind = MediaPartKind::kVideo, .items = {}},
                                        {.kind = MediaPartKind::kAudio, .items = {}}};
  metrics.AddMedia(media, 0.5);
  metrics.AddSubmitted(2);
  metrics.AddFinished({.queue_s = 0.05});
  metrics.AddStep({.n_rows = 8,
                   .n_running = 1,
                   .n_waiting = 3,
                   .n_preempted = 2,
                   .n_sliding_blocks_held = 5,
                   .n_full_blocks_held = 6,
                   .n_full_blocks_cached = 7,
                   .n_encoded = 3,
                   .encode_s = 0.75,
                   .run_s = 0.5,
                   .n_drafted = 6,
                   .n_accepted = 4,
                   .draft_s = 0.125});
  metrics.AddFirstToken(0.2);
  metrics.AddTokenGap(0.004);
  const auto samples = ParseStrictly(metrics.Text(9));
  EXPECT_EQ(samples.at(R"(facet_requests_total{route="/v1/chat/completions",status="200"})"), 1);
  EXPECT_EQ(samples.at("facet_requests_in_flight"), 1);
  EXPECT_EQ(samples.at("facet_prompt_tokens_total"), 10);
  EXPECT_EQ(samples.at("facet_cached_prompt_tokens_total"), 4);
  EXPECT_EQ(samples.at("facet_media_total{kind=\"audio\"}"), 2);
  EXPECT_EQ(samples.at("facet_media_total{kind=\"image\"}"), 0);
  EXPECT_EQ(samples.at("facet_media_read_seconds_total"), 0.5);
  EXPECT_EQ(samples.at("facet_media_encoded_total"), 3);
  EXPECT_EQ(samples.at("facet_media_encode_seconds_total"), 0.75);
  EXPECT_EQ(samples.at("facet_draft_tokens_total"), 6);
  EXPECT_EQ(samples.at("facet_draft_accepted_tokens_total"), 4);
  EXPECT_EQ(samples.at("facet_draft_seconds_total"), 0.125);
  EXPECT_EQ(samples.at("facet_generated_tokens_total"), 7);
  EXPECT_EQ(samples.at("facet_thought_tokens_total"), 2);
  EXPECT_EQ(samples.at("facet_tool_calls_total"), 1);
  EXPECT_EQ(samples.at("facet_sequences_running"), 1);
  EXPECT_EQ(samples.at("facet_sequences_waiting"), 3);
  EXPECT_EQ(samples.at("facet_preemptions_total"), 2);
  EXPECT_EQ(samples.at(R"(facet_kv_blocks{group="full",state="cached"})"), 7);
  EXPECT_EQ(samples.at(R"(facet_kv_bytes{group="sliding",state="held"})"), 500);
  EXPECT_EQ(samples.at(R"(facet_batch_rows_bucket{le="4"})"), 0);
  EXPECT_EQ(samples.at(R"(facet_batch_rows_bucket{le="8"})"), 1);
  EXPECT_EQ(samples.at(R"(facet_batch_rows_bucket{le="+Inf"})"), 1);
  EXPECT_EQ(samples.at("facet_batch_rows_sum"), 8);
  EXPECT_EQ(samples.at(R"(facet_time_to_first_token_seconds_bucket{le="0.25"})"), 1);
  EXPECT_EQ(samples.at("facet_connections"), 9);
  EXPECT_GT(samples.at("facet_process_resident_memory_bytes"), 1e6);

  // With nothing in the engine, the latest step is no news.
  metrics.AddFinished({});
  const auto idle = ParseStrictly(metrics.Text(0));
  EXPECT_EQ(idle.at("facet_sequences_running"), 0);
  EXPECT_EQ(idle.at(R"(facet_kv_blocks{group="full",state="held"})"), 0);
  EXPECT_EQ(idle.at(R"(facet_kv_blocks{group="full",state="cached"})"), 7);
}

TEST(Metrics, EscapesLabels) {
  Metrics metrics({});
  metrics.AddArrival();
  RequestRecord record;
  record.route = "a\"b\\c\nd";
  record.error = "not_found";
  metrics.AddRequest(record);
  metrics.AddTransportError(408);
  const auto samples = ParseStrictly(metrics.Text(0));
  EXPECT_EQ(samples.at(R"(facet_requests_total{route="a\"b\\c\nd",status="0"})"), 1);
  EXPECT_EQ(samples.at(R"(facet_errors_total{kind="not_found"})"), 1);
  EXPECT_EQ(samples.at(R"(facet_errors_total{kind="http_408"})"), 1);
  EXPECT_FALSE(samples.contains(R"(facet_kv_bytes{group="full",state="held"})"));
}

TEST(Histogram, CountsByBound) {
  Histogram histogram({1, 2});
  for (const double value : {0.5, 1.0, 1.5, 2.0, 3.0}) {
    histogram.Add(value);
  }
  EXPECT_EQ(histogram.counts(), (std::vector<uint64_t>{2, 2, 1}));
  EXPECT_EQ(histogram.sum(), 8);
}

}  // namespace
}  // namespace facet
