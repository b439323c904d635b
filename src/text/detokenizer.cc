// SPDX-License-Identifier: Apache-2.0
#include "text/detokenizer.h"

#include <cstdint>
#include <string_view>

namespace facet {

namespace {

/// How many bytes at the end begin a surrogate, or could: 0xED, and a second byte from 0xA0 on. No
/// character begins so, but the reference judges these three bytes together, and we release text
/// when it does.
size_t SurrogateBeginSize(std::string_view bytes) {
  const auto from_end = [&](size_t i) { return static_cast<uint8_t>(bytes[bytes.size() - i]); };
  if (!bytes.empty() && from_end(1) == 0xED) {
    return 1;
  }
  return bytes.size() >= 2 && from_end(2) == 0xED && (from_end(1) & 0xE0u) == 0xA0u ? 2 : 0;
}

}  // namespace

std::string Detokenizer::Push(int id) {
  if (skip_special_ && vocab_->is_special(id)) {
    return {};
  }
  held_ += vocab_->bytes(id);
  const size_t n_ready = held_.size() - SurrogateBeginSize(held_);
  std::string released = stream_.Push(std::string_view(held_).substr(0, n_ready));
  held_.erase(0, n_ready);
  return released;
}

std::string Detokenizer::Flush() {
  std::string released = stream_.Push(held_);
  held_.clear();
  return released + stream_.Flush();
}

std::string Decode(const Vocab& vocab, std::span<const int> ids, bool skip_special) {
  std::string bytes;
  for (const int id : ids) {
    if (!skip_special || !vocab.is_special(id)) {
      bytes += vocab.bytes(id);
    }
  }
  return RepairUtf8(bytes);
}

}  // namespace facet
