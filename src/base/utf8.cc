// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

#include <cstdint>

namespace facet {
namespace {

/// Length, and the range allowed for the second byte (Unicode table 3-7). Length 0: not a first
/// byte.
struct Lead {
  int length;
  uint8_t second_low;
  uint8_t second_high;
};

Lead LeadOf(uint8_t byte) {
  if (byte < 0x80) {
    return {1, 0, 0};
  }
  if (byte < 0xC2) {
    return {0, 0, 0};
  }
  if (byte < 0xE0) {
    return {2, 0x80, 0xBF};
  }
  if (byte == 0xE0) {
    return {3, 0xA0, 0xBF};
  }
  if (byte == 0xED) {
    return {3, 0x80, 0x9F};
  }
  if (byte < 0xF0) {
    return {3, 0x80, 0xBF};
  }
  if (byte == 0xF0) {
    return {4, 0x90, 0xBF};
  }
  if (byte < 0xF4) {
    return {4, 0x80, 0xBF};
  }
  if (byte == 0xF4) {
    return {4, 0x80, 0x8F};
  }
  return {0, 0, 0};
}

}  // namespace

Utf8Step DecodeUtf8(std::string_view text) {
  using Kind = Utf8Step::Kind;
  const auto first = static_cast<uint8_t>(text[0]);
  const Lead lead = LeadOf(first);
  if (lead.length == 0) {
    return {Kind::kBroken, 1, kReplacementCharacter};
  }
  if (lead.length == 1) {
    return {Kind::kCharacter, 1, first};
  }
  char32_t character = first & (0x7Fu >> lead.length);
  for (int i = 1; i < lead.length; ++i) {
    if (static_cast<size_t>(i) == text.size()) {
      return {Kind::kIncomplete, i, kReplacementCharacter};
    }
    const auto byte = static_cast<uint8_t>(text[static_cast<size_t>(i)]);
    const uint8_t low = i == 1 ? lead.second_low : 0x80;
    const uint8_t high = i == 1 ? lead.second_high : 0xBF;
    if (byte < low || byte > high) {
      return {Kind::kBroken, i, kReplacementCharacter};
    }
    character = (character << 6) | (byte & 0x3Fu);
  }
  return {Kind::kCharacter, lead.length, character};
}

bool IsValidUtf8(std::string_view text) {
  while (!text.empty()) {
    const Utf8Step step = DecodeUtf8(text);
    if (step.kind != Utf8Step::Kind::kCharacter) {
      return false;
    }
    text.remove_prefix(static_cast<size_t>(step.size));
  }
  return true;
}

std::string RepairUtf8(std::string_view text) {
  Utf8Stream stream;
  std::string repaired = stream.Push(text);
  return repaired + stream.Flush();
}

void AppendUtf8(std::string& out, char32_t c) {
  const auto put = [&out](uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0u | (c >> 6));
    put(0x80u | (c & 0x3Fu));
  } else if (c < 0x10000) {
    put(0xE0u | (c >> 12));
    put(0x80u | ((c >> 6) & 0x3Fu));
    put(0x80u | (c & 0x3Fu));
  } else {
    put(0xF0u | (c >> 18));
    put(0x80u | ((c >> 12) & 0x3Fu));
    put(0x80u | ((c >> 6) & 0x3Fu));
    put(0x80u | (c & 0x3Fu));
  }
}

size_t CountCodePoints(std::string_view text) {
  size_t count = 0;
  for (const char byte : text) {
    count += (static_cast<uint8_t>(byte) & 0xC0u) != 0x80u ? 1 : 0;
  }
  return count;
}

std::string Utf8Stream::Push(std::string_view bytes) {
  pending_ += bytes;
  std::string released;
  std::string_view rest = pending_;
  while (!rest.empty()) {
    const Utf8Step step = DecodeUtf8(rest);
    if (step.kind == Utf8Step::Kind::kIncomplete) {
      break;
    }
    if (step.kind == Utf8Step::Kind::kCharacter) {
      released += rest.substr(0, static_cast<size_t>(step.size));
    } else {
      AppendUtf8(released, kReplacementCharacter);
    }
    rest.remove_prefix(static_cast<size_t>(step.size));
  }
  pending_ = std::string(rest);
  return released;
}

std::string Utf8Stream::Flush() {
  std::string released;
  if (!pending_.empty()) {
    AppendUtf8(released, kReplacementCharacter);
    pending_.clear();
  }
  return released;
}

}  // namespace facet
