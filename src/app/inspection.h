// SPDX-License-Identifier: Apache-2.0
// Everything `facet inspect` knows of a file of tensors, and of a model where it is one, as data.
// Nothing is computed with the weights.
#pragma once

#include <string>

#include "app/inspection_source.h"
#include "app/loaded_model.h"
#include "base/json.h"
#include "model/drafter_checkpoint.h"
#include "model/media_checkpoint.h"

namespace facet {

/// Of any file. Members: file, tensor_types (docs/usage.md).
Json Inspect(const InspectionSource& source);

/// Adds what a text model has besides: model, layers, tokenizer, chat_template, sampling,
/// kv_memory, compute.
void AddModel(const LoadedModel& model, Json* inspection);

/// Encoders of pictures and sound: `encoders`. `refused` says why they do not go with the model, or
/// is empty.
void AddEncoders(const MediaCheckpoint& media, const std::string& refused, Json* inspection);

/// Adds a drafter: `drafter`. `refused` says why it does not go with the model, or is empty.
void AddDrafter(const DrafterCheckpoint& drafter, const std::string& refused, Json* inspection);

/// Adds the member packed_weights: what is arranged for this processor while loading.
void AddPacking(const Weights& weights, Json* inspection);

/// Adds the members metadata (of an array at most the first 1024 elements) and tensors.
void AddTensors(const InspectionSource& source, Json* inspection);

}  // namespace facet
