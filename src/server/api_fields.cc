// SPDX-License-Identifier: Apache-2.0
#include "server/api_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/nearest.h"
#include "server/api_values.h"

namespace facet {
namespace {

using Kind = ApiRequest::Kind;

constexpr size_t kMaxBiases = 1024;
constexpr size_t kMaxVariables = 64;

using Reader = Status (*)(const std::string& where, const Json& value, ApiFields* fields);

/// Sets `target`, or refuses a value that differs from what another name has set.
template <typename T>
Status Agree(const std::string& where, T value, std::optional<NamedValue<T>>* target) {
  if (*target && (*target)->value != value) {
    return Refuse(where, fmt::format("{}", value),
                  fmt::format("{}, as {} says", (*target)->value, (*target)->name));
  }
  if (!*target) {
    *target = NamedValue<T>{where, value};
  }
  return {};
}

// --- fields of both ------------------------------------------------------------------------------

Status Ignore(const std::string&, const Json&, ApiFields*) { return {}; }

template <float SamplingParams::*kTarget>
Status ReadSampling(const std::string& where, const Json& value, ApiFields* fields) {
  return ReadNumber(where, value, &(fields->request.engine.sampling.*kTarget));
}

template <bool ApiRequest::*kTarget>
Status ReadFlag(const std::string& where, const Json& value, ApiFields* fields) {
  return ReadBool(where, value, &(fields->request.*kTarget));
}

Status ReadTopK(const std::string& where, const Json& value, ApiFields* fields) {
  return ReadInteger(where, value, &fields->request.engine.sampling.top_k);
}

Status ReadRepetitionPenalty(const std::string& where, const Json& value, ApiFields* fields) {
  float penalty = 1;
  FACET_RETURN_IF_ERROR(ReadNumber(where, value, &penalty));
  return Agree(where, penalty, &fields->repetition_penalty);
}

Status ReadMaxTokens(const std::string& where, const Json& value, ApiFields* fields) {
  int max_tokens = -1;
  FACET_RETURN_IF_ERROR(ReadInteger(where, value, &max_tokens));
  return Agree(where, max_tokens, &fields->max_tokens);
}

Status ReadRepeatLastN(const std::string& where, const Json& value, ApiFields* fields) {
  fields->repeat_last_n.emplace();
  return ReadInteger(where, value, &*fields->repeat_last_n);
}

Status ReadN(const std::string& where, const Json& value, ApiFields* fields) {
  return ReadIntegerWithin(where, value, {1, kMaxChoices}, &fields->request.n);
}

Status ReadTimeout(const std::string& where, const Json& value, ApiFields* fields) {
  constexpr int kDay = 24 * 60 * 60;
  return ReadIntegerWithin(where, value, {1, kDay}, &fields->request.timeout_s.emplace());
}

/// Any 64 bits, with or without a sign; -1 leaves the choice to us.
Status ReadSeed(const std::string& where, const Json& value, ApiFields* fields) {
  if (value == Json(-1)) {
    return {};
  }
  if (value.is_integer()) {
    fields->seed = static_cast<uint64_t>(value.as_int());
  } else if (value.is_big_integer()) {
    fields->seed = ParseNumber<uint64_t>(value.as_big_integer().digits);
  }
  return fields->seed ? Status() : Wrong(where, value, "an integer of 64 bits");
}

Status ReadStop(const std::string& where, const Json& value, ApiFields* fields) {
  std::vector<std::string>& stop = fields->request.engine.stop;
  stop.clear();
  if (value.is_string()) {
    stop.push_back(value.as_string());
    return {};
  }
  if (!value.is_array()) {
    return Wrong(where, value, "a string or an array of strings");
  }
  stop.reserve(value.items().size());
  for (const Json& item : value.items()) {
    const std::string item_where = fmt::format("{}[{}]", where, stop.size());
    FACET_RETURN_IF_ERROR(ReadString(item_where, item, &stop.emplace_back()));
  }
  return {};
}

/// An object of token ids and numbers, or a list of such pairs.
Status ReadLogitBias(const std::string& where, const Json& value, ApiFields* fields) {
  if (!value.is_object() && !value.is_array()) {
    return Wrong(where, value, "an object of token ids and numbers");
  }
  auto& biases = fields->request.engine.sampling.logit_bias;
  const size_t n_biases = value.members().size() + value.items().size();
  if (n_biases > kMaxBiases) {
    return Refuse(where, fmt::format("{} tokens", n_biases), fmt::format("at most {}", kMaxBiases));
  }
  biases.clear();
  biases.reserve(n_biases);
  for (const auto& [name, bias] : value.members()) {
    const std::optional<int32_t> token = ParseNumber<int32_t>(name);
    if (!token) {
      return Wrong(where, name, "token ids as keys");
    }
    FACET_RETURN_IF_ERROR(ReadNumber(fmt::format("{}.{}", where, name), bias,
                                     &biases.emplace_back(*token, 0).second));
  }
  for (const Json& pair : value.items()) {
    const std::string pair_where = fmt::format("{}[{}]", where, biases.size());
    if (pair.items().size() != 2) {
      return Wrong(pair_where, pair, "a token id and a number");
    }
    auto& [token, bias] = biases.emplace_back();
    FACET_RETURN_IF_ERROR(ReadInteger(pair_where, pair.items()[0], &token));
    FACET_RETURN_IF_ERROR(ReadNumber(pair_where, pair.items()[1], &bias));
  }
  return {};
}

Status ReadModel(const std::string& where, const Json& value, ApiFields*) {
  std::string name;
  return ReadString(where, value, &name);
}

Status ReadStreamOptions(const std::string& where, const Json& value, ApiFields* fields) {
  if (!value.is_object()) {
    return Wrong(where, value, "an object");
  }
  fields->has_stream_options = true;
  for (const auto& [name, member] : value.members()) {
    const std::string member_where = fmt::format("{}.{}", where, name);
    if (name == "include_usage") {
      if (!member.is_null()) {
        FACET_RETURN_IF_ERROR(ReadBool(member_where, member, &fields->request.include_usage));
      }
    } else if (name != "include_obfuscation") {
      return Refuse(where, "an unknown member " + ShownValue(name), "include_usage");
    }
  }
  return {};
}

Status ReadTopLogprobs(const std::string& where, const Json& value, ApiFields* fields) {
  return ReadIntegerWithin(where, value, {0, kMaxTopLogprobs}, &fields->n_top_logprobs.emplace());
}

Status ReadCachePrompt(const std::string& where, const Json& value, ApiFields* fields) {
  return ReadBool(where, value, &fields->request.engine.reuses_prefix);
}

Status ReadCacheSalt(const std::string& where, const Json& value, ApiFields* fields) {
  return ReadString(where, value, &fields->request.engine.cache_salt);
}

Status ReadSpec(const std::string& where, const Json& value, ApiFields* fields) {
  const std::optional<SpecMode> mode =
      value.is_string() ? FindSpecMode(value.as_string()) : std::nullopt;
  if (!mode) {
    return Wrong(where, value, "auto, mtp, ngram or off");
  }
  fields->request.engine.spec = *mode;
  return {};
}

Status OnlyTextFormat(const std::string& where, const Json& value, ApiFields*) {
  if (!value.is_object()) {
    return Wrong(where, value, "an object");
  }
  const Json& type = value["type"];
  return type == Json("text") ? Status()
                              : Wrong(where + ".type", type,
                                      "\"text\" (replies cannot be bound to JSON or a schema)");
}

// --- fields of a chat ----------------------------------------------------------------------------

Status ReadMessages(const std::string&, const Json& value, ApiFields* fields) {
  fields->request.chat.messages = value;
  return {};
}

Status ReadTools(const std::string& where, const Json& value, ApiFields* fields) {
  if (!value.is_array()) {
    return Wrong(where, value, "an array");
  }
  fields->request.chat.tools = value.items().empty() ? Json() : value;
  return {};
}

Status ReadToolChoice(const std::string& where, const Json& value, ApiFields* fields) {
  if (value != Json("none") && value != Json("auto")) {
    return Wrong(where, value, "\"none\" or \"auto\" (a call cannot be forced)");
  }
  fields->offers_tools = value == Json("auto");
  return {};
}

Status ReadLogprobs(const std::string& where, const Json& value, ApiFields* fields) {
  return ReadBool(where, value, &fields->wants_logprobs.emplace());
}

Status ReadThink(const std::string& where, const Json& value, ApiFields* fields) {
  bool thinks = false;
  FACET_RETURN_IF_ERROR(ReadBool(where, value, &thinks));
  return Agree(where, thinks, &fields->thinks);
}

Status ReadThinkingBudget(const std::string& where, const Json& value, ApiFields* fields) {
  int budget = -1;
  FACET_RETURN_IF_ERROR(ReadInteger(where, value, &budget));
  if (budget < -1) {
    return Wrong(where, value, "at least 0, or -1 for no limit");
  }
  return Agree(where, budget, &fields->thinking_budget);
}

Status ReadReasoningEffort(const std::string& where, const Json& value, ApiFields* fields) {
  static constexpr std::array<std::pair<std::string_view, int>, 6> kBudgets = {{{"none", 0},
                                                                                {"minimal", 256},
                                                                                {"low", 1024},
                                                                                {"medium", 4096},
                                                                                {"high", -1},
                                                                                {"xhigh", -1}}};
  for (const auto& [name, budget] : kBudgets) {
    if (value == Json(name)) {
      fields->effort_budget = budget;
      return Agree(where, budget != 0, &fields->thinks);
    }
  }
  return Wrong(where, value, "none, minimal, low, medium, high or xhigh");
}

Status ReadTemplateVariables(const std::string& where, const Json& value, ApiFields* fields) {
  if (!value.is_object()) {
    return Wrong(where, value, "an object");
  }
  if (value.members().size() > kMaxVariables) {
    return Refuse(where, fmt::format("{} variables", value.members().size()),
                  fmt::format("at most {}", kMaxVariables));
  }
  static constexpr std::string_view kTakenNames[] = {"messages", "tools", "add_generation_prompt",
                                                     "bos_token", "eos_token"};
  Json variables = Json(Json::Object());
  for (const auto& [name, member] : value.members()) {
    const std::string member_where = fmt::format("{}.{}", where, name);
    if (name == "enable_thinking") {
      FACET_RETURN_IF_ERROR(ReadThink(member_where, member, fields));
    } else if (name == "thinking_budget") {
      FACET_RETURN_IF_ERROR(ReadThinkingBudget(member_where, member, fields));
    } else if (std::find(std::begin(kTakenNames), std::end(kTakenNames), name) !=
               std::end(kTakenNames)) {
      return Refuse(member_where, "a name with a meaning of its own", "another name");
    } else {
      variables.Set(name, member);
    }
  }
  fields->request.chat.variables = std::move(variables);
  return {};
}

Status OnlySplitThoughts(const std::string& where, const Json& value, ApiFields*) {
  return value == Json("auto") || value == Json("deepseek")
             ? Status()
             : Wrong(where, value, "\"auto\" (thoughts come as reasoning_content)");
}

Status OnlyTextModality(const std::string& where, const Json& value, ApiFields*) {
  return value == Json::MakeArray({"text"}) ? Status() : Wrong(where, value, "[\"text\"]");
}

Status OnlyMedium(const std::string& where, const Json& value, ApiFields*) {
  return value == Json("medium") ? Status() : Wrong(where, value, "\"medium\"");
}

Status NoFunctions(const std::string& where, const Json& value, ApiFields*) {
  return Wrong(where, value, "tools and tool_choice in place of it");
}

// --- fields of a completion ----------------------------------------------------------------------

Status ReadTokens(const std::string& where, const Json::Array& items, ApiFields* fields) {
  std::vector<int32_t> tokens;
  tokens.reserve(items.size());
  for (const Json& item : items) {
    const std::string item_where = fmt::format("{}[{}]", where, tokens.size());
    FACET_RETURN_IF_ERROR(ReadInteger(item_where, item, &tokens.emplace_back()));
  }
  fields->request.prompts.emplace_back(std::move(tokens));
  return {};
}

/// A text, several, the tokens of one, or of several.
Status ReadPrompt(const std::string& where, const Json& value, ApiFields* fields) {
  constexpr const char* kWanted = "a string, an array of strings, or of tokens";
  std::vector<PromptText>& prompts = fields->request.prompts;
  prompts.clear();
  if (value.is_string()) {
    prompts.emplace_back(value.as_string());
    return {};
  }
  const Json::Array& items = value.items();
  if (!value.is_array() || items.empty()) {
    return Wrong(where, value, kWanted);
  }
  if (items[0].is_number()) {
    return ReadTokens(where, items, fields);
  }
  if (items.size() > kMaxChoices) {
    return Refuse(where, fmt::format("{} prompts", items.size()),
                  fmt::format("at most {}", kMaxChoices));
  }
  for (const Json& item : items) {
    const std::string item_where = fmt::format("{}[{}]", where, prompts.size());
    if (item.is_string()) {
      prompts.emplace_back(item.as_string());
    } else if (item.is_array()) {
      FACET_RETURN_IF_ERROR(ReadTokens(item_where, item.items(), fields));
    } else {
      return Wrong(item_where, item, "a string or an array of tokens");
    }
  }
  return {};
}

Status ReadBestOf(const std::string& where, const Json& value, ApiFields* fields) {
  return ReadInteger(where, value, &fields->best_of.emplace());
}

Status NoSuffix(const std::string& where, const Json& value, ApiFields*) {
  return value == Json("") ? Status() : Wrong(where, value, "none (gaps in a text are not filled)");
}

// --- settings of other servers, where they may only say what happens anyway ----------------------

template <bool kValue>
Status OnlyFlag(const std::string& where, const Json& value, ApiFields*) {
  return value == Json(kValue) ? Status() : Wrong(where, value, kValue ? "true" : "false");
}

template <int kValue>
Status OnlyNumber(const std::string& where, const Json& value, ApiFields*) {
  return value.is_number() && value.as_double() == kValue
             ? Status()
             : Wrong(where, value, fmt::format("{}", kValue));
}

Status OnlyEmpty(const std::string& where, const Json& value, ApiFields*) {
  const bool is_empty = value == Json("") || value == Json(Json::Array()) ||
                        value == Json(Json::Object()) || value == Json(false);
  return is_empty ? Status() : Wrong(where, value, "none of it");
}

// --- the table -----------------------------------------------------------------------------------

struct Field {
  std::string_view name;
  Reader chat;        ///< null: unknown in a chat
  Reader completion;  ///< null: unknown in a completion
};

template <Reader kReader>
constexpr Field Both(std::string_view name) {
  return {name, kReader, kReader};
}

constexpr Field kFields[] = {
    // OpenAI's
    {"messages", ReadMessages, nullptr},
    {"prompt", nullptr, ReadPrompt},
    Both<ReadModel>("model"),
    Both<ReadFlag<&ApiRequest::stream>>("stream"),
    Both<ReadStreamOptions>("stream_options"),
    Both<ReadN>("n"),
    Both<ReadMaxTokens>("max_tokens"),
    Both<ReadMaxTokens>("max_completion_tokens"),
    Both<ReadSampling<&SamplingParams::temperature>>("temperature"),
    Both<ReadSampling<&SamplingParams::top_p>>("top_p"),
    Both<ReadSampling<&SamplingParams::presence_penalty>>("presence_penalty"),
    Both<ReadSampling<&SamplingParams::frequency_penalty>>("frequency_penalty"),
    Both<ReadLogitBias>("logit_bias"),
    Both<ReadSeed>("seed"),
    Both<ReadStop>("stop"),
    {"logprobs", ReadLogprobs, ReadTopLogprobs},
    {"top_logprobs", ReadTopLogprobs, nullptr},
    {"tools", ReadTools, nullptr},
    {"tool_choice", ReadToolChoice, nullptr},
    {"parallel_tool_calls", ReadFlag<&ApiRequest::parallel_tool_calls>, nullptr},
    {"functions", NoFunctions, nullptr},
    {"function_call", NoFunctions, nullptr},
    {"reasoning_effort", ReadReasoningEffort, nullptr},
    {"modalities", OnlyTextModality, nullptr},
    {"verbosity", OnlyMedium, nullptr},
    {"prediction", Ignore, nullptr},
    {"echo", nullptr, ReadFlag<&ApiRequest::echo>},
    {"best_of", nullptr, ReadBestOf},
    {"suffix", nullptr, NoSuffix},
    Both<OnlyTextFormat>("response_format"),
    Both<Ignore>("metadata"),
    Both<Ignore>("prompt_cache_key"),
    Both<Ignore>("prompt_cache_retention"),
    Both<Ignore>("safety_identifier"),
    Both<Ignore>("service_tier"),
    Both<Ignore>("store"),
    Both<Ignore>("user"),
    // Ours, under the names that several servers have for them
    Both<ReadTopK>("top_k"),
    Both<ReadSampling<&SamplingParams::min_p>>("min_p"),
    Both<ReadRepetitionPenalty>("repetition_penalty"),
    Both<ReadRepetitionPenalty>("repeat_penalty"),
    Both<ReadRepeatLastN>("repeat_last_n"),
    Both<ReadMaxTokens>("n_predict"),
    Both<ReadCachePrompt>("cache_prompt"),
    Both<ReadCacheSalt>("cache_salt"),
    Both<ReadTimeout>("timeout"),
    Both<ReadSpec>("spec"),
    {"think", ReadThink, nullptr},
    {"enable_thinking", ReadThink, nullptr},
    {"reasoning_budget", ReadThinkingBudget, nullptr},
    {"thinking_budget", ReadThinkingBudget, nullptr},
    {"thinking_budget_tokens", ReadThinkingBudget, nullptr},
    {"chat_template_kwargs", ReadTemplateVariables, nullptr},
    // llama.cpp's and vLLM's: off, or without effect while that is off
    {"reasoning_format", OnlySplitThoughts, nullptr},
    {"add_generation_prompt", OnlyFlag<true>, nullptr},
    {"continue_final_message", OnlyFlag<false>, nullptr},
    Both<OnlyFlag<false>>("ignore_eos"),
    Both<OnlyFlag<false>>("return_tokens"),
    Both<OnlyNumber<0>>("mirostat"),
    Both<OnlyNumber<0>>("dynatemp_range"),
    Both<OnlyNumber<0>>("xtc_probability"),
    Both<OnlyNumber<0>>("dry_multiplier"),
    Both<OnlyNumber<0>>("min_tokens"),
    Both<OnlyNumber<1>>("typ_p"),
    Both<OnlyNumber<1>>("typical_p"),
    Both<OnlyEmpty>("samplers"),
    Both<OnlyEmpty>("grammar"),
    Both<OnlyEmpty>("json_schema"),
    Both<OnlyEmpty>("lora"),
    Both<Ignore>("mirostat_tau"),
    Both<Ignore>("mirostat_eta"),
    Both<Ignore>("dynatemp_exponent"),
    Both<Ignore>("xtc_threshold"),
    Both<Ignore>("dry_base"),
    Both<Ignore>("dry_allowed_length"),
    Both<Ignore>("dry_penalty_last_n"),
    Both<Ignore>("dry_sequence_breakers"),
    Both<Ignore>("id_slot"),
    Both<Ignore>("n_keep"),
    Both<Ignore>("return_progress"),
    Both<Ignore>("timings_per_token"),
};

Reader ReaderOf(const Field& field, Kind kind) {
  return kind == Kind::kChat ? field.chat : field.completion;
}

const Field* FindField(std::string_view name) {
  const auto* field = std::find_if(std::begin(kFields), std::end(kFields),
                                   [name](const Field& f) { return f.name == name; });
  return field == std::end(kFields) ? nullptr : field;
}

Error UnknownField(const std::string& name, Kind kind) {
  if (FindField(name) != nullptr) {
    return Refuse(name, kind == Kind::kChat ? "a field of completions" : "a field of chats",
                  "none of this name");
  }
  std::vector<std::string_view> known;
  known.reserve(std::size(kFields));
  for (const Field& field : kFields) {
    if (ReaderOf(field, kind) != nullptr) {
      known.push_back(field.name);
    }
  }
  const bool is_shown = !name.empty() && name.size() <= kMostShownBytes;
  const std::string_view nearest = is_shown ? Nearest(name, known) : std::string_view();
  return Refuse(is_shown ? name : "body", "an unknown field",
                nearest.empty() ? "none of this name" : std::string(nearest));
}

}  // namespace

Status ReadApiFields(const Json& body, ApiFields* fields) {
  const Kind kind = fields->request.kind;
  for (const auto& [name, value] : body.members()) {
    const Field* field = FindField(name);
    const Reader reader = field == nullptr ? nullptr : ReaderOf(*field, kind);
    if (reader == nullptr) {
      return UnknownField(name, kind);
    }
    if (!value.is_null()) {
      FACET_RETURN_IF_ERROR(reader(name, value, fields));
    }
  }
  return {};
}

}  // namespace facet
