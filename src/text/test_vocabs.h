// SPDX-License-Identifier: Apache-2.0
// The two vocabularies that the tests of this folder read, loaded once for each test program.
#pragma once

#include <cstdio>
#include <cstdlib>

#include "format/gguf.h"
#include "support/testing.h"
#include "text/vocab.h"

namespace facet::testing {

/// The vocabulary of the tiny model, from its tokenizer.json.
inline const Vocab& TinyVocab() {
  static const Vocab vocab = [] {
    const Json tokenizer = JsonOrDie(TestdataPath("tiny-hf/tokenizer.json"));
    const Json config = JsonOrDie(TestdataPath("tiny-hf/tokenizer_config.json"));
    auto result = Vocab::FromTokenizerJson(tokenizer, config, "tokenizer.json");
    if (!result.ok()) {
      std::fprintf(stderr, "%s\n", result.error().Message().c_str());
      std::abort();
    }
    return *std::move(result);
  }();
  return vocab;
}

/// The vocabulary of Gemma 4 itself, or null where the shared data is missing.
inline const Vocab* RealVocab() {
  static const auto vocab = []() -> std::optional<Vocab> {
    const auto path = SharedPath("data/gemma4-vocab.gguf");
    if (!path) {
      return std::nullopt;
    }
    auto file = gguf::File::Open(*path);
    if (!file.ok()) {
      std::fprintf(stderr, "%s\n", file.error().Message().c_str());
      std::abort();
    }
    auto result = Vocab::FromGguf(file->metadata(), *path);
    if (!result.ok()) {
      std::fprintf(stderr, "%s\n", result.error().Message().c_str());
      std::abort();
    }
    return *std::move(result);
  }();
  return vocab ? &*vocab : nullptr;
}

}  // namespace facet::testing
