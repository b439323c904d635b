// SPDX-License-Identifier: Apache-2.0
// The table of commands. Pure data; help.cc shows it.
#include "app/options.h"

namespace facet {
namespace {

constexpr Command kRun = Command::kRun;
constexpr Command kServe = Command::kServe;
constexpr Command kTokenize = Command::kTokenize;
constexpr Command kInspect = Command::kInspect;
constexpr Command kConvert = Command::kConvert;

// Work with a model.
std::vector<CommandSpec> UsingModels() {
  return {
      {.id = kRun,
       .name = "run",
       .usage = "[OPTIONS] [PROMPT...]",
       .summary = "answer a prompt, or chat",
       .text = "Answers the prompt and ends. The prompt is what stands on the command line, in a "
               "file (-f) or on standard "
               "input. Without any of them, on a terminal, a chat begins.\n\n"
               "In a pipe only the answer's text goes to standard output, ended by a line break; "
               "everything else "
               "(notes, warnings, thoughts) stays out of it.",
       .examples = {{"facet run \"What is the capital of France?\"",
                     "one answer, from the embedded model"},
                    {"facet run -m gemma-4-E2B-it-Q4_K_M.gguf", "chat with a model"},
                    {"facet run -m MODEL --temp 0 -n 100 -f question.txt",
                     "repeatable, at most 100 tokens"},
                    {"facet run --image photo.jpg \"What is this?\"", "a picture"},
                    {"facet run -m MODEL --draft DRAFTER", "the same replies, sooner"},
                    {"git diff | facet run -m MODEL \"Explain this change:\" -",
                     "words, then standard input"},
                    {"facet run -m MODEL --json \"Hello\" | jq .", "events for another program"}},
       .max_words = SIZE_MAX},
      {.id = kServe,
       .name = "serve",
       .usage = "[OPTIONS]",
       .summary = "answer programs and chat front ends over HTTP, with OpenAI's API",
       .text =
           "Serves the model on http://127.0.0.1:8080/v1 until Ctrl-C or SIGTERM. Requests are "
           "computed together, and what was computed of a prompt is kept for the next one that "
           "begins like it. docs/http_api.md tells the routes, docs/deployment.md how to run it "
           "behind a proxy.\n\n"
           "Without a key only this machine is served. One line per request goes to standard "
           "error, without any text of the user's. The options of sampling, --max-tokens and "
           "--think stand in where a request says nothing. The exit code is 1 when the port is in "
           "use, 2 when the model is refused.",
       .examples = {{"facet serve -m gemma-4-E2B-it-Q4_K_M.gguf", "for programs on this machine"},
                    {"facet serve -m MODEL --host 0.0.0.0 --api-key-file keys.txt",
                     "for others, who need a key"},
                    {"facet serve -m MODEL --cors https://chat.example", "for a page in a browser"},
                    {"facet serve -m MODEL --ctx-size 32768 --check",
                     "what it would take, without serving"}},
       .wanted = "options only"},
      {.id = kTokenize,
       .name = "tokenize",
       .usage = "[OPTIONS] [TEXT...]",
       .summary = "show how a text becomes tokens",
       .text = "Prints one line per token: its id and its text. The text is what stands on the "
               "command line, in a file "
               "(-f) or on standard input. Nothing is added to it: no template, no first token.",
       .examples = {{"facet tokenize \"Hello, world\"", "a table of ids and texts"},
                    {"facet tokenize -m MODEL --ids -f text.txt", "ids on one line"},
                    {"facet tokenize --decode 100 200 300", "the other way round"}},
       .max_words = SIZE_MAX},
      {.id = Command::kPerplexity,
       .name = "perplexity",
       .usage = "[OPTIONS] TEXT",
       .summary = "measure how well a model predicts a text",
       .text =
           "Runs a text file through the model in windows and prints the perplexity with its "
           "uncertainty. With --against, also how far the model's predictions are from those of "
           "another: what quantising cost.",
       .examples = {{"facet perplexity -m e2b-q4_k_m.gguf text.txt", "one model"},
                    {"facet perplexity -m e2b-q4_k_m.gguf --against e2b-bf16.gguf text.txt",
                     "what was lost"}},
       .min_words = 1,
       .max_words = 1,
       .wanted = "one text file"}};
}

// Work with files.
std::vector<CommandSpec> MakingFiles() {
  return {
      {.id = kInspect,
       .name = "inspect",
       .usage = "[OPTIONS] [MODEL]",
       .summary = "show what a model file holds and what it needs",
       .text = "Shows the model's layers, tensor types, tokenizer, chat template, sampling "
               "defaults, and the memory that keys and values take for several context lengths. "
               "With --tensors, --check or --diff only the file's facts and that. Any GGUF or "
               "safetensors file is shown, also one that Facet does not run (a drafter, a "
               "projector), with the reason. The exit code is 2 only for a file that cannot be "
               "read.",
       .examples = {{"facet inspect gemma-4-E2B-it-Q4_K_M.gguf", "for people"},
                    {"facet inspect --json MODEL | jq .kv_memory", "for programs"},
                    {"facet inspect --diff q4_0.gguf bf16.gguf", "what quantising changed"}},
       .max_words = 1,
       .wanted = "one model"},
      {.id = kConvert,
       .name = "convert",
       .usage = "[OPTIONS] HFDIR OUT.gguf",
       .summary = "make a GGUF file of a Hugging Face directory",
       .text = "Reads config.json, safetensors, tokenizer and chat template, and writes one GGUF "
               "file that Facet and "
               "llama.cpp load. The file appears under its name only when it is complete.",
       .examples = {{"facet convert ~/models/gemma-4-E2B-it gemma-4-E2B-it.gguf",
                     "the same numbers as in the source"},
                    {"facet convert --outtype q8_0 ~/models/gemma-4-E2B-it e2b-q8_0.gguf",
                     "half the size of bf16"}},
       .min_words = 2,
       .max_words = 2,
       .wanted = "HFDIR OUT.gguf"},
      {.id = Command::kQuantize,
       .name = "quantize",
       .usage = "[OPTIONS] IN OUT.gguf",
       .summary = "make a smaller file of a model",
       .text =
           "Writes the model with its matrices in a type of fewer bits. Which tensors keep more "
           "than the type says is a fixed table (docs/quantization.md). The file appears under "
           "its name only when it is complete.",
       .examples = {{"facet quantize --type q4_k_m e2b-bf16.gguf e2b-q4_k_m.gguf",
                     "a quarter of the size"},
                    {"facet quantize --type q4_0 --imatrix e2b.imatrix.gguf e2b.gguf out.gguf",
                     "with weights of importance"},
                    {"facet quantize --type q4_k_m --tensor 'blk.*.ffn_down.weight=q6_k' IN OUT",
                     "more bits for some tensors"}},
       .min_words = 2,
       .max_words = 2,
       .wanted = "IN OUT.gguf"},
      {.id = Command::kImatrix,
       .name = "imatrix",
       .usage = "[OPTIONS] TEXT OUT.gguf",
       .summary = "measure which inputs of the matrices matter, for facet quantize",
       .text =
           "Runs a text file through the model and writes the mean square of every input of every "
           "matrix, in the form that llama.cpp reads and writes.",
       .examples = {{"facet imatrix -m e2b-bf16.gguf calibration.txt e2b.imatrix.gguf",
                     "a text of some ten thousand words does"}},
       .min_words = 2,
       .max_words = 2,
       .wanted = "TEXT OUT.gguf"},
      {.id = Command::kSynth,
       .name = "synth",
       .usage = "[OPTIONS] OUT.gguf",
       .summary = "make a checkpoint of real shape with random weights, for measurements",
       .text =
           "The file loads and runs like the real one and answers nonsense. Its speed and memory "
           "are those of the real one. Tensors have the types that facet quantize gives them (q4_0 "
           "without --type; of a projector f16). e2b:N has the first N layers of the whole model, "
           "at least those up to "
           "the first full one. A tokenizer with fewer than 262144 tokens is filled up.",
       .examples = {{"facet synth --shape e2b --type q4_0 e2b.gguf", "all layers of the E2B"},
                    {"facet synth --shape 26b-a4b:6 moe.gguf", "six layers of a large one"},
                    {"facet synth --shape e2b --drafter e2b-drafter.gguf", "its drafter"},
                    {"facet synth --shape e2b --projector mmproj-e2b.gguf", "its encoders"}},
       .min_words = 1,
       .max_words = 1,
       .wanted = "OUT.gguf"},
      {.id = Command::kPull,
       .name = "pull",
       .usage = "[OPTIONS] NAME",
       .summary = "download a model",
       .text =
           "NAME is a URL, hf:OWNER/REPOSITORY[@REVISION]/FILE, or hf:OWNER/REPOSITORY[:TAG], "
           "where TAG is a word of the file's name such as Q8_0 (without one: the only GGUF file, "
           "the one in Q4_K_M, or the directory of safetensors). Of a split model all parts are "
           "fetched. The path is printed when everything is there. A download that was cut goes on "
           "where it ended; what is there already is not asked for again. -m takes the same "
           "names.\n\n"
           "Sizes and SHA-256 digests are checked against what the server announces. The access "
           "token, which private and gated models need, is sent to the server of the hf: names "
           "only.",
       .examples = {{"facet pull hf:OWNER/REPOSITORY/model-Q4_K_M.gguf", "one file"},
                    {"facet run -m hf:OWNER/REPOSITORY:Q8_0 \"Hello\"",
                     "downloaded the first time, run at once from then on"},
                    {"facet pull --output e2b.gguf https://HOST/model.gguf", "any URL"}},
       .min_words = 1,
       .max_words = 1,
       .wanted = "one NAME"}};
}

// Measuring and proving.
std::vector<CommandSpec> AboutTheMachine() {
  return {
      {.id = Command::kBench,
       .name = "bench",
       .usage = "[OPTIONS]",
       .summary = "measure how fast this machine runs a model",
       .text = "Measures prompts (tokens per second of reading), replies (of writing, at several "
               "depths of context) and several replies at once, and how near each is to what the "
               "machine's memory and arithmetic allow, which is measured first "
               "(docs/performance.md). Options are named as those of llama-bench. Ctrl-C ends it "
               "with what is there.",
       .examples = {{"facet bench -m e2b-q4_0.gguf", "a table, in a minute or two"},
                    {"facet bench --synth e2b --type q8_0",
                     "random weights of real shape, without a file"},
                    {"facet bench -m MODEL -p 0 -n 64 -d 8192 --parallel 1,2 --json",
                     "long contexts, for programs"},
                    {"facet bench -m MODEL --draft DRAFTER -p 0 -n 0 --drafting",
                     "what drafts cost, and how many must be right to gain by them"}}},
      {.id = Command::kCheck,
       .name = "check",
       .usage = "[OPTIONS]",
       .summary = "prove that batching, threads and instruction sets change no bit",
       .text =
           "Computes drawn prompts in chunks, beside neighbours, with drafts that are "
           "rejected, on any number of threads, with every instruction set of this processor, "
           "packed or not, and compares the logits bit for bit with those of one row at a time "
           "(docs/numbers.md). -t, --cpu-isa and --no-pack restrict what is drawn; KV types are "
           "checked one at a time. The exit code is 0 when all are equal, 1 otherwise.",
       .examples = {{"facet check --bits -m e2b-q4_0.gguf", "on your own model"},
                    {"facet check --bits --seconds 600 --json -m MODEL", "longer, for programs"}}}};
}

std::vector<CommandSpec> AboutTheProgram() {
  return {
      {.id = Command::kHelp,
       .name = "help",
       .usage = "[COMMAND]",
       .summary = "show the help of the program or of a command",
       .text = "",
       .examples = {{"facet help run", "the same as facet run --help"}},
       .max_words = 1,
       .wanted = "one command"},
      {.id = Command::kVersion,
       .name = "version",
       .usage = "",
       .summary = "show the version",
       .text = "",
       .examples = {},
       .wanted = "nothing"},
  };
}

}  // namespace

std::span<const CommandSpec> CommandTable() {
  static const std::vector<CommandSpec> kTable = [] {
    std::vector<CommandSpec> all;
    for (auto part : {UsingModels(), MakingFiles(), AboutTheMachine(), AboutTheProgram()}) {
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }();
  return kTable;
}

}  // namespace facet
