// SPDX-License-Identifier: Apache-2.0
#include "app/text_width.h"

#include <utf8proc.h>

#include <algorithm>

#include "base/utf8.h"

namespace facet {
namespace {

constexpr std::string_view kTab = "    ";
constexpr char32_t kEmojiPresentation = 0xFE0F;

bool IsControl(char32_t character) {
  return character < 0x20 || (character >= 0x7F && character < 0xA0);
}

}  // namespace

size_t NextGrapheme(std::string_view text, size_t pos) {
  Utf8Step step = DecodeUtf8(text.substr(pos));
  pos += static_cast<size_t>(step.size);
  utf8proc_int32_t state = 0;
  while (pos < text.size()) {
    const Utf8Step next = DecodeUtf8(text.substr(pos));
    if (utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(step.character),
                                         static_cast<utf8proc_int32_t>(next.character), &state)) {
      break;
    }
    pos += static_cast<size_t>(next.size);
    step = next;
  }
  return pos;
}

size_t PreviousGrapheme(std::string_view text, size_t pos) {
  // Clusters are found forwards only; a line break or blank always begins a new one, so the search
  // starts at the last.
  size_t begin = pos - 1;
  while (begin > 0 && text[begin] != '\n' && text[begin] != ' ') {
    --begin;
  }
  for (size_t next = NextGrapheme(text, begin); next < pos; next = NextGrapheme(text, begin)) {
    begin = next;
  }
  return begin;
}

int GraphemeWidth(std::string_view grapheme) {
  int width = 0;
  for (size_t pos = 0; pos < grapheme.size();) {
    const Utf8Step step = DecodeUtf8(grapheme.substr(pos));
    pos += static_cast<size_t>(step.size);
    if (step.character == '\t') {
      width += static_cast<int>(kTab.size());
    } else if (IsControl(step.character)) {
      width = std::max(width, 2);
    } else {
      const int own = step.character == kEmojiPresentation
                          ? 2
                          : utf8proc_charwidth(static_cast<utf8proc_int32_t>(step.character));
      width = std::max(width, own);
    }
  }
  return width;
}

std::string ShownText(std::string_view text) {
  std::string shown;
  shown.reserve(text.size());
  for (size_t pos = 0; pos < text.size();) {
    const Utf8Step step = DecodeUtf8(text.substr(pos));
    pos += static_cast<size_t>(step.size);
    if (step.character == '\t') {
      shown += kTab;
    } else if (step.character == '\r') {
      continue;
    } else if (step.character == '\n' || !IsControl(step.character)) {
      AppendUtf8(shown, step.character);
    } else {
      shown += '^';
      shown += step.character < 0x80 ? static_cast<char>(step.character ^ 0x40) : '?';
    }
  }
  return shown;
}

std::string ShownLine(std::string_view text) {
  std::string line = ShownText(text);
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

}  // namespace facet
