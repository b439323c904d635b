// SPDX-License-Identifier: Apache-2.0
// Which drafter goes with a model, and what the options say about drafting. A drafter is taken
// where it is named, or where the folder that was named as the model holds it; the embedded model
// has its own.
#pragma once

#include <optional>
#include <string>

#include "app/options.h"
#include "base/status.h"
#include "engine/engine.h"
#include "model/checkpoint.h"
#include "model/drafter_checkpoint.h"

namespace facet {

/// Whether a drafter would be asked: --spec is auto or mtp (and facet bench measures --drafting).
bool WantsDrafter(const Options& options);

/// What is refused of the options before anything is opened, once folders have become files:
/// --spec mtp where there is no drafter, and a number in place of one.
Status CheckDrafting(const Options& options);

/// The drafter for the model, or nothing. What was named must be there and fit. Options without
/// an effect are told in lines on standard error.
Result<std::optional<DrafterCheckpoint>> OpenDrafter(const Options& options,
                                                     const Checkpoint& checkpoint);

/// Why a drafter that was found beside a model cannot go with it, if it cannot. What is wrong with
/// the model itself is told when it is loaded.
Status CheckFoundDrafter(const std::string& path, const std::string& model);

/// What the engine is to do of it. A drafter that fails later is told in a warning.
void SetDrafting(const Options& options, EngineOptions* engine);

/// "auto, at most 8 tokens at a time, with tiny-drafter.gguf (80 MB)"; null: no drafter.
std::string DraftingText(const Options& options, const DrafterCheckpoint* drafter);

}  // namespace facet
