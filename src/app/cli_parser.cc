// SPDX-License-Identifier: Apache-2.0
#include "app/cli_parser.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>

#include "base/nearest.h"

namespace facet {
namespace {

/// CLI11 takes "-mm" for "-m m".
bool IsLongWithOneDash(std::string_view name) {
  return name.size() > 2 && name[0] == '-' && name[1] != '-';
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

/// The names as CLI11 takes them.
std::string DeclaredNames(const OptionSpec& spec) {
  std::vector<std::string> names = NamesOf(spec);
  names.erase(std::remove_if(names.begin(), names.end(), IsLongWithOneDash), names.end());
  return fmt::format("{}", fmt::join(names, ","));
}

/// The arguments with each name that CLI11 does not take replaced by the option's first one.
std::vector<std::string> WithDeclaredNames(std::span<const std::string> arguments,
                                           Command command) {
  std::vector<std::string> all(arguments.begin(), arguments.end());
  const auto end = std::find(all.begin(), all.end(), "--");
  for (const OptionSpec& spec : OptionTable()) {
    for (const std::string_view alias : spec.aliases) {
      if (spec.IsFor(command) && IsLongWithOneDash(alias)) {
        std::replace(all.begin(), end, std::string(alias), std::string(spec.name));
      }
    }
  }
  return all;
}

bool AddsMedia(const OptionSpec& spec) {
  return std::holds_alternative<std::vector<MediaFile> Options::*>(spec.target);
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

using DeclaredOptions = std::vector<std::pair<const OptionSpec*, CLI::Option*>>;

void AddMediaInOrder(const CLI::App& app, const DeclaredOptions& declared, ParsedLine* line) {
  std::map<const CLI::Option*, size_t> n_taken;
  for (const CLI::Option* given : app.parse_order()) {
    const auto found = std::find_if(declared.begin(), declared.end(),
                                    [given](const auto& entry) { return entry.second == given; });
    if (found != declared.end() && AddsMedia(*found->first)) {
      line->options.push_back({found->first, {given->results()[n_taken[given]++]}});
    }
  }
}

}  // namespace

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
  DeclaredOptions declared;
  for (const OptionSpec& spec : OptionTable()) {
    if (!spec.IsFor(line.command)) {
      continue;
    }
    const std::string names = DeclaredNames(spec);
    CLI::Option* option = spec.is_flag() ? app.add_flag(names) : app.add_option(names);
    option->multi_option_policy(spec.is_repeatable() ? CLI::MultiOptionPolicy::TakeAll
                                                     : CLI::MultiOptionPolicy::TakeLast);
    declared.emplace_back(&spec, option);
  }
  try {
    // CLI11 wants the arguments in reverse.
    const auto given = WithDeclaredNames(arguments.subspan(1), line.command);
    app.parse(std::vector<std::string>(given.rbegin(), given.rend()));
  } catch (const CLI::ArgumentMismatch&) {
    return Refuse(arguments.back(), "nothing after it", "a value");
  } catch (const CLI::Error& error) {
    return Refuse(fmt::format("facet {}", command.name), error.what());
  }
  for (const auto& [spec, option] : declared) {
    if (option->count() > 0 && !AddsMedia(*spec)) {
      line.options.push_back({spec, option->results()});
      if (!spec->is_repeatable()) {
        line.options.back().values = {option->results().back()};
      }
    }
  }
  AddMediaInOrder(app, declared, &line);
  FACET_RETURN_IF_ERROR(SortRest(app.remaining(), command, &line));
  return line;
}

}  // namespace facet
