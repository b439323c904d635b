// SPDX-License-Identifier: Apache-2.0
#include "app/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>

#include "app/cli_parser.h"
#include "app/config_file.h"
#include "base/file.h"
#include "base/utf8.h"

namespace facet {
namespace {

constexpr float kMaxBias = 100;

template <typename T>
std::optional<T> ParseNumber(std::string_view text) {
  if (!text.empty() && text.front() == '+') {
    text.remove_prefix(1);
  }
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

std::string WantedNumber(std::string_view kind, const OptionCheck& check) {
  std::string wanted(kind);
  if (check.min && check.max) {
    wanted += fmt::format(" from {} to {}", *check.min, *check.max);
  } else if (check.above && check.max) {
    wanted += fmt::format(" above {}, at most {}", *check.above, *check.max);
  } else if (check.min) {
    wanted += fmt::format(", at least {}", *check.min);
  }
  return check.also ? wanted + fmt::format(", or {}", *check.also) : wanted;
}

/// Reads one value as the type of the field wants it.
struct Reader {
  const OptionCheck& check;
  const std::string& where;

  [[nodiscard]] bool Allows(double value) const {
    const bool in_range = !(check.min && value < *check.min) &&
                          !(check.max && value > *check.max) &&
                          !(check.above && value <= *check.above);
    return std::isfinite(value) && (in_range || (check.also && value == *check.also));
  }
  [[nodiscard]] Status CheckChoice(const std::string& text) const {
    if (check.choices.empty() ||
        std::find(check.choices.begin(), check.choices.end(), text) != check.choices.end()) {
      return {};
    }
    return Refuse(where, fmt::format("\"{}\"", text),
                  fmt::format("one of {}", fmt::join(check.choices, ", ")));
  }
  Result<int> Integer(const std::string& text) const {
    FACET_RETURN_IF_ERROR(CheckChoice(text));
    const auto value = ParseNumber<int>(text);
    if (!value || !Allows(*value)) {
      return Refuse(where, fmt::format("\"{}\"", text), WantedNumber("a whole number", check));
    }
    return *value;
  }
  Result<float> Real(const std::string& text) const {
    const auto value = ParseNumber<float>(text);
    if (!value || !Allows(static_cast<double>(*value))) {
      return Refuse(where, fmt::format("\"{}\"", text), WantedNumber("a number", check));
    }
    return *value;
  }
  Result<uint64_t> Seed(const std::string& text) const {
    const auto value = ParseNumber<uint64_t>(text);
    if (!value) {
      return Refuse(
          where, fmt::format("\"{}\"", text),
          fmt::format("a whole number from 0 to {}", std::numeric_limits<uint64_t>::max()));
    }
    return *value;
  }
  Result<bool> Flag(const std::string& text) const {
    if (text == "true" || text == "1") {
      return true;
    }
    if (text == "false" || text == "0") {
      return false;
    }
    return Refuse(where, fmt::format("\"{}\"", text), "true or false");
  }
  Result<std::string> Text(const std::string& text) const {
    FACET_RETURN_IF_ERROR(CheckChoice(text));
    if (!IsValidUtf8(text)) {
      return Refuse(where, "bytes that are not UTF-8", "UTF-8 text");
    }
    return text;
  }
  Result<SpecMode> Spec(const std::string& text) const {
    FACET_RETURN_IF_ERROR(CheckChoice(text));
    const auto mode = FindSpecMode(text);
    FACET_CHECK(mode.has_value());  // the table's choices are the modes
    return *mode;
  }
  Result<std::pair<int32_t, float>> Bias(const std::string& text) const {
    const size_t equals = std::min(text.find('='), text.size());
    const auto id = ParseNumber<int32_t>(std::string_view(text).substr(0, equals));
    const auto value =
        ParseNumber<float>(std::string_view(text).substr(std::min(equals + 1, text.size())));
    if (!id || *id < 0 || !value || !(std::fabs(*value) <= kMaxBias)) {
      return Refuse(
          where, fmt::format("\"{}\"", text),
          fmt::format("ID=X: a token's id and a number from {} to {}", -kMaxBias, kMaxBias));
    }
    return std::pair{*id, *value};
  }
};

/// Stores the values in the field; one overload per type of field.
struct Setter {
  Reader reader;
  MediaPartKind media_kind;
  std::span<const std::string> values;
  Options* options;

  template <typename Field, typename Value>
  Status Set(Field Options::*field, Result<Value> value) {
    if (!value.ok()) {
      return value.error();
    }
    options->*field = *std::move(value);
    return {};
  }
  template <typename Item, typename Read>
  Status SetAll(std::vector<Item> Options::*field, Read read) {
    std::vector<Item> items;
    for (const std::string& text : values) {
      FACET_ASSIGN(Item item, read(text));
      items.push_back(std::move(item));
    }
    options->*field = std::move(items);
    return {};
  }
  Status operator()(bool Options::*field) { return Set(field, reader.Flag(values.back())); }
  Status operator()(int Options::*field) { return Set(field, reader.Integer(values.back())); }
  Status operator()(float Options::*field) { return Set(field, reader.Real(values.back())); }
  Status operator()(std::string Options::*field) { return Set(field, reader.Text(values.back())); }
  Status operator()(std::optional<int> Options::*field) {
    return Set(field, reader.Integer(values.back()));
  }
  Status operator()(std::optional<float> Options::*field) {
    return Set(field, reader.Real(values.back()));
  }
  Status operator()(std::optional<uint64_t> Options::*field) {
    return Set(field, reader.Seed(values.back()));
  }
  Status operator()(std::vector<std::string> Options::*field) {
    return SetAll(field, [this](const std::string& text) { return reader.Text(text); });
  }
  Status operator()(std::vector<MediaFile> Options::*field) {
    for (const std::string& text : values) {
      FACET_ASSIGN(std::string path, reader.Text(text));
      if (path.empty()) {
        return Refuse(reader.where, "nothing", "a path");
      }
      (options->*field).push_back({media_kind, std::move(path)});
    }
    return {};
  }
  Status operator()(SpecMode Options::*field) { return Set(field, reader.Spec(values.back())); }
  Status operator()(LogitBias Options::*field) {
    return SetAll(field, [this](const std::string& text) { return reader.Bias(text); });
  }
};

struct Shower {
  const Options& options;

  template <typename T>
  std::string operator()(T Options::*field) const {
    return fmt::format("{}", options.*field);
  }
  template <typename T>
  std::string operator()(std::optional<T> Options::*field) const {
    return options.*field ? fmt::format("{}", *(options.*field)) : "default";
  }
  std::string operator()(std::vector<std::string> Options::*field) const {
    std::string all;
    for (const std::string& item : options.*field) {
      all += (all.empty() ? "\"" : " \"") + item + "\"";
    }
    return all.empty() ? "none" : all;
  }
  std::string operator()(std::vector<MediaFile> Options::*field) const {
    return fmt::format("{} files", (options.*field).size());
  }
  std::string operator()(SpecMode Options::*field) const {
    return std::string(NameOf(options.*field));
  }
  std::string operator()(LogitBias Options::*field) const {
    return fmt::format("{} tokens", (options.*field).size());
  }
};

/// The file that is read when none is named; empty when there is no home.
std::string DefaultConfigPath(const Environment& environment) {
  if (const auto folder = environment("XDG_CONFIG_HOME")) {
    return *folder + "/facet/config.toml";
  }
  const auto home = environment("HOME");
  return home ? *home + "/.config/facet/config.toml" : "";
}

Status ApplyConfigFile(const std::string& path, Options* options) {
  constexpr uint64_t kMaxConfigBytes = uint64_t{1} << 20;
  FACET_ASSIGN(const std::string text, ReadFile(path, kMaxConfigBytes));
  FACET_ASSIGN(const std::vector<ConfigEntry> entries, ParseConfig(text, path));
  for (const ConfigEntry& entry : entries) {
    FACET_RETURN_IF_ERROR(ApplyOption(*entry.option, entry.values, entry.where, options));
  }
  return {};
}

Status ApplyEnvironment(const Environment& environment, Options* options) {
  for (const OptionSpec& spec : OptionTable()) {
    if (spec.key.empty()) {
      continue;
    }
    std::string name = "FACET_";
    for (const char c : spec.key) {
      name += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    }
    if (const auto value = environment(name)) {
      FACET_RETURN_IF_ERROR(ApplyOption(spec, std::span(&*value, 1), name, options));
    }
  }
  return {};
}

Status CheckWords(const Options& options) {
  const CommandSpec& spec = SpecOf(options.command);
  const size_t n_words = options.words.size();
  if (!options.wants_help && (n_words < spec.min_words || n_words > spec.max_words)) {
    return Refuse(fmt::format("facet {}", spec.name),
                  n_words == 0 ? "nothing" : fmt::format("\"{}\"", fmt::join(options.words, " ")),
                  std::string(spec.wanted));
  }
  for (const std::string& word : options.words) {
    if (!IsValidUtf8(word)) {
      return Refuse("command line", "bytes that are not UTF-8", "UTF-8 text");
    }
  }
  return {};
}

}  // namespace

bool OptionSpec::is_repeatable() const {
  return std::holds_alternative<std::vector<std::string> Options::*>(target) ||
         std::holds_alternative<std::vector<MediaFile> Options::*>(target) ||
         std::holds_alternative<LogitBias Options::*>(target);
}

bool OptionSpec::IsFor(Command command) const {
  return std::find(commands.begin(), commands.end(), command) != commands.end();
}

const CommandSpec& SpecOf(Command command) {
  for (const CommandSpec& spec : CommandTable()) {
    if (spec.id == command) {
      return spec;
    }
  }
  CheckFailed("every command is in the table", __FILE__, __LINE__);
}

const OptionSpec* FindOptionByKey(std::string_view key) {
  for (const OptionSpec& spec : OptionTable()) {
    if (!key.empty() && spec.key == key) {
      return &spec;
    }
  }
  return nullptr;
}

Status ApplyOption(const OptionSpec& spec, std::span<const std::string> values,
                   const std::string& where, Options* options) {
  if (values.empty() || (values.size() > 1 && !spec.is_repeatable())) {
    return Refuse(where, fmt::format("{} values", values.size()), "one value");
  }
  return std::visit(Setter{{spec.check, where}, spec.media_kind, values, options}, spec.target);
}

std::string ShowOption(const OptionSpec& spec, const Options& options) {
  return std::visit(Shower{options}, spec.target);
}

Result<Options> ReadOptions(std::span<const std::string> arguments,
                            const Environment& environment) {
  FACET_ASSIGN(const ParsedLine line, ParseCommandLine(arguments));
  Options from_line;  // Read first for --config.
  for (const ParsedOption& given : line.options) {
    FACET_RETURN_IF_ERROR(
        ApplyOption(*given.option, given.values, std::string(given.option->name), &from_line));
  }
  Options options;
  const std::string default_path = DefaultConfigPath(environment);
  const std::string path = from_line.config.empty() ? default_path : from_line.config;
  if (!from_line.config.empty() || (!path.empty() && FileExists(path))) {
    FACET_RETURN_IF_ERROR(ApplyConfigFile(path, &options));
  }
  FACET_RETURN_IF_ERROR(ApplyEnvironment(environment, &options));
  for (const ParsedOption& given : line.options) {
    FACET_RETURN_IF_ERROR(
        ApplyOption(*given.option, given.values, std::string(given.option->name), &options));
  }
  options.command = line.command;
  options.words = line.words;
  FACET_RETURN_IF_ERROR(CheckWords(options));
  return options;
}

}  // namespace facet
