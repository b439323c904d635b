// SPDX-License-Identifier: Apache-2.0
// The options of facet bench and facet check.
#include "app/option_tables.h"

namespace facet {
namespace {

constexpr Command kBench = Command::kBench;
constexpr Command kCheck = Command::kCheck;

std::vector<OptionSpec> MeasuredModelOptions() {
  constexpr std::string_view kGroup = "Model";
  return {
      {.name = "--synth",
       .placeholder = "SHAPE",
       .help = "measure a checkpoint of random weights in place of -m: e2b, e4b, 12b, 26b-a4b "
               "or 31b, all layers or the first N of them (e2b:6); it is made the first time and "
               "kept in the cache",
       .group = kGroup,
       .commands = {kBench},
       .target = &Options::synth},
      {.name = "--type",
       .placeholder = "TYPE",
       .otherwise = "q4_0",
       .help = "type of the weights of --synth, as facet synth has it",
       .group = kGroup,
       .commands = {kBench},
       .target = &Options::type},
  };
}

std::vector<OptionSpec> MeasurementOptions() {
  constexpr std::string_view kGroup = "Measurement";
  return {
      {.name = "--n-prompt",
       .letter = 'p',
       .placeholder = "LIST",
       .otherwise = "128,512,2048",
       .help = "lengths of prompts; 0: none",
       .group = kGroup,
       .commands = {kBench},
       .target = &Options::bench_prompts},
      {.name = "--n-gen",
       .letter = 'n',
       .placeholder = "LIST",
       .otherwise = "32",
       .help = "tokens to generate, for each sequence; 0: none",
       .group = kGroup,
       .commands = {kBench},
       .target = &Options::bench_gens},
      {.name = "--n-depth",
       .letter = 'd',
       .placeholder = "LIST",
       .otherwise = "0,512,4096",
       .help = "tokens that each sequence has before it generates; several sequences are measured "
               "at the first of them",
       .group = kGroup,
       .commands = {kBench},
       .target = &Options::bench_depths},
      {.name = "--parallel",
       .aliases = {"--npl"},
       .placeholder = "LIST",
       .otherwise = "1,4,8,16",
       .help = "sequences that generate together",
       .group = kGroup,
       .commands = {kBench},
       .target = &Options::bench_parallel},
      {.name = "--repetitions",
       .letter = 'r',
       .placeholder = "N",
       .otherwise = "3",
       .help = "times that each case is measured, after a warm-up",
       .group = kGroup,
       .commands = {kBench},
       .target = &Options::repetitions,
       .check = {.min = 1, .max = 1000}},
      {.name = "--drafting",
       .help =
           "also measure what guessing tokens costs: steps of 1 to 16 rows that are verified, "
           "and chains of up to --spec-max drafts where there is a drafter, of one sequence and "
           "of four at the first of --n-depth; from these the share of drafts that "
           "must be accepted to gain by it",
       .group = kGroup,
       .commands = {kBench},
       .target = &Options::drafting},
      {.name = "--quick",
       .help = "seconds in place of a minute: -p 128 -n 8 -d 0 --parallel 1,4 -r 2, unless given",
       .group = kGroup,
       .commands = {kBench},
       .target = &Options::quick},
  };
}

std::vector<OptionSpec> CheckOptions() {
  constexpr std::string_view kGroup = "Check";
  return {
      {.name = "--bits",
       .help =
           "compute drawn prompts in many ways and compare the logits bit for bit with those of "
           "one row at a time (docs/numbers.md)",
       .group = kGroup,
       .commands = {kCheck},
       .target = &Options::bits},
      {.name = "--seconds",
       .placeholder = "N",
       .otherwise = "20",
       .help = "time that it may take; more of it checks more, and a large model needs more",
       .group = kGroup,
       .commands = {kCheck},
       .target = &Options::check_seconds,
       .check = {.min = 0, .max = 1'000'000}},
      {.name = "--seed",
       .placeholder = "N",
       .otherwise = "another one each time",
       .help = "what is drawn follows from it",
       .group = kGroup,
       .commands = {kCheck},
       .target = &Options::seed},
  };
}

}  // namespace

std::vector<OptionSpec> BenchOptions() {
  std::vector<OptionSpec> all = MeasuredModelOptions();
  for (const std::vector<OptionSpec>& part : {MeasurementOptions(), CheckOptions()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

}  // namespace facet
