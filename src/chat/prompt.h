// SPDX-License-Identifier: Apache-2.0
// A prompt between the template and the model: runs of text, each with the mark whether control
// tokens in it count, and their token ids. Engine and tests take prompts from here without knowing
// templates.
#pragma once

#include <vector>

#include "text/tokenizer.h"
#include "text/vocab.h"

namespace facet {

/// In order. Runs the template wrote have parse_special set, what came from outside has not.
struct Prompt {
  std::vector<TextRun> runs;
};

/// The ids of the prompt with exactly one bos at the start: the one that the template wrote (only
/// one, where it wrote several), else one of ours. A vocabulary without bos adds none. `tokenizer`
/// must be of `vocab`.
std::vector<int> TokenizePrompt(const Tokenizer& tokenizer, const Vocab& vocab,
                                const Prompt& prompt);

}  // namespace facet
