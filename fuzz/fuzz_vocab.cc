// SPDX-License-Identifier: Apache-2.0
// Vocabularies from hostile files. The input is a GGUF file, or a tokenizer.json; after a NUL byte
// follows a text. What loads must encode the text without ever giving a special token that was not
// asked for, and decode it back.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/check.h"
#include "base/json.h"
#include "base/utf8.h"
#include "format/gguf.h"
#include "text/detokenizer.h"
#include "text/tokenizer.h"
#include "text/vocab.h"

namespace {

using facet::Json;
using facet::Vocab;

/// Spaces and U+2581 are the same to the vocabularies of this family.
std::string WithPlainSpaces(std::string_view text) {
  std::string plain;
  while (!text.empty()) {
    const bool is_space = text.starts_with(facet::kSpacePiece);
    plain.push_back(is_space ? ' ' : text[0]);
    text.remove_prefix(is_space ? facet::kSpacePiece.size() : 1);
  }
  return plain;
}

void CheckText(const Vocab& vocab, std::string_view text) {
  const facet::Tokenizer tokenizer(&vocab);
  (void)tokenizer.Encode(text, true);
  const std::vector<int> ids = tokenizer.Encode(text, false);
  bool has_unknown = false;
  facet::Detokenizer detokenizer(&vocab, true);
  std::string streamed;
  for (const int id : ids) {
    has_unknown = has_unknown || id == vocab.unk_id();
    FACET_CHECK(id == vocab.unk_id() || !vocab.is_special(id));
    streamed += detokenizer.Push(id);
  }
  streamed += detokenizer.Flush();
  FACET_CHECK(streamed == facet::Decode(vocab, ids, true));
  FACET_CHECK(has_unknown || WithPlainSpaces(streamed) == WithPlainSpaces(facet::RepairUtf8(text)));
}

void CheckVocab(const facet::Result<Vocab>& vocab, std::string_view text) {
  if (!vocab.ok()) {
    return;
  }
  for (int id = 0; id < vocab->size(); ++id) {
    FACET_CHECK(vocab->Find(vocab->text(id)) == id);
  }
  CheckText(*vocab, text);
  CheckText(*vocab, "a  b<|turn>\n\xe4\xbd\xa0\xff");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  if (input.starts_with("GGUF")) {
    const auto directory = facet::gguf::Parse(facet::AsBytes(input), "input");
    if (directory.ok()) {
      CheckVocab(Vocab::FromGguf(directory->metadata, "input"), input.substr(size / 2));
    }
    return 0;
  }
  const size_t end = input.find('\0');
  const auto json = facet::ParseJson(input.substr(0, end), "input");
  if (json.ok()) {
    const std::string_view text = end == std::string_view::npos ? "" : input.substr(end + 1);
    CheckVocab(Vocab::FromTokenizerJson(*json, (*json)["config"], "input"), text);
  }
  return 0;
}
