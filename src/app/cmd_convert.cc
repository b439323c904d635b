// SPDX-License-Identifier: Apache-2.0
// `facet convert`: a Hugging Face directory into GGUF files.
#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <optional>

#include "app/commands.h"
#include "app/progress.h"
#include "app/terminal.h"
#include "base/file.h"
#include "convert/convert.h"

namespace facet {
namespace {

/// "300M", "2G", "500K" or bytes. Units are decimal, as those of llama.cpp's gguf-split.
Result<uint64_t> ParseSize(const std::string& text) {
  uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [after, error] = std::from_chars(text.data(), end, number);
  const std::string_view unit(after, static_cast<size_t>(end - after));
  const uint64_t scale = unit.empty()                 ? 1
                         : unit == "K" || unit == "k" ? 1'000
                         : unit == "M" || unit == "m" ? 1'000'000
                         : unit == "G" || unit == "g" ? 1'000'000'000
                                                      : 0;
  if (error != std::errc() || number == 0 || scale == 0 ||
      number > std::numeric_limits<uint64_t>::max() / scale) {
    return Refuse("--split-max-size", "\"" + text + "\"", "a size such as 300M or 2G");
  }
  return number * scale;
}

Result<ConvertOptions> ReadConvertOptions(const Options& options) {
  ConvertOptions convert;
  convert.in = options.words[0];
  convert.out = options.words[1];
  convert.name = options.name;
  convert.outtype = options.outtype;
  convert.leaves_out_centroids = options.no_centroids;
  convert.tokenizer = options.tokenizer;
  if (!IsDirectory(convert.in)) {
    return Refuse(convert.in, FileExists(convert.in) ? "a file" : "nothing there",
                  "a Hugging Face directory");
  }
  FACET_RETURN_IF_ERROR(CheckGgufName(options.command, convert.out));
  if (!options.split_max_size.empty()) {
    FACET_ASSIGN(convert.max_file_bytes, ParseSize(options.split_max_size));
  }
  return convert;
}

/// Should a signal end the program, what base/file.h has not completed is to go.
void RemoveUnfinished(std::vector<std::string> paths) {
  for (std::string& path : paths) {
    path += ".part";
  }
  RemoveOnInterrupt(paths);
}

void NoteSummary(const ConvertSummary& summary, bool is_split) {
  if (summary.n_left_out > 0) {
    Note(fmt::format("{} tensors of the vision and audio parts are left out", summary.n_left_out));
  }
  if (!summary.has_tokenizer) {
    Note(
        "without a tokenizer, which Facet does not need and llama.cpp does: --tokenizer lends one");
  }
  if (is_split) {
    Note(fmt::format("{} files, to be opened by the first: {}", summary.paths.size(),
                     summary.paths.front()));
  }
}

}  // namespace

int RunConvert(const Options& options) {
  Result<ConvertOptions> convert = ReadConvertOptions(options);
  if (!convert.ok()) {
    return Fail(convert.error(), kExitFailed);
  }
  std::optional<ProgressLine> progress("converting");
  convert->on_progress = [&progress](uint64_t done, uint64_t total) {
    progress->Update(done, total);
  };
  bool is_writing = false;
  convert->on_paths = [&is_writing](const std::vector<std::string>& paths) {
    is_writing = true;
    RemoveUnfinished(paths);
  };
  const Result<ConvertSummary> summary = ConvertToGguf(*convert);
  RemoveOnInterrupt("");
  progress.reset();
  if (!summary.ok()) {
    const bool is_of_output = is_writing || summary.error().where.starts_with(convert->out);
    return Fail(summary.error(), is_of_output ? kExitFailed : kExitModelRefused);
  }
  NoteSummary(*summary, convert->max_file_bytes > 0);
  return kExitDone;
}

}  // namespace facet
