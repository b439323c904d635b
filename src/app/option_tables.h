// SPDX-License-Identifier: Apache-2.0
// The parts of the option table that stand in files of their own. Pure data; OptionTable joins
// them.
#pragma once

#include <vector>

#include "app/options.h"

namespace facet {

/// facet run --batch.
std::vector<OptionSpec> BatchOptions();
/// facet perplexity and facet imatrix: the text that goes through the model.
std::vector<OptionSpec> MeasureOptions();
/// facet bench and facet check: what is measured and compared.
std::vector<OptionSpec> BenchOptions();
/// facet serve: what it alone has.
std::vector<OptionSpec> ServeOptions();
/// Pictures, sound and video, of all commands that take them.
std::vector<OptionSpec> MediaOptions();
/// Tokens that are guessed ahead, of all commands that generate.
std::vector<OptionSpec> DraftOptions();
/// facet inspect, convert, quantize, synth and pull.
std::vector<OptionSpec> FileOptions();

}  // namespace facet
