// SPDX-License-Identifier: Apache-2.0
#include "engine/request.h"

#include "base/check.h"

namespace facet {

std::string_view NameOf(FinishReason reason) {
  switch (reason) {
    case FinishReason::kEndToken:
    case FinishReason::kStopString:
      return "stop";
    case FinishReason::kMaxTokens:
    case FinishReason::kContext:
      return "length";
    case FinishReason::kRepetition:
      return "repetition";
    case FinishReason::kCancelled:
      return "cancelled";
    case FinishReason::kQueueTimeout:
      return "timeout";
    case FinishReason::kError:
      return "error";
  }
  FACET_CHECK(false);
}

}  // namespace facet
