// SPDX-License-Identifier: Apache-2.0
// Every setting of the program, declared once. One row of the table (option_table*.cc) gives the
// flag, the key of the configuration file, the environment variable, the help text, the manual page
// and the check, so that none of them can drift from the others. Values come from four places; the
// first that has one wins: command line, environment (FACET_KEY), configuration file, default.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/status.h"
#include "chat/media_prompt.h"
#include "engine/request.h"

namespace facet {

enum class Command {
  kRun,
  kServe,
  kTokenize,
  kInspect,
  kConvert,
  kQuantize,
  kImatrix,
  kPerplexity,
  kSynth,
  kPull,
  kBench,
  kCheck,
  kHelp,
  kVersion
};

using LogitBias = std::vector<std::pair<int32_t, float>>;

/// A picture, a sound or a film that was named on the command line or in a chat.
struct MediaFile {
  MediaPartKind kind = MediaPartKind::kImage;
  std::string path;

  bool operator==(const MediaFile&) const = default;
};

/// What the user asked for, with defaults filled in. Values that default to something of the model
/// are optional.
struct Options {
  Command command = Command::kHelp;
  std::vector<std::string> words;  ///< what stands on the command line beside the options
  bool wants_help = false;

  std::string model;  ///< a file, a folder, a name on the network; empty: the embedded model
  std::string config;
  std::string prompt;
  std::string file;
  std::string system;
  bool think = false;
  bool raw = false;

  std::vector<MediaFile> media;  ///< in the order of the command line
  std::string mmproj;            ///< path; empty: the one beside the model
  bool no_mmproj = false;
  std::optional<int> image_tokens;
  std::string image_reading = "seen";
  std::string long_audio = "cut";
  int video_frames = 32;
  std::optional<float> video_fps;
  std::string media_helper;  ///< path; empty: looked for
  bool media_fetch = false;
  int media_cache = 256;  ///< MiB

  std::string draft;  ///< as `model`; empty: none, or the embedded model's own
  SpecMode spec = SpecMode::kAuto;
  int spec_max = 8;
  bool drafting = false;

  std::optional<float> temperature;
  std::optional<int> top_k;
  std::optional<float> top_p;
  float min_p = 0.0F;
  float repeat_penalty = 1.0F;
  float presence_penalty = 0.0F;
  float frequency_penalty = 0.0F;
  std::optional<uint64_t> seed;
  LogitBias logit_bias;

  int max_tokens = -1;
  std::vector<std::string> stop;

  std::optional<int> ctx_size;
  int threads = 0;
  std::string kv_type = "f16";
  std::string cpu_isa = "auto";
  bool no_pack = false;

  bool json = false;
  bool verbose = false;
  bool no_color = false;
  std::string trace;

  bool no_special = false;
  bool ids = false;
  bool decode = false;

  std::string batch;   ///< file of requests; empty: none
  std::string output;  ///< file; empty: standard output, or a name in the cache
  bool resume = false;
  std::optional<int> parallel;  ///< lines or replies at a time

  std::optional<int> chunks;
  std::optional<int> stride;
  int skip = 0;
  std::string against;

  bool tensors = false;
  bool check = false;
  std::string diff;

  std::string outtype = "auto";
  std::string type;
  std::vector<std::string> tensor;  ///< "NAME=TYPE"
  std::string imatrix;
  bool pure = false;
  bool allow_requantize = false;
  bool dry_run = false;

  std::string bench_prompts;  ///< lists of numbers; empty: the defaults of bench_plan.h
  std::string bench_gens;
  std::string bench_depths;
  std::string bench_parallel;
  std::optional<int> repetitions;
  bool quick = false;
  std::string synth;  ///< shape of a random checkpoint to be measured; empty: none

  bool bits = false;
  int check_seconds = 20;

