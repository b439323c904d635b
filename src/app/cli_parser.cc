// SPDX-License-Identifier: Apache-2.0
#include "app/cli_parser.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <numeric>

namespace facet {
namespace {

/// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`.
size_t EditDistance(std::string_view a, std::string_view b) {
  const size_t width = b.size() + 1;
  std::vector<size_t> cost((a.size() + 1) * width);
  std::iota(cost.begin(), cost.begin() + static_cast<std::ptrdiff_t>(width), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t* row = &cost[i * width];
    row[0] = i;
    for (size_t j = 1; j < width; ++j) {
      const size_t replace = row[j - 1 - width] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({row[j - 1] + 1, row[j - width] + 1, replace});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], row[j - 2 - 2 * width] + 1);
      }
    }
  }
  return cost.back();
}

std::vector<std::string> NamesOf(const OptionSpec& spec) {
  std::vector<std::string> names;
  if (spec.letter != 0) {
    names.push_back(fmt::format("-{}", spec.letter));
  }
  names.emplace_back(spec.name);
  names.insert(names.end(), spec.aliases.begin(), spec.aliases.end());
  return names;
}

Error UnknownOption(const std::string& text, const CommandSpec& command) {
  const std::string name = text.substr(0, text.find('='));
  std::vector<std::string_view> known;
  for (const OptionSpec& spec : OptionTable()) {
    const auto names = NamesOf(spec);
    if (!spec.IsFor(command.id) && std::find(names.begin(), names.end(), name) != names.end()) {
      return Refuse("", fmt::format("unknown option {} of facet {}: it is one of facet {}", name,
                                    command.name, SpecOf(spec.commands.front()).name));
    }
    if (spec.IsFor(command.id) && !spec.is_hidden) {
      known.push_back(spec.name);
      known.insert(known.end(), spec.aliases.begin(), spec.aliases.end());
    }
  }
  const std::string_view nearest =
      name.starts_with("--") ? Nearest(name, known) : std::string_view();
  if (!nearest.empty()) {
    return Refuse("", fmt::format("unknown option {}, did you mean {}", name, nearest));
  }
  return Refuse(
      "", fmt::format(
              "unknown option {} (facet {} --help lists them; words that begin with - go after --)",
              name, command.name));
}

Result<Command> FindCommand(const std::string& name) {
  std::vector<std::string_view> known;
  for (const CommandSpec& spec : CommandTable()) {
    if (spec.name == name) {
      return spec.id;
    }
    known.push_back(spec.name);
  }
  if (name == "-h" || name == "--help") {
    return Command::kHelp;
  }
  if (name == "--version") {
    return Command::kVersion;
  }
  if (name.starts_with("-")) {
    return Refuse("", fmt::format("option {} before a command", name), "facet COMMAND [OPTIONS]");
  }
  const std::string_view nearest = Nearest(name, known);
  if (!nearest.empty()) {
    return Refuse("", fmt::format("unknown command {}, did you mean {}", name, nearest));
  }
  return Refuse("", fmt::format("unknown command \"{}\"", name),
                fmt::format("one of {}", fmt::join(known, ", ")));
}

/// Sorts what CLI11 did not take into words and options that do not exist. After "--" all are
/// words.
Status SortRest(const std::vector<std::string>& rest, const CommandSpec& command,
                ParsedLine* line) {
  bool is_option_possible = true;
  for (const std::string& text : rest) {
    if (is_option_possible && text == "--") {
      is_option_possible = false;
    } else if (is_option_possible && text.size() > 1 && text.front() == '-') {
      return UnknownOption(text, command);
    } else {
      line->words.push_back(text);
    }
  }
  return {};
}

}  // namespace

std::string_view Nearest(std::string_view text, std::span<const std::string_view> names) {
  std::string_view best;
  size_t best_distance = std::max<size_t>(2, text.size() / 3) + 1;
  for (const std::string_view name : names) {
    const bool is_beginning = text.size() > 3 && name.starts_with(text);
    const size_t distance = is_beginning ? 1 : EditDistance(text.substr(0, 64), name);
    if (distance < best_distance && distance < name.size() / 2 + 1) {
      best = name;
      best_distance = distance;
    }
  }
  return best;
}

Result<ParsedLine> ParseCommandLine(std::span<const std::string> arguments) {
  ParsedLine line;
  if (arguments.empty()) {
    return Refuse("", "no command", "facet COMMAND [OPTIONS] (facet --help lists them)");
  }
  FACET_ASSIGN(line.command, FindCommand(arguments[0]));
  const CommandSpec& command = SpecOf(line.command);

  // Words are not declared to CLI11: it would take "[a,b]" apart. They come back among the rest.
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  std::vector<std::pair<const OptionSpec*, CLI::Option*>> declared;
  for (const OptionSpec& spec : OptionTable()) {
    if (!spec.IsFor(line.command)) {
      continue;
    }
    const std::string names = fmt::format("{}", fmt::join(NamesOf(spec), ","));
    CLI::Option* option = spec.is_flag() ? app.add_flag(names) : app.add_option(names);
    option->multi_option_policy(spec.is_repeatable() ? CLI::MultiOptionPolicy::TakeAll
                                                     : CLI::MultiOptionPolicy::TakeLast);
    declared.emplace_back(&spec, option);
  }
  try {
    // CLI11 wants the arguments in reverse.
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend() - 1));
  } catch (const CLI::ArgumentMismatch&) {
    return Refuse(arguments.back(), "nothing after it", "a value");
  } catch (const CLI::Error& error) {
    return Refuse(fmt::format("facet {}", command.name), error.what());
  }
  for (const auto& [spec, option] : declared) {
    if (option->count() > 0) {
      line.options.push_back({spec, option->results()});
      if (!spec->is_repeatable()) {
        line.options.back().values = {option->results().back()};
      }
    }
  }
  FACET_RETURN_IF_ERROR(SortRest(app.remaining(), command, &line));
  return line;
}

}  // namespace facet
