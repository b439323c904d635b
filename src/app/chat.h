// SPDX-License-Identifier: Apache-2.0
// The chat on a terminal: reads lines, runs commands, shows replies as they come.
#pragma once

#include "app/generator.h"
#include "app/loaded_model.h"
#include "app/options.h"

namespace facet {

/// Until the user leaves; returns the exit code.
int RunChat(const Options& options, const LoadedModel& model, Generator* generator);

}  // namespace facet
