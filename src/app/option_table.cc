// SPDX-License-Identifier: Apache-2.0
// The table of options: those of generation here, those of the tools for files beside. Pure data;
// options.cc applies it, help.cc shows it.
#include "app/option_tables.h"

namespace facet {
namespace {

constexpr Command kRun = Command::kRun;
constexpr Command kServe = Command::kServe;
constexpr Command kTokenize = Command::kTokenize;
constexpr Command kInspect = Command::kInspect;
constexpr Command kPerplexity = Command::kPerplexity;
constexpr Command kImatrix = Command::kImatrix;
constexpr Command kQuantize = Command::kQuantize;
constexpr Command kSynth = Command::kSynth;
constexpr Command kBench = Command::kBench;
constexpr Command kCheck = Command::kCheck;

// All that do something with a model.
std::vector<Command> EveryTool() {
  std::vector<Command> all;
  for (const CommandSpec& spec : CommandTable()) {
    if (spec.id != Command::kHelp && spec.id != Command::kVersion) {
      all.push_back(spec.id);
    }
  }
  return all;
}

std::vector<Command> Everything() {
  std::vector<Command> all = EveryTool();
  all.insert(all.end(), {Command::kHelp, Command::kVersion});
  return all;
}

std::vector<OptionSpec> PromptOptions() {
  return {
      {.name = "--model",
       .letter = 'm',
       .key = "model",
       .placeholder = "PATH",
       .otherwise = "the embedded tiny model",
       .help = "Gemma 4 model: a .gguf file (of a split one, the first part), a Hugging Face "
               "directory, or a name that facet pull takes, which is downloaded once",
       .group = "Model",
       .commands = {kRun, kServe, kTokenize, kInspect, kPerplexity, kImatrix, kBench, kCheck},
       .target = &Options::model},
      {.name = "--prompt",
       .letter = 'p',
       .placeholder = "TEXT",
       .help = "the prompt; the same as giving it as words",
       .group = "Prompt",
       .commands = {kRun, kTokenize},
       .target = &Options::prompt},
      {.name = "--file",
       .letter = 'f',
       .placeholder = "FILE",
       .help =
           "read the prompt from a file (after the words, if there are any); - is standard input",
       .group = "Prompt",
       .commands = {kRun, kTokenize},
       .target = &Options::file},
      {.name = "--system",
       .aliases = {"--system-prompt"},
       .key = "system",
       .placeholder = "TEXT",
       .help = "instructions that stand before the conversation",
       .group = "Prompt",
       .commands = {kRun},
       .target = &Options::system},
      {.name = "--think",
       .key = "think",
       .help = "let the model reason before it answers (facet serve: where a request does not say)",
       .group = "Prompt",
       .commands = {kRun, kServe},
       .target = &Options::think},
      {.name = "--raw",
       .help = "no chat template: the text is continued as it stands; special tokens in it count "
               "as such",
       .group = "Prompt",
       .commands = {kRun},
       .target = &Options::raw},
  };
}

std::vector<OptionSpec> SamplingOptions() {
  constexpr std::string_view kGroup = "Sampling";
  return {
      {.name = "--temp",
       .aliases = {"--temperature"},
       .key = "temperature",
       .placeholder = "X",
       .otherwise = "the model's, else 1",
       .help = "randomness; 0 always takes the likeliest token",
       .group = kGroup,
       .commands = {kRun, kServe},
       .target = &Options::temperature,
       .check = {.min = 0, .max = 100},
       .is_tunable = true},
      {.name = "--top-k",
       .key = "top_k",
       .placeholder = "N",
       .otherwise = "the model's, else 64",
       .help = "draw among the N likeliest tokens; 0: all",
       .group = kGroup,
       .commands = {kRun, kServe},
       .target = &Options::top_k,
       .check = {.min = 0},
       .is_tunable = true},
      {.name = "--top-p",
       .key = "top_p",
       .placeholder = "X",
       .otherwise = "the model's, else 0.95",
       .help = "draw among the likeliest tokens that together have probability X; 1: all",
       .group = kGroup,
       .commands = {kRun, kServe},
       .target = &Options::top_p,
       .check = {.above = 0, .max = 1},
       .is_tunable = true},
      {.name = "--min-p",
       .key = "min_p",
       .placeholder = "X",
       .otherwise = "0",
       .help = "drop tokens below X times the probability of the likeliest",
       .group = kGroup,
       .commands = {kRun, kServe},
       .target = &Options::min_p,
       .check = {.min = 0, .max = 1},
       .is_tunable = true},
      {.name = "--repeat-penalty",
       .aliases = {"--repetition-penalty"},
       .key = "repeat_penalty",
       .placeholder = "X",
       .otherwise = "1",
       .help = "makes tokens of prompt and reply less likely; 1: off",
       .group = kGroup,
       .commands = {kRun, kServe},
       .target = &Options::repeat_penalty,
       .check = {.above = 0, .max = 10},
       .is_tunable = true},
      {.name = "--presence-penalty",
       .key = "presence_penalty",
       .placeholder = "X",
       .otherwise = "0",
       .help = "taken once from the score of each token that the reply has already",
       .group = kGroup,
       .commands = {kRun, kServe},
       .target = &Options::presence_penalty,
       .check = {.min = -2, .max = 2},
       .is_tunable = true},
      {.name = "--frequency-penalty",
       .key = "frequency_penalty",
       .placeholder = "X",
       .otherwise = "0",
       .help = "taken from a token's score for each time that the reply has it",
       .group = kGroup,
       .commands = {kRun, kServe},
       .target = &Options::frequency_penalty,
       .check = {.min = -2, .max = 2},
       .is_tunable = true},
      {.name = "--logit-bias",
       .placeholder = "ID=X",
       .help = "added to the score of token ID (facet tokenize shows ids); may be repeated",
       .group = kGroup,
       .commands = {kRun},
       .target = &Options::logit_bias},
      {.name = "--seed",
       .letter = 's',
       .key = "seed",
       .placeholder = "N",
       .otherwise = "another one each time",
       .help = "the same seed gives the same reply; --verbose tells the one in use",
       .group = kGroup,
       .commands = {kRun},
       .target = &Options::seed,
       .is_tunable = true},
  };
}

std::vector<OptionSpec> LengthOptions() {
  constexpr std::string_view kGroup = "Length and resources";
  return {
      {.name = "--max-tokens",
       .letter = 'n',
       .aliases = {"--predict", "--n-predict"},
       .key = "max_tokens",
       .placeholder = "N",
       .otherwise = "-1: until the model ends",
       .help = "most tokens of a reply",
       .group = kGroup,
       .commands = {kRun, kServe},
       .target = &Options::max_tokens,
       .check = {.min = 1, .also = -1},
       .is_tunable = true},
      {.name = "--stop",
       .key = "stop",
       .placeholder = "TEXT",
       .help = "end the reply where TEXT would begin; may be repeated",
       .group = kGroup,
       .commands = {kRun},
       .target = &Options::stop,
       .is_tunable = true},
      {.name = "--ctx-size",
       .letter = 'c',
       .key = "ctx_size",
       .placeholder = "N",
       .otherwise = "the model's, but at most 8192",
       .help =
           "positions for prompt and reply together, for which memory is set aside; 0: the model's",
       .group = kGroup,
       .commands = {kRun, kServe},
       .target = &Options::ctx_size,
       .check = {.min = 0, .max = 1 << 24}},
      {.name = "--threads",
       .letter = 't',
       .key = "threads",
       .placeholder = "N",
       .otherwise = "one per physical core",
       .help = "processor threads; results are the same with any number",
       .group = kGroup,
       .commands = {kRun, kServe, kPerplexity, kImatrix, kQuantize, kSynth, kBench, kCheck},
       .target = &Options::threads,
       .check = {.min = 1, .max = 1024}},
      {.name = "--kv-type",
       .key = "kv_type",
       .placeholder = "TYPE",
       .otherwise = "f16",
       .help = "how keys and values are stored: f32, f16, bf16 or q8_0",
       .group = kGroup,
       .commands = {kRun, kServe, kPerplexity, kImatrix, kBench, kCheck},
       .target = &Options::kv_type,
       .check = {.choices = {"f32", "f16", "bf16", "q8_0"}}},
      {.name = "--cpu-isa",
       .key = "cpu_isa",
       .placeholder = "NAME",
       .otherwise = "auto",
       .help = "instruction set: auto takes the best of this processor; facet inspect lists them",
       .group = kGroup,
       .commands = {kRun, kServe, kPerplexity, kImatrix, kBench, kCheck},
       .target = &Options::cpu_isa},
      {.name = "--no-pack",
       .key = "no_pack",
       .help = "use the weights as they lie in the file, without arranging them for the processor: "
               "starts at once, needs no memory of its own, and is slower; results are the same",
       .group = kGroup,
       .commands = {kRun, kServe, kPerplexity, kImatrix, kBench, kCheck},
       .target = &Options::no_pack},
  };
}

std::vector<OptionSpec> OutputOptions() {
  constexpr std::string_view kGroup = "Output";
  return {
      {.name = "--json",
       .help = "print JSON (facet run: one event per line)",
       .group = kGroup,
       .commands = {kRun, kTokenize, kInspect, kPerplexity, kBench, kCheck},
       .target = &Options::json},
      {.name = "--no-special",
       .help = "read special tokens in the text as plain text",
       .group = kGroup,
       .commands = {kTokenize},
       .target = &Options::no_special},
      {.name = "--ids",
       .help = "print the ids only, on one line",
       .group = kGroup,
       .commands = {kTokenize},
       .target = &Options::ids},
      {.name = "--decode",
       .help = "the text is a list of ids: print what they spell",
       .group = kGroup,
       .commands = {kTokenize},
       .target = &Options::decode},
      {.name = "--verbose",
       .letter = 'v',
       .key = "verbose",
       .help = "tell settings, times, tokens and bytes per second, and memory on standard error",
       .group = kGroup,
       .commands = {kRun},
       .target = &Options::verbose},
      {.name = "--trace",
       .placeholder = "FILE",
       .help = "write the request from text to tokens to events, as JSON lines",
       .group = kGroup,
       .commands = {kRun},
       .target = &Options::trace},
      {.name = "--no-color",
       .key = "no_color",
       .help = "no colours on the terminal (so does NO_COLOR)",
       .group = kGroup,
       .commands = {kRun},
       .target = &Options::no_color},
      {.name = "--markdown",
       .help = "the whole manual as Markdown",
       .group = kGroup,
       .commands = {Command::kHelp},
       .target = &Options::markdown,
       .is_hidden = true},
      {.name = "--config",
       .placeholder = "FILE",
       .otherwise = "~/.config/facet/config.toml, if it exists",
       .help = "configuration file to read",
       .group = "Other",
       .commands = EveryTool(),
       .target = &Options::config},
      {.name = "--help",
       .letter = 'h',
       .help = "show this help",
       .group = "Other",
       .commands = Everything(),
       .target = &Options::wants_help},
  };
}

}  // namespace

std::span<const OptionSpec> OptionTable() {
  static const std::vector<OptionSpec> kTable = [] {
    std::vector<OptionSpec> all;
    for (auto part : {PromptOptions(), MediaOptions(), DraftOptions(), ServeOptions(),
                      BatchOptions(), SamplingOptions(), LengthOptions(), MeasureOptions(),
                      BenchOptions(), FileOptions(), OutputOptions()}) {
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }();
  return kTable;
}

}  // namespace facet
