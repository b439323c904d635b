// SPDX-License-Identifier: Apache-2.0
#include "text/detokenizer.h"

namespace facet {

std::string Detokenizer::Push(int id) {
  if (skip_special_ && vocab_->is_special(id)) {
    return {};
  }
  return stream_.Push(vocab_->bytes(id));
}

std::string Detokenizer::Flush() { return stream_.Flush(); }

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
