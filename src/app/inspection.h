// SPDX-License-Identifier: Apache-2.0
// Everything `facet inspect` knows of a model, as data, and as text for people. Nothing is computed
// with the weights.
#pragma once

#include <string>

#include "app/loaded_model.h"
#include "base/json.h"

namespace facet {

/// Members: model, layers, tensor_types, tokenizer, chat_template, sampling, kv_memory, compute
/// (docs/usage.md).
Json Inspect(const LoadedModel& model);

/// The same as tables. Names from the file are made harmless for a terminal.
std::string ShowInspection(const Json& inspection);

}  // namespace facet
