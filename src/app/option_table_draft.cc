// SPDX-License-Identifier: Apache-2.0
// Options of drafting: who guesses tokens ahead, and how many.
#include "app/option_tables.h"

namespace facet {

std::vector<OptionSpec> DraftOptions() {
  constexpr std::string_view kGroup = "Drafting";
  return {
      {.name = "--draft",
       .aliases = {"--model-draft", "--spec-draft-model", "-md"},
       .key = "draft",
       .placeholder = "MODEL",
       .otherwise = "none; of the embedded model, its own",
       .help = "the model's drafter (\"assistant\"), which guesses tokens that the model then "
               "verifies together: a .gguf file, a Hugging Face directory, or a name that facet "
               "pull takes. Replies are the same with and without it",
       .group = kGroup,
       .commands = {Command::kRun, Command::kServe, Command::kBench, Command::kInspect},
       .target = &Options::draft},
      {.name = "--spec",
       .key = "spec",
       .placeholder = "HOW",
       .otherwise = "auto",
       .help = "who guesses tokens ahead: mtp (the drafter), ngram (what followed the same tokens "
               "earlier in the text), auto (whichever pays), or off. Replies are the same with "
               "each; what gains no time is not used",
       .group = kGroup,
       .commands = {Command::kRun, Command::kServe, Command::kBench},
       .target = &Options::spec,
       .check = {.choices = {"auto", "mtp", "ngram", "off"}}},
      {.name = "--spec-max",
       .aliases = {"--draft-max", "--draft-n", "--spec-draft-n-max"},
       .key = "spec_max",
       .placeholder = "N",
       .otherwise = "8",
       .help = "most tokens that are guessed ahead at a time, of one reply",
       .group = kGroup,
       .commands = {Command::kRun, Command::kServe, Command::kBench},
       .target = &Options::spec_max,
       .check = {.min = 1, .max = kMaxDrafts}},
  };
}

}  // namespace facet
