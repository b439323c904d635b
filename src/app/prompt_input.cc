// SPDX-License-Identifier: Apache-2.0
#include "app/prompt_input.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "app/terminal.h"
#include "base/file.h"
#include "base/utf8.h"

namespace facet {
namespace {

constexpr size_t kMaxPromptBytes = size_t{64} << 20;
constexpr std::string_view kStandardInput = "standard input";

Result<std::string> ReadStandardInput() {
  std::string text;
  char buffer[65536];
  while (true) {
    const ssize_t got = ::read(STDIN_FILENO, buffer, sizeof buffer);
    if (got == 0) {
      return text;
    }
    if (got < 0 && errno != EINTR) {
      return Refuse(std::string(kStandardInput),
                    fmt::format("cannot read: {}", std::strerror(errno)));
    }
    text.append(buffer, got > 0 ? static_cast<size_t>(got) : 0);
    if (text.size() > kMaxPromptBytes) {
      return Refuse(std::string(kStandardInput), "more bytes than the limit",
                    fmt::format("at most {}", kMaxPromptBytes));
    }
  }
}

Result<std::string> ReadSource(const std::string& path, bool is_exact) {
  const bool is_standard_input = path == "-";
  FACET_ASSIGN(std::string text,
               is_standard_input ? ReadStandardInput() : ReadFile(path, kMaxPromptBytes));
  if (!IsValidUtf8(text)) {
    return Refuse(is_standard_input ? std::string(kStandardInput) : path,
                  "bytes that are not UTF-8", "UTF-8 text");
  }
  if (!is_exact && text.ends_with('\n')) {
    text.resize(text.size() - (text.ends_with("\r\n") ? 2 : 1));
  }
  return text;
}

void AddPart(const std::string& part, std::optional<std::string>* text) {
  *text = text->has_value() ? **text + "\n\n" + part : part;
}

}  // namespace

Result<std::optional<std::string>> ReadPromptText(const Options& options, bool is_exact) {
  std::optional<std::string> text;
  if (!options.prompt.empty()) {
    AddPart(options.prompt, &text);
  }
  std::string words;
  bool wants_standard_input = options.file == "-";
  for (const std::string& word : options.words) {
    if (word == "-") {
      wants_standard_input = true;
    } else {
      words += (words.empty() ? "" : " ") + word;
    }
  }
  if (!words.empty()) {
    AddPart(words, &text);
  }
  if (!options.file.empty() && options.file != "-") {
    FACET_ASSIGN(const std::string part, ReadSource(options.file, is_exact));
    AddPart(part, &text);
  }
  if (wants_standard_input || (!text && !IsTerminal(STDIN_FILENO))) {
    FACET_ASSIGN(const std::string part, ReadSource("-", is_exact));
    AddPart(part, &text);
  }
  return text;
}

}  // namespace facet