  std::string host = "127.0.0.1";
  int port = 8080;
  std::string alias;
  std::vector<std::string> api_key;
  std::string api_key_file;
  bool insecure = false;
  std::vector<std::string> cors;
  int batch_rows = 512;
  int batch_rows_beside = 64;
  int cache_size = 512;    ///< MiB
  std::string cache_file;  ///< empty: none
  bool no_prefix_cache = false;
  int max_queue = 256;
  int queue_timeout = 300;    ///< seconds; 0: never
  int request_timeout = 0;    ///< seconds; 0: never
  int max_body = 64;          ///< MiB
  int shutdown_timeout = 30;  ///< seconds
  std::string log_format = "text";
  bool log_text = false;

  std::string name;
  std::string split_max_size;
  std::string shape = "e2b";
  std::string vocab;
  bool drafter = false;
  bool no_centroids = false;
  std::string tokenizer;
  bool projector = false;

  std::string sha256;
  std::string hf_endpoint = "https://huggingface.co";
  std::string token_file;
  std::string cache_dir;

  bool markdown = false;
};

/// The field that an option sets; its type says how the value is read. A bool is a flag; a vector
/// takes one item for each time the option is given. Several options add to the one of media files.
using OptionTarget =
    std::variant<bool Options::*, int Options::*, float Options::*, std::string Options::*,
                 std::optional<int> Options::*, std::optional<float> Options::*,
                 std::optional<uint64_t> Options::*, std::vector<std::string> Options::*,
                 std::vector<MediaFile> Options::*, LogitBias Options::*, SpecMode Options::*>;

/// What a value must satisfy.
struct OptionCheck {
  std::optional<double> min = {};
  std::optional<double> above = {};  ///< greater than this, in place of min
  std::optional<double> max = {};
  std::optional<int> also = {};  ///< one more value that is allowed, outside of the range
  std::vector<std::string_view> choices = {};  ///< of a text or a whole number; empty: any
};

struct OptionSpec {
  std::string_view name;  ///< "--max-tokens"
  char letter = 0;        ///< 'n' for -n
  std::vector<std::string_view> aliases =
      {};                     ///< other spellings, as users of other programs know them
  std::string_view key = {};  ///< "max_tokens" in the configuration file; empty: command line only
  std::string_view placeholder = {};  ///< "N"; empty for a flag
  std::string_view otherwise = {};    ///< the default, as the help tells it; may be empty
  std::string_view help;
  std::string_view group;         ///< heading in the help
  std::vector<Command> commands;  ///< that take it
  OptionTarget target;
  OptionCheck check = {};
  MediaPartKind media_kind = {};  ///< of the media files that it adds
  bool is_hidden = false;         ///< not in the help
  bool is_tunable = false;        ///< can be changed within a chat (/params)

  [[nodiscard]] bool is_flag() const { return std::holds_alternative<bool Options::*>(target); }
  [[nodiscard]] bool is_repeatable() const;
  [[nodiscard]] bool IsFor(Command command) const;
};

struct Example {
  std::string_view line;
  std::string_view what;
};

struct CommandSpec {
  Command id;
  std::string_view name;
  std::string_view usage;    ///< what follows "facet NAME "
  std::string_view summary;  ///< one line
  std::string_view text;     ///< paragraphs of the help
  std::vector<Example> examples = {};
  size_t min_words = 0;  ///< words beside the options
  size_t max_words = 0;
  std::string_view wanted = {};  ///< what the words should be, for the error
};

std::span<const OptionSpec> OptionTable();
std::span<const CommandSpec> CommandTable();
const CommandSpec& SpecOf(Command command);
const OptionSpec* FindOptionByKey(std::string_view key);

/// Sets the option's field; replaces what an earlier source set (media files, which the command
/// line alone can name, are added). `where` names the source in errors
/// ("--top-p").
Status ApplyOption(const OptionSpec& spec, std::span<const std::string> values,
                   const std::string& where, Options* options);

/// The option's present value as /params shows it; "default" when it is the model's.
std::string ShowOption(const OptionSpec& spec, const Options& options);

/// Reads an environment variable; empty text counts as not set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

/// Everything together: command line, environment, configuration file.
Result<Options> ReadOptions(std::span<const std::string> arguments, const Environment& environment);

}  // namespace facet
