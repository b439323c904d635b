// SPDX-License-Identifier: Apache-2.0
#include "chat/prompt.h"

#include <algorithm>

namespace facet {

std::vector<int> TokenizePrompt(const Tokenizer& tokenizer, const Vocab& vocab,
                                const Prompt& prompt) {
  std::vector<int> ids = tokenizer.Encode(prompt.runs);
  const int bos = vocab.bos_id();
  if (bos < 0) {
    return ids;
  }
  const auto text = std::find_if(ids.begin(), ids.end(), [bos](int id) { return id != bos; });
  if (text == ids.begin()) {
    ids.insert(text, bos);
  } else {
    ids.erase(ids.begin() + 1, text);
  }
  return ids;
}

}  // namespace facet
