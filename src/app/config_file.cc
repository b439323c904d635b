// SPDX-License-Identifier: Apache-2.0
#include "app/config_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "base/nearest.h"
#include "base/utf8.h"

namespace facet {
namespace {

constexpr std::string_view kBlank = " \t\r";

std::string_view Trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) {
    return {};
  }
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

/// Reads the value of one line from its beginning to its end. Values may be secret: errors do not
/// tell them.
class ValueParser {
 public:
  ValueParser(std::string_view text, const std::string& where) : rest_(Trim(text)), where_(where) {}

  Result<std::vector<std::string>> Parse() {
    std::vector<std::string> values;
    if (rest_.starts_with('[')) {
      FACET_ASSIGN(values, List());
    } else if (IsQuoted()) {
      FACET_ASSIGN(std::string value, Quoted());
      values.push_back(std::move(value));
    } else {
      size_t end = rest_.starts_with('#') ? 0 : std::min(rest_.find(" #"), rest_.find("\t#"));
      values.emplace_back(Trim(rest_.substr(0, end)));
      if (values.back().empty()) {
        return Refuse(where_, "no value", "KEY = VALUE");
      }
      return values;
    }
    rest_ = Trim(rest_);
    if (!rest_.empty() && rest_.front() != '#') {
      return Refuse(where_, "more after the value", "the end of the line");
    }
    return values;
  }

 private:
  [[nodiscard]] bool IsQuoted() const { return rest_.starts_with('"') || rest_.starts_with('\''); }

  Result<std::string> Quoted() { return rest_.front() == '"' ? Escaped() : Literal(); }

  Result<std::string> Literal() {
    const size_t end = rest_.find('\'', 1);
    if (end == std::string_view::npos) {
      return Refuse(where_, "no closing '", "a 'text' within one line");
    }
    std::string value(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return value;
  }

  Result<std::string> Escaped() {
    constexpr std::string_view kEscaped = "ntr\"\\";
    constexpr std::string_view kMeant = "\n\t\r\"\\";
    std::string value;
    for (size_t i = 1; i < rest_.size(); ++i) {
      if (rest_[i] == '"') {
        rest_.remove_prefix(i + 1);
        return value;
      }
      if (rest_[i] != '\\') {
        value += rest_[i];
        continue;
      }
      ++i;
      const size_t escape = i < rest_.size() ? kEscaped.find(rest_[i]) : std::string_view::npos;
      if (escape == std::string_view::npos) {
        return Refuse(where_, "an unknown escape after \\", "one of \\n \\t \\r \\\" \\\\");
      }
      value += kMeant[escape];
    }
    return Refuse(where_, "no closing \"", "a \"text\" within one line");
  }

  Result<std::vector<std::string>> List() {
    std::vector<std::string> values;
    rest_ = Trim(rest_.substr(1));
    while (!rest_.starts_with(']')) {
      if (!IsQuoted()) {
        return Refuse(where_, rest_.empty() ? "no closing ]" : "an item without quotes",
                      "[\"a\", \"b\"]");
      }
      FACET_ASSIGN(std::string value, Quoted());
      values.push_back(std::move(value));
      rest_ = Trim(rest_);
      if (rest_.starts_with(',')) {
        rest_ = Trim(rest_.substr(1));
      } else if (!rest_.starts_with(']')) {
        return Refuse(where_, rest_.empty() ? "no closing ]" : "more after an item",
                      "a comma or ]");
      }
    }
    rest_.remove_prefix(1);
    return values;
  }

  std::string_view rest_;
  const std::string& where_;
};

Error UnknownKey(const std::string& where, std::string_view key) {
  std::vector<std::string_view> known;
  for (const OptionSpec& spec : OptionTable()) {
    if (!spec.key.empty()) {
      known.push_back(spec.key);
    }
  }
  const std::string_view nearest = Nearest(key, known);
  if (!nearest.empty()) {
    return Refuse(where, fmt::format("unknown key \"{}\", did you mean {}", key, nearest));
  }
  return Refuse(where, fmt::format("unknown key \"{}\"", key),
                fmt::format("one of {}", fmt::join(known, ", ")));
}

/// The option of a key; refused where there is none, or the entries have it already.
Result<const OptionSpec*> FindOption(const std::string& where, std::string_view key,
                                     const std::vector<ConfigEntry>& entries) {
  const OptionSpec* option = FindOptionByKey(key);
  if (option == nullptr) {
    return UnknownKey(where, key);
  }
  for (const ConfigEntry& entry : entries) {
    if (entry.option == option) {
      return Refuse(where, fmt::format("key \"{}\" for the second time", key), "each key once");
    }
  }
  return option;
}

Status ParseLine(std::string_view line, const std::string& where,
                 std::vector<ConfigEntry>* entries) {
  const size_t equals = line.find('=');
  if (equals == std::string_view::npos) {
    return Refuse(where, "no =", "KEY = VALUE");
  }
  const std::string_view key = Trim(line.substr(0, equals));
  FACET_ASSIGN(const OptionSpec* option, FindOption(where, key, *entries));
  const std::string where_key = fmt::format("{}: {}", where, key);
  FACET_ASSIGN(std::vector<std::string> values,
               ValueParser(line.substr(equals + 1), where_key).Parse());
  if (!values.empty()) {
    entries->push_back({option, std::move(values), where_key});
  }
  return {};
}

/// A JSON value as the text that it is in a line.
Result<std::string> ScalarText(const Json& value, const std::string& where) {
  if (value.is_string()) {
    return value.as_string();
  }
  if (value.is_bool() || value.is_number()) {
    return value.Dump();
  }
  return Refuse(where, std::string(value.KindName()), "a string, a number, true or false");
}

Result<std::vector<ConfigEntry>> ParseJsonConfig(std::string_view text, const std::string& name) {
  FACET_ASSIGN(const Json json, ParseJson(text, name));
  std::vector<ConfigEntry> entries;
  for (const auto& [key, value] : json.members()) {
    FACET_ASSIGN(const OptionSpec* option, FindOption(name, key, entries));
    const std::string where = fmt::format("{}: {}", name, key);
    std::vector<std::string> values;
    for (const Json& item : value.is_array() ? value.items() : Json::Array{value}) {
      FACET_ASSIGN(std::string scalar, ScalarText(item, where));
      values.push_back(std::move(scalar));
    }
    if (!values.empty()) {
      entries.push_back({option, std::move(values), where});
    }
  }
  return entries;
}

}  // namespace

Result<std::vector<ConfigEntry>> ParseConfig(std::string_view text, const std::string& name) {
  if (!IsValidUtf8(text)) {
    return Refuse(name, "bytes that are not UTF-8", "UTF-8 text");
  }
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin != std::string_view::npos && text[begin] == '{') {
    return ParseJsonConfig(text, name);
  }
  std::vector<ConfigEntry> entries;
  int line_number = 0;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = Trim(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    ++line_number;
    if (!line.empty() && line.front() != '#') {
      FACET_RETURN_IF_ERROR(ParseLine(line, fmt::format("{}:{}", name, line_number), &entries));
    }
  }
  return entries;
}

}  // namespace facet
