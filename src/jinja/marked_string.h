// SPDX-License-Identifier: Apache-2.0
// Text that remembers, for every byte, whether the template wrote it or the caller's data did. The
// tokenizer parses control tokens only in what the template wrote, so a user who types "<|turn>"
// stays a user who typed it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace facet::jinja {

enum class Origin : uint8_t { kTemplate, kUser };

/// A piece of rendered text. Neighbouring runs differ in origin; none is empty.
struct Run {
  std::string text;
  Origin origin;
  bool operator==(const Run&) const = default;
};

std::string JoinRuns(const std::vector<Run>& runs);

/// UTF-8 text with origins: there are two of them, so the first one and the places where it changes
/// say everything. Costs nothing beyond the text when all of it has one origin. Positions are
/// bytes.
class MarkedString {
 public:
  MarkedString() = default;
  MarkedString(std::string text, Origin origin) : text_(std::move(text)), first_(origin) {}

  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] size_t size() const { return text_.size(); }
  [[nodiscard]] bool empty() const { return text_.empty(); }
  /// Bytes that the text and its marks take.
  [[nodiscard]] size_t memory() const { return text_.size() + switches_.size() * sizeof(size_t); }
  [[nodiscard]] Origin OriginAt(size_t position) const;

  void Append(std::string_view text, Origin origin);
  void Append(const MarkedString& other) { Append(other, 0, other.size()); }
  /// The bytes [begin, end) of another string (not of this one).
  void Append(const MarkedString& other, size_t begin, size_t end);
  [[nodiscard]] MarkedString Substring(size_t begin, size_t end) const;
  void Reserve(size_t bytes) { text_.reserve(bytes); }

  [[nodiscard]] std::vector<Run> Runs() const;

 private:
  static Origin Other(Origin origin) {
    return origin == Origin::kUser ? Origin::kTemplate : Origin::kUser;
  }
  [[nodiscard]] Origin AfterSwitches(size_t n) const { return n % 2 == 0 ? first_ : Other(first_); }

  std::string text_;
  std::vector<size_t> switches_;  ///< ascending positions inside the text where the origin changes
  Origin first_ = Origin::kTemplate;
};

}  // namespace facet::jinja
