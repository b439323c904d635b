// SPDX-License-Identifier: Apache-2.0
// Options of the commands that make, change, fetch and examine files.
#include "app/option_tables.h"

namespace facet {
namespace {

constexpr Command kRun = Command::kRun;
constexpr Command kTokenize = Command::kTokenize;
constexpr Command kPerplexity = Command::kPerplexity;
constexpr Command kInspect = Command::kInspect;
constexpr Command kConvert = Command::kConvert;
constexpr Command kQuantize = Command::kQuantize;
constexpr Command kImatrix = Command::kImatrix;
constexpr Command kSynth = Command::kSynth;
constexpr Command kPull = Command::kPull;

std::vector<OptionSpec> InspectOptions() {
  constexpr std::string_view kGroup = "Inspection";
  return {
      {.name = "--tensors",
       .help = "list the metadata and every tensor: shape, type, bytes and place in the file",
       .group = kGroup,
       .commands = {kInspect},
       .target = &Options::tensors},
      {.name = "--check",
       .help = "read every value and tell of NaN and infinities, for which the exit code is 1, and "
               "of rows of zeros",
       .group = kGroup,
       .commands = {kInspect},
       .target = &Options::check},
      {.name = "--diff",
       .placeholder = "MODEL",
       .help = "show what is different in another file: metadata, tensors and how far their values "
               "are apart; the exit code is 1 if anything is",
       .group = kGroup,
       .commands = {kInspect},
       .target = &Options::diff},
  };
}

std::vector<OptionSpec> TypeOptions() {
  constexpr std::string_view kGroup = "Types";
  return {
      {.name = "--outtype",
       .placeholder = "TYPE",
       .otherwise = "auto",
       .help = "type of the large tensors: auto (as in the source), bf16, f16, f32 or q8_0",
       .group = kGroup,
       .commands = {kConvert},
       .target = &Options::outtype,
       .check = {.choices = {"auto", "bf16", "f16", "f32", "q8_0"}}},
      {.name = "--type",
       .placeholder = "TYPE",
       .help =
           "what the file becomes: q4_k_m, q4_k_s, q5_k_m, q5_k_s, q6_k, q8_0, q4_0, q4_1, q5_0, "
           "q5_1, q3_k_s, q3_k_m, q3_k_l, q2_k, iq4_nl, iq4_xs, mxfp4, bf16, f16 or f32",
       .group = kGroup,
       .commands = {kQuantize, kSynth},
       .target = &Options::type},
      {.name = "--tensor",
       .aliases = {"--tensor-type"},
       .placeholder = "NAME=TYPE",
       .help = "type of the tensors whose name matches NAME (* stands for anything); may be "
               "repeated, the last that matches counts",
       .group = kGroup,
       .commands = {kQuantize},
       .target = &Options::tensor},
      {.name = "--imatrix",
       .placeholder = "FILE",
       .help =
           "how much each input of a matrix matters (facet imatrix makes one; llama.cpp's files "
           "are read too)",
       .group = kGroup,
       .commands = {kQuantize},
       .target = &Options::imatrix},
      {.name = "--pure",
       .help = "the same type for every matrix",
       .group = kGroup,
       .commands = {kQuantize},
       .target = &Options::pure},
      {.name = "--allow-requantize",
       .help = "quantise tensors that are quantised already; costs quality",
       .group = kGroup,
       .commands = {kQuantize},
       .target = &Options::allow_requantize},
      {.name = "--dry-run",
       .help = "only tell what would be written",
       .group = kGroup,
       .commands = {kQuantize},
       .target = &Options::dry_run},
  };
}

std::vector<OptionSpec> MakeOptions() {
  constexpr std::string_view kGroup = "File";
  return {
      {.name = "--name",
       .placeholder = "TEXT",
       .otherwise = "the directory's name",
       .help = "name of the model, as the file tells it",
       .group = kGroup,
       .commands = {kConvert},
       .target = &Options::name},
      {.name = "--no-centroids",
       .help = "of a drafter: leave out the centroid head, with which llama.cpp loads no file",
       .group = kGroup,
       .commands = {kConvert, kSynth},
       .target = &Options::no_centroids},
      {.name = "--tokenizer",
       .placeholder = "PATH",
       .help = "of a drafter without a tokenizer of its own: the directory or GGUF file of its "
               "target, which lends one; llama.cpp needs it, Facet does not",
       .group = kGroup,
       .commands = {kConvert},
       .target = &Options::tokenizer},
      {.name = "--split-max-size",
       .placeholder = "SIZE",
       .help = "write parts of at most this size (300M, 2G): OUT-00001-of-0000N.gguf",
       .group = kGroup,
       .commands = {kConvert},
       .target = &Options::split_max_size},
      {.name = "--shape",
       .placeholder = "SHAPE",
       .otherwise = "e2b",
       .help = "e2b, e4b, 12b, 26b-a4b or 31b, all layers or the first N of them (e2b:26)",
       .group = kGroup,
       .commands = {kSynth},
       .target = &Options::shape},
      {.name = "--vocab",
       .placeholder = "FILE",
       .otherwise = "a small one",
       .help = "GGUF file whose tokenizer and chat template are taken",
       .group = kGroup,
       .commands = {kSynth},
       .target = &Options::vocab},
      {.name = "--drafter",
       .help = "make the drafter of that shape in place of the model",
       .group = kGroup,
       .commands = {kSynth},
       .target = &Options::drafter},
      {.name = "--projector",
       .help = "make the projector (encoders of pictures and sound) of that shape",
       .group = kGroup,
       .commands = {kSynth},
       .target = &Options::projector},
      {.name = "--seed",
       .letter = 's',
       .placeholder = "N",
       .otherwise = "0",
       .help = "the same seed gives the same file",
       .group = kGroup,
       .commands = {kSynth},
       .target = &Options::seed},
  };
}

/// All that take a model, and so the name of one that is to be downloaded.
std::vector<Command> EveryModelUser() {
  return {kRun,     Command::kServe, kTokenize, kInspect, kConvert,        kQuantize,
          kImatrix, kPerplexity,     kSynth,    kPull,    Command::kBench, Command::kCheck};
}

std::vector<OptionSpec> PullOptions() {
  constexpr std::string_view kGroup = "Download";
  return {
      {.name = "--output",
       .letter = 'o',
       .placeholder = "FILE",
       .otherwise = "a name in the cache",
       .help = "where the file goes",
       .group = kGroup,
       .commands = {kPull},
       .target = &Options::output},
      {.name = "--sha256",
       .placeholder = "HEX",
       .help = "refuse anything else",
       .group = kGroup,
       .commands = {kPull},
       .target = &Options::sha256},
      {.name = "--hf-endpoint",
       .key = "hf_endpoint",
       .placeholder = "URL",
       .otherwise = "https://huggingface.co",
       .help = "server of the names that begin with hf:",
       .group = kGroup,
       .commands = EveryModelUser(),
       .target = &Options::hf_endpoint},
      {.name = "--token-file",
       .key = "token_file",
       .placeholder = "FILE",
       .otherwise = "HF_TOKEN, else ~/.cache/huggingface/token",
       .help = "file with the access token that is sent to that server",
       .group = kGroup,
       .commands = EveryModelUser(),
       .target = &Options::token_file},
      {.name = "--cache-dir",
       .key = "cache_dir",
       .placeholder = "DIR",
       .otherwise = "~/.cache/facet/models",
       .help = "where downloads are kept",
       .group = kGroup,
       .commands = EveryModelUser(),
       .target = &Options::cache_dir},
  };
}

}  // namespace

std::vector<OptionSpec> FileOptions() {
  std::vector<OptionSpec> all;
  for (auto part : {InspectOptions(), TypeOptions(), MakeOptions(), PullOptions()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

}  // namespace facet
