// SPDX-License-Identifier: Apache-2.0
// What tests of this folder serve: the tiny model's vocabulary and the built-in chat template.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "chat/chat_template.h"
#include "server/served_model.h"
#include "text/test_vocabs.h"
#include "text/tokenizer.h"

namespace facet::testing {

inline ChatTemplate LoadTemplateOrDie(std::string_view source) {
  auto loaded = ChatTemplate::Load(source, "test.jinja", "<bos>", "<eos>");
  if (!loaded.ok()) {
    std::fprintf(stderr, "%s\n", loaded.error().Message().c_str());
    std::abort();
  }
  return *std::move(loaded);
}

inline const ChatTemplate& BuiltInTemplate() {
  static const ChatTemplate built_in = LoadTemplateOrDie("");
  return built_in;
}

/// Knows neither tools nor thinking.
inline const ChatTemplate& PlainTemplate() {
  static const ChatTemplate plain = LoadTemplateOrDie(
      "{% for m in messages %}{{ '<|turn>' ~ m.role ~ '\\n' ~ m.content ~ '<turn|>\\n' }}{% endfor "
      "%}");
  return plain;
}

inline ServedModel MakeServedModel() {
  static const Tokenizer tokenizer(&TinyVocab());
  ServedModel model;
  model.name = "tiny";
  model.created = 1700000000;
  model.vocab = &TinyVocab();
  model.tokenizer = &tokenizer;
  model.chat_template = &BuiltInTemplate();
  model.end_tokens = TinyVocab().end_ids();
  model.system_fingerprint = "fp_test";
  return model;
}

}  // namespace facet::testing
