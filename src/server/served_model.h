// SPDX-License-Identifier: Apache-2.0
// What the routes need to know of the model that is served. Plain data; the model outlives the
// server.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "chat/chat_template.h"
#include "chat/media_reader.h"
#include "engine/request.h"
#include "text/tokenizer.h"
#include "text/vocab.h"

namespace facet {

struct ServedModel {
  std::string name;     ///< what clients call it
  int64_t created = 0;  ///< seconds since 1970, of the model's file or the start
  const Vocab* vocab = nullptr;
  const Tokenizer* tokenizer = nullptr;
  const ChatTemplate* chat_template = nullptr;
  const MediaReader* media = nullptr;  ///< null: text only
  std::vector<int32_t> end_tokens;
  std::vector<int32_t> suppressed_tokens;
  SamplingParams sampling;         ///< where a request says nothing; the seed is drawn then
  int max_tokens = -1;             ///< where a request says nothing
  bool thinks = false;             ///< where a request says nothing
  SpecMode spec = SpecMode::kOff;  ///< the most that a request may ask for
  std::string system_fingerprint;  ///< changes when the numbers may
};

}  // namespace facet
