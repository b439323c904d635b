// SPDX-License-Identifier: Apache-2.0
#include "app/help.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "app/chat_session.h"

namespace facet {
namespace {

constexpr size_t kWidth = 92;
constexpr size_t kIndent = 28;

constexpr std::string_view kEnding =
    "Settings are looked for on the command line, then in the environment (FACET_MAX_TOKENS for\n"
    "max_tokens), then in ~/.config/facet/config.toml (lines such as max_tokens = 200).\n\n"
    "Exit codes: 0 done; 1 wrong usage, or a failure; 2 the model was refused; 130 interrupted.\n";

/// The formats that other programs meet; part of the manual only.
constexpr std::string_view kFormats =
    R"(What was typed is kept in `$XDG_STATE_HOME/facet/history` (else `~/.local/state`), readable by its owner only.

## Formats

**Configuration file**: lines of `key = value`, a strict part of TOML: numbers, `true`, `false`, `"texts"` with
`\n \t \r \" \\`, bare texts up to a comment, and for options that may be repeated `["a", "b"]`. Comments begin with
`#`. An unknown or repeated key is refused with its line.

**`facet run --json`**: one object per line. Texts are whole characters; joined they are the reply.

| event | members |
|---|---|
| `start` | `model`, `prompt_tokens`, `context`, `seed`, `temperature`, `top_k`, `top_p`, `min_p` |
| `delta` | `kind` (`content` or `thought`), `text` |
| `finish` | `reason` (`stop`, `length`, `repetition` or `cancelled`), `usage` (`prompt_tokens`, `completion_tokens`, `total_tokens`), `drafts` (`rounds`, `drafted`, `accepted`), `timings` (`load_s`, `queue_s`, `prefill_s`, `decode_s`, `prefill_tokens_per_s`, `decode_tokens_per_s`) |

**`facet run --trace FILE`**: one object per line. `prompt` has the `runs` that the chat template wrote (`text`,
`parse_special`: whether control tokens in it count) and their `tokens`; each `token` its id and its `bytes` in
hexadecimal; `finish` as above.

**`facet inspect --json`**: of any file `file`, `tensor_types` (with the `share` of the bytes) and `refused` (why Facet
does not run it, else null); where there are encoders `encoders` (`file`, `bytes`, `width` of the model they are for, `pictures` and
`sound` with their sizes, `refused`: why they are not used, else null); of a text model also `model`, `layers`, `tokenizer`, `chat_template`, `sampling`,
`kv_memory` (bytes per context length and type; null where a type does not suit the model), `compute` (`isa`, the
instruction set in use, `supported` ones, `threads`) and `packed_weights` (what is arranged for the processor while
loading: `matrices`, `types`, `file_bytes` and the `bytes` that they take then). `--tensors` adds `metadata` (`key`, `type`, `value`; of an array the `count` and at most the first 1024 elements) and `tensors` (`name`,
`source_name`, `shape` with the slowest axis first, `type`, `bytes`, `file` from 0, `offset` in it). `--check` adds
`check`: `values` (read), `nan`, `infinite`, `zero_rows`, the first 20 `findings` (`tensor`, `row`, `column`, `value`),
`zeros` (`tensor`, `rows`, `of`, `first`) and `unread` types. `--diff` adds `diff`: `this` and `other`, `metadata`
(`key`, `here`, `there`, `index` in arrays; null for files of different kinds), `tensors` (`name`, `here`, `there`,
`max_difference`, `relative_difference`) and `same_tensors`.

**`/save`** writes one object: `format` (`"facet-chat"`), `version` (1), `system`, `think`, and `messages`, in turn
`{"role": "user", "content": ...}` and `{"role": "assistant", "content": ...}`.
)";

/// Breaks `text` into lines of at most `width` columns; the text is ASCII. Blank lines between
/// paragraphs stay.
std::vector<std::string> Wrap(std::string_view text, size_t width) {
  std::vector<std::string> lines(1);
  while (!text.empty()) {
    const size_t end = std::min(text.find_first_of(" \n"), text.size());
    const std::string_view word = text.substr(0, end);
    if (!lines.back().empty() && lines.back().size() + 1 + word.size() > width) {
      lines.emplace_back();
    }
    lines.back() += (lines.back().empty() || word.empty() ? "" : " ") + std::string(word);
    if (end < text.size() && text[end] == '\n') {
      lines.emplace_back();
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::string Paragraphs(std::string_view text) {
  std::string out;
  for (const std::string& line : Wrap(text, kWidth)) {
    out += line + "\n";
  }
  return out;
}

std::string NamesOf(const OptionSpec& spec) {
  std::string names = spec.letter != 0 ? fmt::format("-{}, {}", spec.letter, spec.name)
                                       : fmt::format("    {}", spec.name);
  return spec.placeholder.empty() ? names : fmt::format("{} {}", names, spec.placeholder);
}

std::string TextOf(const OptionSpec& spec) {
  std::string text(spec.help);
  if (!spec.otherwise.empty()) {
    text += fmt::format(" [{}]", spec.otherwise);
  }
  if (!spec.aliases.empty()) {
    text += fmt::format(" (also {})", fmt::join(spec.aliases, ", "));
  }
  return text;
}

std::string OptionLines(const OptionSpec& spec) {
  std::string out = "  " + NamesOf(spec);
  const auto lines = Wrap(TextOf(spec), kWidth - kIndent);
  size_t column = out.size();
  if (column + 2 > kIndent) {
    out += "\n";
    column = 0;
  }
  for (const std::string& line : lines) {
    out += std::string(kIndent - column, ' ') + line + "\n";
    column = 0;
  }
  return out;
}

std::vector<const OptionSpec*> OptionsOf(Command command) {
  std::vector<const OptionSpec*> options;
  for (const OptionSpec& spec : OptionTable()) {
    if (spec.IsFor(command) && !spec.is_hidden) {
      options.push_back(&spec);
    }
  }
  return options;
}

/// The headings in the order of their first option.
std::vector<std::string_view> GroupsOf(const std::vector<const OptionSpec*>& options) {
  std::vector<std::string_view> groups;
  for (const OptionSpec* spec : options) {
    if (std::find(groups.begin(), groups.end(), spec->group) == groups.end()) {
      groups.push_back(spec->group);
    }
  }
  return groups;
}

/// Text within a table of Markdown.
std::string TableCell(std::string_view text) {
  std::string cell;
  for (const char c : text) {
    cell += c == '|' ? "\\|" : std::string(1, c);
  }
  return cell;
}

std::string MarkdownCommand(const CommandSpec& command) {
  std::string out = fmt::format(
      "## facet {}\n\n{}{}.\n\n    facet {}{}{}\n\n", command.name,
      static_cast<char>(std::toupper(static_cast<unsigned char>(command.summary[0]))),
      command.summary.substr(1), command.name, command.usage.empty() ? "" : " ", command.usage);
  if (!command.text.empty()) {
    out += fmt::format("{}\n", Paragraphs(command.text));
  }
  for (const Example& example : command.examples) {
    out += fmt::format("    {}\n", example.line);
  }
  const auto options = OptionsOf(command.id);
  out += command.examples.empty() ? "" : "\n";
  out += "| option | key in the configuration file | meaning | default |\n|---|---|---|---|\n";
  for (const OptionSpec* spec : options) {
    std::string names = spec->letter != 0 ? fmt::format("`-{}`, ", spec->letter) : "";
    names += fmt::format("`{}{}{}`", spec->name, spec->placeholder.empty() ? "" : " ",
                         spec->placeholder);
    for (const std::string_view alias : spec->aliases) {
      names += fmt::format(", `{}`", alias);
    }
    out += fmt::format("| {} | {} | {} | {} |\n", names,
                       spec->key.empty() ? "" : fmt::format("`{}`", spec->key),
                       TableCell(spec->help), TableCell(spec->otherwise));
  }
  return out + "\n";
}

}  // namespace

std::string VersionText() { return "facet " FACET_VERSION; }

std::string ProgramHelp() {
  std::string out = fmt::format(
      "{}: an inference engine for Gemma 4\n\nusage: facet COMMAND [OPTIONS]\n\nCommands\n",
      VersionText());
  for (const CommandSpec& command : CommandTable()) {
    out += fmt::format("  {:<12}{}\n", command.name, command.summary);
  }
  out += "\nExamples\n";
  for (const CommandSpec& command : CommandTable()) {
    if (!command.examples.empty()) {
      out += fmt::format("  {}\n", command.examples.front().line);
    }
  }
  return out + "\nfacet COMMAND --help lists the options of a command.\n" + std::string(kEnding);
}

std::string CommandHelp(Command id) {
  const CommandSpec& command = SpecOf(id);
  std::string out =
      fmt::format("facet {}: {}\n\nusage: facet {}{}{}\n", command.name, command.summary,
                  command.name, command.usage.empty() ? "" : " ", command.usage);
  if (!command.text.empty()) {
    out += "\n" + Paragraphs(command.text);
  }
  const auto options = OptionsOf(id);
  for (const std::string_view group : GroupsOf(options)) {
    out += fmt::format("\n{}\n", group);
    for (const OptionSpec* spec : options) {
      out += spec->group == group ? OptionLines(*spec) : "";
    }
  }
  if (!command.examples.empty()) {
    out += "\nExamples\n";
  }
  for (const Example& example : command.examples) {
    out += fmt::format("  {}\n      {}\n", example.line, example.what);
  }
  return out + "\n" + std::string(kEnding);
}

std::string MarkdownHelp() {
  std::string out =
      "# Using facet\n\nWritten by `facet help --markdown` from the option table "
      "(src/app/option_table.cc); a test compares the two.\n\n";
  out += std::string(kEnding) + "\n";
  for (const CommandSpec& command : CommandTable()) {
    out += MarkdownCommand(command);
  }
  out += "## The chat\n\n```\n" + ChatHelp() + "\n```\n\n";
  return out + std::string(kFormats);
}

}  // namespace facet
