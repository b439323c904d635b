// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "base/json.h"
#include "format/gguf.h"
#include "text/vocab.h"

namespace facet {
namespace {

constexpr std::string_view kPrefix = "tokenizer.ggml.";

/// The keys under tokenizer.ggml. of one file, and how errors call them.
class Reader {
 public:
  Reader(const gguf::Metadata& metadata, const std::string& name)
      : metadata_(metadata), name_(name) {}

  [[nodiscard]] const gguf::Value* Find(std::string_view key) const {
    return metadata_.Find(std::string(kPrefix).append(key));
  }
  [[nodiscard]] std::string Where(std::string_view key) const {
    return fmt::format("{}: {}{}", name_, kPrefix, key);
  }

  Result<const std::vector<std::string>*> Strings(std::string_view key) const {
    const gguf::Value* value = Find(key);
    if (value == nullptr || value->AsStrings() == nullptr) {
      return Refuse(Where(key), Found(value), "an array of string");
    }
    return value->AsStrings();
  }

  /// A token id, or -1 when the key is absent.
  Result<int> Id(std::string_view key, size_t n_tokens) const {
    const gguf::Value* value = Find(key);
    if (value == nullptr) {
      return -1;
    }
    const std::optional<int64_t> id = value->AsInt();
    if (!id) {
      return Refuse(Where(key), Found(value), "a token id");
    }
    if (*id < 0 || *id >= static_cast<int64_t>(n_tokens)) {
      return Refuse(Where(key), fmt::format("id {}", *id), fmt::format("an id below {}", n_tokens));
    }
    return static_cast<int>(*id);
  }

  static std::string Found(const gguf::Value* value) {
    if (value == nullptr) {
      return "missing";
    }
    if (value->is_array()) {
      return fmt::format("an array of {}", gguf::NameOf(value->element_type));
    }
    return fmt::format("a value of type {}", gguf::NameOf(value->type));
  }

 private:
  const gguf::Metadata& metadata_;
  const std::string& name_;
};

Status CheckModel(const Reader& reader) {
  const gguf::Value* model = reader.Find("model");
  const std::string* text = model != nullptr ? model->AsString() : nullptr;
  if (text == nullptr || *text != "gemma4") {
    return Refuse(reader.Where("model"),
                  text != nullptr ? Json(*text).Dump() : Reader::Found(model), "\"gemma4\"");
  }
  return {};
}

/// The kinds as the file types them; a file without types gets them by text alone.
Result<std::vector<TokenKind>> ReadKinds(const Reader& reader, size_t n_tokens) {
  std::vector<TokenKind> kinds(n_tokens, TokenKind::kNormal);
  const gguf::Value* types = reader.Find("token_type");
  if (types == nullptr) {
    return kinds;
  }
  if (!types->is_array() || types->array_size() != n_tokens) {
    return Refuse(
        reader.Where("token_type"),
        types->is_array() ? fmt::format("{} types", types->array_size()) : Reader::Found(types),
        fmt::format("one type for each of {} tokens", n_tokens));
  }
  for (size_t i = 0; i < n_tokens; ++i) {
    // In the order of the ids 1 to 6.
    constexpr TokenKind kKinds[] = {TokenKind::kNormal,  TokenKind::kUnknown,
                                    TokenKind::kControl, TokenKind::kUserDefined,
                                    TokenKind::kUnused,  TokenKind::kByte};
    const std::optional<int64_t> type = types->IntAt(i);
    if (!type) {
      return Refuse(reader.Where("token_type"), Reader::Found(types), "an array of int32");
    }
    if (*type < 1 || *type > 6) {
      return Refuse(fmt::format("{}[{}]", reader.Where("token_type"), i),
                    fmt::format("type {}", *type), "1 to 6");
    }
    kinds[i] = kKinds[*type - 1];
  }
  return kinds;
}

Result<std::vector<int>> ReadSuppressed(const Reader& reader, size_t n_tokens) {
  std::vector<int> ids;
  const gguf::Value* value = reader.Find("suppress_tokens");
  if (value == nullptr) {
    return ids;
  }
  for (size_t i = 0; i < value->array_size(); ++i) {
    const std::optional<int64_t> id = value->IntAt(i);
    if (id && (*id < 0 || *id >= static_cast<int64_t>(n_tokens))) {
      return Refuse(fmt::format("{}[{}]", reader.Where("suppress_tokens"), i),
                    fmt::format("id {}", *id), fmt::format("an id below {}", n_tokens));
    }
    if (!id) {
      return Refuse(reader.Where("suppress_tokens"), Reader::Found(value), "an array of token ids");
    }
    ids.push_back(static_cast<int>(*id));
  }
  if (!value->is_array()) {
    return Refuse(reader.Where("suppress_tokens"), Reader::Found(value), "an array of token ids");
  }
  return ids;
}

}  // namespace

Result<Vocab> Vocab::FromGguf(const gguf::Metadata& metadata, const std::string& name) {
  const Reader reader(metadata, name);
  FACET_RETURN_IF_ERROR(CheckModel(reader));
  FACET_ASSIGN(const std::vector<std::string>* tokens, reader.Strings("tokens"));
  FACET_ASSIGN(const std::vector<std::string>* merges, reader.Strings("merges"));
  const size_t n_tokens = tokens->size();

  VocabParts parts;
  parts.tokens_name = reader.Where("tokens");
  parts.merges_name = reader.Where("merges");
  parts.texts.assign(tokens->begin(), tokens->end());
  FACET_ASSIGN(parts.kinds, ReadKinds(reader, n_tokens));
  parts.merges.reserve(merges->size());
  for (const std::string& merge : *merges) {
    const auto pair = SplitMerge(merge);
    if (!pair) {
      return Refuse(fmt::format("{}[{}]", parts.merges_name, parts.merges.size()),
                    Json(merge).Dump(), "two token texts with a space between");
    }
    parts.merges.push_back(*pair);
  }
  FACET_ASSIGN(parts.bos_id, reader.Id("bos_token_id", n_tokens));
  FACET_ASSIGN(parts.eos_id, reader.Id("eos_token_id", n_tokens));
  FACET_ASSIGN(parts.pad_id, reader.Id("padding_token_id", n_tokens));
  FACET_ASSIGN(parts.unk_id, reader.Id("unknown_token_id", n_tokens));
  for (const std::string_view key : {"eot_token_id", "eom_token_id"}) {
    FACET_ASSIGN(const int id, reader.Id(key, n_tokens));
    parts.end_ids.push_back(id);
  }
  FACET_ASSIGN(parts.suppressed_ids, ReadSuppressed(reader, n_tokens));
  return FromParts(parts);
}

}  // namespace facet
