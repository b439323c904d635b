// SPDX-License-Identifier: Apache-2.0
// One line of a batch file as a request. Two forms are taken: our own, an object with `prompt` or
// `messages` and settings beside it, and the one of OpenAI's batch files, where the same stands in
// `body`. What a line does not say is as on the command line. Pure: no model, no files.
// docs/batch.md tells the fields.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "app/options.h"
#include "base/json.h"
#include "base/status.h"

namespace facet {

inline constexpr size_t kMaxBatchIdBytes = 512;

/// Which request a line is, and in which form its result is to be.
struct BatchKey {
  enum class Form { kOwn, kOpenAi };
  Form form = Form::kOwn;
  int64_t line = 0;  ///< from 1
  Json id;           ///< a string or an integer; null while nothing better is known

  /// What tells ids apart: 1 and "1" are two.
  [[nodiscard]] std::string IdText() const { return id.Dump(); }
};

struct BatchRequest {
  Options options;     ///< the command line's, with what the line says
  Json messages;       ///< as ChatTemplate::Render takes them; null when `options.raw`
  std::string prompt;  ///< the text of a raw request
  Json tools;          ///< array, or null
  std::string model;   ///< the name that the line asks for; empty: none
};

/// Form and id of a line, which count also when the rest is refused: `key` is filled as far as the
/// line goes. A line of our own form without an id has its number as id.
Status ReadBatchKey(const Json& json, int64_t line, BatchKey* key);

/// The request of a line whose key has been read. Refused, naming the field: unknown fields, values
/// of a wrong kind, and what cannot be done (several choices, streaming, log probabilities). Ranges
/// of numbers are checked by Engine::Submit, messages and tools by ChatTemplate::Render.
Result<BatchRequest> ReadBatchRequest(const Json& json, const BatchKey& key,
                                      const Options& defaults);

}  // namespace facet
