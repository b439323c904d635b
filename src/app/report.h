// SPDX-License-Identifier: Apache-2.0
// What --verbose and /stats tell about a run.
#pragma once

#include <string>

#include "app/loaded_model.h"
#include "engine/request.h"

namespace facet {

/// Model, memory, drafting, media and sampling, before a reply, on standard error.
void NoteSettings(const Options& options, const LoadedModel& model, const Request& request,
                  double load_s, int n_context);

/// Tokens, times and rates of a reply: two lines, and one about its drafts where there were some.
/// `bytes_per_token`: weights that a step reads for one token.
std::string SpeedText(const RequestStats& stats, double bytes_per_token);

/// SpeedText and the memory in use, after a reply, on standard error.
void NoteSpeed(const RequestStats& stats, double bytes_per_token);

}  // namespace facet
