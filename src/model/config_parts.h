// SPDX-License-Identifier: Apache-2.0
// What is read and written alike for a text model and for a drafter, whose layers are described by
// the same keys. Nothing is checked against anything else here.
#pragma once

#include <string_view>

#include "base/status.h"
#include "format/gguf.h"
#include "model/config.h"
#include "model/gguf_keys.h"
#include "model/json_members.h"

namespace facet {

/// From the keys of one architecture, "gemma4.block_count" and so on. n_vocab is 0 where the file
/// has neither a number nor a tokenizer.
Result<Config> ConfigFromGgufKeys(const gguf::Metadata& metadata, const GgufKeys& keys);

/// From text_config.
Result<Config> ConfigFromTextMembers(const JsonMembers& text);

/// general.architecture, general.name and the keys of `architecture` but the cap of the logits,
/// which only a text model has.
void SetGgufKeys(const Config& config, std::string_view architecture, gguf::Metadata* metadata);

}  // namespace facet
