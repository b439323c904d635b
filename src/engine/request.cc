// SPDX-License-Identifier: Apache-2.0
#include "engine/request.h"

#include "base/check.h"

namespace facet {

std::string_view NameOf(SpecMode mode) {
  switch (mode) {
    case SpecMode::kOff:
      return "off";
    case SpecMode::kNgram:
      return "ngram";
    case SpecMode::kMtp:
      return "mtp";
    case SpecMode::kAuto:
      return "auto";
  }
  FACET_CHECK(false);
}

std::optional<SpecMode> FindSpecMode(std::string_view name) {
  for (const SpecMode mode : {SpecMode::kOff, SpecMode::kNgram, SpecMode::kMtp, SpecMode::kAuto}) {
    if (NameOf(mode) == name) {
      return mode;
    }
  }
  return std::nullopt;
}

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
