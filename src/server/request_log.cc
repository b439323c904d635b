// SPDX-License-Identifier: Apache-2.0
#include "server/request_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/json.h"

namespace facet {
namespace {

/// As it is where it cannot be mistaken for something else, else as a JSON string.
std::string Shown(const std::string& text) {
  const auto is_plain = [](char c) { return c > ' ' && c < '\x7f' && c != '"' && c != '\\'; };
  return !text.empty() && std::all_of(text.begin(), text.end(), is_plain) ? text
                                                                          : Json(text).Dump();
}

double TokensPerSecond(const RequestRecord& record) {
  return record.decode_s > 0 ? (record.tokens.n_generated - 1) / record.decode_s : 0;
}

/// Rounded: more digits say nothing.
double Thousandths(double value) { return std::round(value * 1e3) / 1e3; }

}  // namespace

std::string TextLine(const RequestRecord& record) {
  std::string line = fmt::format("{} {} {} {} {}", Shown(record.id), Shown(record.peer),
                                 Shown(record.method), Shown(record.path), record.status);
  if (!record.error.empty()) {
    line += fmt::format(" error={}", Shown(record.error));
  }
  if (record.has_reply) {
    line += fmt::format(" prompt={} cached={} generated={} thought={} drafted={} accepted={}",
                        record.tokens.n_prompt, record.tokens.n_cached, record.tokens.n_generated,
                        record.tokens.n_thought, record.tokens.n_drafted, record.tokens.n_accepted);
    line += fmt::format(" finish={} first_token={:.3f}s tokens_per_s={:.1f}", Shown(record.finish),
                        record.first_token_s, TokensPerSecond(record));
    if (record.n_notices > 0) {
      line += fmt::format(" notices={}", record.n_notices);
    }
  }
  line += fmt::format(" total={:.3f}s", record.total_s);
  if (!record.prompt_text.empty() || !record.reply_text.empty()) {
    line += fmt::format(" prompt_text={} reply_text={}", Json(record.prompt_text).Dump(),
                        Json(record.reply_text).Dump());
  }
  return line;
}

std::string JsonLine(const RequestRecord& record) {
  Json line = Json::MakeObject({{"id", record.id},
                                {"peer", record.peer},
                                {"method", record.method},
                                {"path", record.path},
                                {"status", record.status}});
  if (!record.error.empty()) {
    line.Set("error", record.error);
  }
  if (record.has_reply) {
    line.Set("prompt_tokens", record.tokens.n_prompt);
    line.Set("cached_tokens", record.tokens.n_cached);
    line.Set("generated_tokens", record.tokens.n_generated);
    line.Set("thought_tokens", record.tokens.n_thought);
    line.Set("drafted_tokens", record.tokens.n_drafted);
    line.Set("accepted_tokens", record.tokens.n_accepted);
    line.Set("finish", record.finish);
    line.Set("first_token_ms", Thousandths(record.first_token_s * 1e3));
    line.Set("tokens_per_s", Thousandths(TokensPerSecond(record)));
    if (record.n_notices > 0) {
      line.Set("notices", record.n_notices);
    }
  }
  line.Set("total_ms", Thousandths(record.total_s * 1e3));
  if (!record.prompt_text.empty() || !record.reply_text.empty()) {
    line.Set("prompt_text", record.prompt_text);
    line.Set("reply_text", record.reply_text);
  }
  return line.Dump();
}

}  // namespace facet
