// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "base/utf8.h"
#include "text/vocab.h"

namespace facet {
namespace {

/// Turns a tokenizer.json into VocabParts; the parts refer to its strings.
class Reader {
 public:
  Reader(const Json& tokenizer, const Json& config, const std::string& name)
      : tokenizer_(tokenizer), model_(tokenizer["model"]), config_(config), name_(name) {}

  Result<VocabParts> Read();

 private:
  [[nodiscard]] std::string Where(std::string_view key) const {
    return fmt::format("{}: {}", name_, key);
  }
  /// What stands at a place, for errors: the beginning of its text.
  static std::string Found(const Json& value);

  [[nodiscard]] Status CheckModel() const;
  [[nodiscard]] Status CheckNormalizer() const;
  [[nodiscard]] Status CheckPreTokenizer() const;
  Status AddVocab();
  Status AddAddedTokens();
  Status AddToken(const Json& id, std::string_view text, std::string_view list);
  Status AddMerges();
  [[nodiscard]] Status FindRole(std::string_view key, int& id) const;

  const Json& tokenizer_;
  const Json& model_;
  const Json& config_;
  const std::string& name_;
  VocabParts parts_;
};

std::string Reader::Found(const Json& value) {
  constexpr size_t kShown = 100;
  if (value.is_null()) {
    return "missing or null";
  }
  const std::string text = value.Dump();
  return text.size() <= kShown ? text : RepairUtf8(text.substr(0, kShown)) + "...";
}

Result<VocabParts> Reader::Read() {
  if (!tokenizer_.is_object()) {
    return Refuse(name_, std::string(tokenizer_.KindName()), "an object");
  }
  FACET_RETURN_IF_ERROR(CheckModel());
  FACET_RETURN_IF_ERROR(CheckNormalizer());
  FACET_RETURN_IF_ERROR(CheckPreTokenizer());
  parts_.tokens_name = Where("model.vocab");
  parts_.merges_name = Where("model.merges");
  FACET_RETURN_IF_ERROR(AddVocab());
  FACET_RETURN_IF_ERROR(AddAddedTokens());
  const auto hole = std::find_if(parts_.texts.begin(), parts_.texts.end(),
                                 [](std::string_view text) { return text.data() == nullptr; });
  if (hole != parts_.texts.end()) {
    return Refuse(parts_.tokens_name,
                  fmt::format("no token with id {}", hole - parts_.texts.begin()),
                  fmt::format("all ids below {}", parts_.texts.size()));
  }
  FACET_RETURN_IF_ERROR(AddMerges());
  FACET_RETURN_IF_ERROR(FindRole("bos_token", parts_.bos_id));
  FACET_RETURN_IF_ERROR(FindRole("eos_token", parts_.eos_id));
  FACET_RETURN_IF_ERROR(FindRole("pad_token", parts_.pad_id));
  FACET_RETURN_IF_ERROR(FindRole("unk_token", parts_.unk_id));
  return std::move(parts_);
}

Status Reader::CheckModel() const {
  if (!model_.is_object()) {
    return Refuse(Where("model"), Found(model_), "an object");
  }
  if (model_["type"].as_string() != "BPE") {
    return Refuse(Where("model.type"), Found(model_["type"]), "\"BPE\"");
  }
  if (!model_["byte_fallback"].as_bool()) {
    return Refuse(Where("model.byte_fallback"), Found(model_["byte_fallback"]), "true");
  }
  if (model_["ignore_merges"].as_bool()) {
    return Refuse(Where("model.ignore_merges"), "true", "false");
  }
  if (model_["dropout"].as_double() != 0) {
    return Refuse(Where("model.dropout"), Found(model_["dropout"]), "null");
  }
  for (const std::string_view key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    const Json& affix = model_[key];
    if (!affix.is_null() && affix != Json("")) {
      return Refuse(Where(fmt::format("model.{}", key)), Found(affix), "null");
    }
  }
  return {};
}

Status Reader::CheckNormalizer() const {
  const Json& stated = tokenizer_["normalizer"];
  const auto& steps = stated["normalizers"].items();
  const Json& step =
      stated["type"].as_string() == "Sequence" && steps.size() == 1 ? steps[0] : stated;
  if (step["type"].as_string() != "Replace" || step["pattern"]["String"].as_string() != " " ||
      step["content"].as_string() != kSpacePiece) {
    return Refuse(Where("normalizer"), Found(stated), "a Replace of \" \" by \"\xe2\x96\x81\"");
  }
  return {};
}

/// The family's pre-tokenizer splits at spaces, of which the normalizer leaves none; so it does
/// nothing.
Status Reader::CheckPreTokenizer() const {
  const Json& stated = tokenizer_["pre_tokenizer"];
  const bool is_idle =
      stated["type"].as_string() == "Split" && stated["pattern"]["String"].as_string() == " ";
  if (!stated.is_null() && !is_idle) {
    return Refuse(Where("pre_tokenizer"), Found(stated), "null or a Split at \" \"");
  }
  return {};
}

Status Reader::AddVocab() {
  const Json& vocab = model_["vocab"];
  if (!vocab.is_object()) {
    return Refuse(Where("model.vocab"), Found(vocab), "an object");
  }
  for (const auto& [text, id] : vocab.members()) {
    FACET_RETURN_IF_ERROR(AddToken(id, text, "model.vocab"));
  }
  return {};
}

/// Puts a text at its id. `list` is the key under which both stand.
Status Reader::AddToken(const Json& id, std::string_view text, std::string_view list) {
  const auto where = [&] { return fmt::format("{}[{}]", Where(list), Json(text).Dump()); };
  if (!id.is_integer() || id.as_int() < 0 ||
      id.as_int() >= static_cast<int64_t>(Vocab::kMaxTokens)) {
    return Refuse(where(), Found(id), fmt::format("an id below {}", Vocab::kMaxTokens));
  }
  const auto index = static_cast<size_t>(id.as_int());
  if (index >= parts_.texts.size()) {
    parts_.texts.resize(index + 1);
    parts_.kinds.resize(index + 1, TokenKind::kNormal);
  }
  if (parts_.texts[index].data() != nullptr && parts_.texts[index] != text) {
    return Refuse(where(),
                  fmt::format("id {}, which is {}", index, Json(parts_.texts[index]).Dump()),
                  "an id of its own");
  }
  parts_.texts[index] = text;
  return {};
}

Status Reader::AddAddedTokens() {
  const Json& added = tokenizer_["added_tokens"];
  if (!added.is_null() && !added.is_array()) {
    return Refuse(Where("added_tokens"), Found(added), "an array");
  }
  for (size_t i = 0; i < added.items().size(); ++i) {
    const Json& token = added.items()[i];
    const std::string where = Where(fmt::format("added_tokens[{}]", i));
    if (!token["content"].is_string()) {
      return Refuse(where + ".content", Found(token["content"]), "a string");
    }
    for (const std::string_view key : {"lstrip", "rstrip", "single_word"}) {
      if (token[key].as_bool()) {
        return Refuse(fmt::format("{}.{}", where, key), "true", "false");
      }
    }
    FACET_RETURN_IF_ERROR(AddToken(token["id"], token["content"].as_string(), "added_tokens"));
    parts_.kinds[static_cast<size_t>(token["id"].as_int())] =
        token["special"].as_bool() ? TokenKind::kControl : TokenKind::kUserDefined;
  }
  return {};
}

Status Reader::AddMerges() {
  const Json& merges = model_["merges"];
  if (!merges.is_array()) {
    return Refuse(Where("model.merges"), Found(merges), "an array");
  }
  parts_.merges.reserve(merges.items().size());
  for (const Json& merge : merges.items()) {
    const auto& pair = merge.items();
    if (pair.size() == 2 && pair[0].is_string() && pair[1].is_string()) {
      parts_.merges.emplace_back(pair[0].as_string(), pair[1].as_string());
      continue;
    }
    const auto split = SplitMerge(merge.as_string());
    if (!split) {
      return Refuse(fmt::format("{}[{}]", parts_.merges_name, parts_.merges.size()), Found(merge),
                    "two token texts, in an array or with a space between");
    }
    parts_.merges.push_back(*split);
  }
  return {};
}

/// Sets `id` to the token that the configuration names for a role (as a text, or as an object with
/// its content); the unknown token may be named by the model instead. Roles that nobody names are
/// left alone.
Status Reader::FindRole(std::string_view key, int& id) const {
  const Json& stated = config_[key].is_object() ? config_[key]["content"] : config_[key];
  const Json& role = stated.is_null() ? model_[key] : stated;
  if (role.is_null()) {
    return {};
  }
  const auto found = std::find(parts_.texts.begin(), parts_.texts.end(), role.as_string());
  if (!role.is_string() || found == parts_.texts.end()) {
    return Refuse(Where(key), Found(role), "the text of a token");
  }
  id = static_cast<int>(found - parts_.texts.begin());
  return {};
}

}  // namespace

Result<Vocab> Vocab::FromTokenizerJson(const Json& tokenizer, const Json& config,
                                       const std::string& name) {
  FACET_ASSIGN(const VocabParts parts, Reader(tokenizer, config, name).Read());
  return FromParts(parts);
}

}  // namespace facet
