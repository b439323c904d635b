// SPDX-License-Identifier: Apache-2.0
// Options of work without a reader: files of requests, and texts that are measured.
#include "app/option_tables.h"

namespace facet {
namespace {

constexpr Command kRun = Command::kRun;
constexpr Command kPerplexity = Command::kPerplexity;
constexpr Command kImatrix = Command::kImatrix;

}  // namespace

std::vector<OptionSpec> BatchOptions() {
  constexpr std::string_view kGroup = "Batch";
  return {
      {.name = "--batch",
       .placeholder = "FILE",
       .help =
           "answer every line of a JSONL file (prompt or messages, or OpenAI's batch form); - is "
           "standard input",
       .group = kGroup,
       .commands = {kRun},
       .target = &Options::batch},
      {.name = "--output",
       .letter = 'o',
       .placeholder = "FILE",
       .otherwise = "standard output",
       .help = "where the results of --batch go, one JSON line each, as they finish",
       .group = kGroup,
       .commands = {kRun},
       .target = &Options::output},
      {.name = "--resume",
       .help = "go on with the file of --output: lines whose id is answered there are left out",
       .group = kGroup,
       .commands = {kRun},
       .target = &Options::resume},
      {.name = "--parallel",
       .key = "parallel",
       .placeholder = "N",
       .otherwise = "8",
       .help = "lines of --batch that are answered at a time; the replies are the same with any "
               "number",
       .group = kGroup,
       .commands = {kRun},
       .target = &Options::parallel,
       .check = {.min = 1, .max = 256}},
  };
}

std::vector<OptionSpec> MeasureOptions() {
  constexpr std::string_view kGroup = "Text";
  return {
      {.name = "--ctx-size",
       .letter = 'c',
       .placeholder = "N",
       .otherwise = "512",
       .help = "tokens of a window; each begins with the model's first token",
       .group = kGroup,
       .commands = {kPerplexity, kImatrix},
       .target = &Options::ctx_size,
       .check = {.min = 2, .max = 1 << 20}},
      {.name = "--chunks",
       .placeholder = "N",
       .otherwise = "all",
       .help = "use only the first N windows",
       .group = kGroup,
       .commands = {kPerplexity, kImatrix},
       .target = &Options::chunks,
       .check = {.min = 1}},
      {.name = "--stride",
       .placeholder = "N",
       .otherwise = "half a window",
       .help = "tokens from one window to the next; each token is scored once, with at least a "
               "window less N tokens before it",
       .group = kGroup,
       .commands = {kPerplexity},
       .target = &Options::stride,
       .check = {.min = 1, .max = 1 << 20}},
      {.name = "--skip",
       .placeholder = "N",
       .otherwise = "0",
       .help = "do not score the first N tokens of each window; with half a window here and a "
               "whole one as stride, the windows are those of llama-perplexity",
       .group = kGroup,
       .commands = {kPerplexity},
       .target = &Options::skip,
       .check = {.min = 0, .max = 1 << 20}},
      {.name = "--against",
       .placeholder = "MODEL",
       .help = "also run this model (the unquantised one) and tell how far the two distributions "
               "are apart",
       .group = kGroup,
       .commands = {kPerplexity},
       .target = &Options::against},
      {.name = "--raw",
       .help = "take the text as it stands; without it, the text becomes an answer within the "
               "model's turns, which is what a chat model was trained on",
       .group = kGroup,
       .commands = {kPerplexity, kImatrix},
       .target = &Options::raw},
  };
}

}  // namespace facet
