// SPDX-License-Identifier: Apache-2.0
#include "text/join_filter.h"

#include <bit>

#include "base/utf8.h"

namespace facet {
namespace {

char32_t LastCharacter(std::string_view text) {
  size_t begin = text.size() - 1;
  while ((static_cast<uint8_t>(text[begin]) & 0xC0u) == 0x80u) {
    --begin;
  }
  return DecodeUtf8(text.substr(begin)).character;
}

}  // namespace

JoinFilter::JoinFilter(const Vocab& vocab) {
  bits_.resize(std::bit_ceil(4 * vocab.merges().size() + 1));
  for (const Merge& merge : vocab.merges()) {
    const char32_t last = LastCharacter(vocab.text(merge.left));
    bits_[BitOf(last, DecodeUtf8(vocab.text(merge.right)).character)] = true;
  }
}

}  // namespace facet
