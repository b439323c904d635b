// SPDX-License-Identifier: Apache-2.0
// The lines that a batch writes: a reply or an error, in the form of the request's own line. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/batch_line.h"
#include "base/json.h"
#include "chat/reply.h"
#include "engine/request.h"

namespace facet {

/// A finished reply.
struct BatchReply {
  FinishReason reason = FinishReason::kEndToken;
  RequestStats stats;
  std::string content;
  std::string thought;
  std::vector<ToolCall> calls;
  uint64_t seed = 0;  ///< that draws the same reply again
  std::string model;  ///< as the result names it

  void Add(const ReplyDelta& delta);
};

/// Who is to blame for a line without a reply.
enum class BatchFault { kRequest, kEngine };

/// `now_s`: seconds since 1970, which OpenAI's form tells.
Json ResultLine(const BatchKey& key, const BatchReply& reply, int64_t now_s);

Json ErrorLine(const BatchKey& key, BatchFault fault, const std::string& message);

/// The id of a result, as BatchKey::IdText has it, when it holds a reply; empty for an error's.
/// Refused when it is no line that ResultLine or ErrorLine could have made.
Result<std::string> AnsweredId(const Json& result);

}  // namespace facet
