// SPDX-License-Identifier: Apache-2.0
#include "app/batch_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <utility>

namespace facet {
namespace {

using Form = BatchKey::Form;

Error Wrong(const std::string& where, const Json& value, std::string wanted) {
  const bool is_short = value.is_bool() || value.is_number();
  return Refuse(where, is_short ? value.Dump() : std::string(value.KindName()), std::move(wanted));
}

// --- values of fields ----------------------------------------------------------------------------

using Reader = Status (*)(const std::string& where, const Json& value, BatchRequest* request);

template <auto kTarget>
Status ReadFloat(const std::string& where, const Json& value, BatchRequest* request) {
  if (!value.is_integer() && !value.is_double()) {
    return Wrong(where, value, "a number");
  }
  constexpr double kMost = std::numeric_limits<float>::max();
  request->options.*kTarget = static_cast<float>(std::clamp(value.as_double(), -kMost, kMost));
  return {};
}

template <auto kTarget>
Status ReadInt(const std::string& where, const Json& value, BatchRequest* request) {
  if (!value.is_integer()) {
    return Wrong(where, value, "an integer");
  }
  using Limits = std::numeric_limits<int>;
  request->options.*kTarget =
      static_cast<int>(std::clamp<int64_t>(value.as_int(), Limits::min(), Limits::max()));
  return {};
}

template <auto kTarget>
Status ReadFlag(const std::string& where, const Json& value, BatchRequest* request) {
  if (!value.is_bool()) {
    return Wrong(where, value, "true or false");
  }
  request->options.*kTarget = value.as_bool();
  return {};
}

Status ReadText(const std::string& where, const Json& value, std::string* text) {
  if (!value.is_string()) {
    return Wrong(where, value, "a string");
  }
  *text = value.as_string();
  return {};
}

template <typename Number>
std::optional<Number> ParseNumber(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return number;
}

Status ReadSeed(const std::string& where, const Json& value, BatchRequest* request) {
  const bool is_integer = value.is_integer() || value.is_big_integer();
  request->options.seed = is_integer ? ParseNumber<uint64_t>(value.Dump()) : std::nullopt;
  if (!request->options.seed) {
    return Wrong(where, value,
                 fmt::format("an integer from 0 to {}", std::numeric_limits<uint64_t>::max()));
  }
  return {};
}

Status ReadSpec(const std::string& where, const Json& value, BatchRequest* request) {
  const std::optional<SpecMode> mode =
      value.is_string() ? FindSpecMode(value.as_string()) : std::nullopt;
  if (!mode) {
    return Refuse(where, value.Dump(), "auto, mtp, ngram or off");
  }
  request->options.spec = *mode;
  return {};
}

Status ReadStop(const std::string& where, const Json& value, BatchRequest* request) {
  constexpr const char* kWanted = "a string or an array of strings";
  std::vector<std::string>& stop = request->options.stop;
  stop.clear();
  if (value.is_string()) {
    stop.push_back(value.as_string());
    return {};
  }
  if (!value.is_array()) {
    return Wrong(where, value, kWanted);
  }
  stop.reserve(value.items().size());
  for (const Json& item : value.items()) {
    if (!item.is_string()) {
      return Wrong(fmt::format("{}[{}]", where, stop.size()), item, "a string");
    }
    stop.push_back(item.as_string());
  }
  return {};
}

Status ReadLogitBias(const std::string& where, const Json& value, BatchRequest* request) {
  if (!value.is_object()) {
    return Wrong(where, value, "an object of token ids and numbers");
  }
  LogitBias& biases = request->options.logit_bias;
  biases.clear();
  biases.reserve(value.members().size());
  for (const auto& [name, bias] : value.members()) {
    const std::optional<int32_t> token = ParseNumber<int32_t>(name);
    if (!token) {
      return Refuse(where, Json(name).Dump(), "token ids as keys");
    }
    if (!bias.is_integer() && !bias.is_double()) {
      return Wrong(fmt::format("{}.{}", where, name), bias, "a number");
    }
    biases.emplace_back(*token, static_cast<float>(std::clamp(bias.as_double(), -1e6, 1e6)));
  }
  return {};
}

Status ReadPrompt(const std::string& where, const Json& value, BatchRequest* request) {
  return ReadText(where, value, &request->prompt);
}

Status ReadSystem(const std::string& where, const Json& value, BatchRequest* request) {
  return ReadText(where, value, &request->options.system);
}

Status ReadModel(const std::string& where, const Json& value, BatchRequest* request) {
  return ReadText(where, value, &request->model);
}

Status ReadMessages(const std::string& where, const Json& value, BatchRequest* request) {
  if (!value.is_array()) {
    return Wrong(where, value, "an array");
  }
  request->messages = value;
  return {};
}

Status ReadTools(const std::string& where, const Json& value, BatchRequest* request) {
  if (!value.is_array()) {
    return Wrong(where, value, "an array");
  }
  request->tools = value.items().empty() ? Json() : value;
  return {};
}

// --- fields that only may say what happens anyway ------------------------------------------------

Status Ignore(const std::string&, const Json&, BatchRequest*) { return {}; }

Status OnlyOne(const std::string& where, const Json& value, BatchRequest*) {
  return value == Json(1) ? Status() : Wrong(where, value, "1");
}

Status OnlyZero(const std::string& where, const Json& value, BatchRequest*) {
  return value == Json(0) ? Status() : Wrong(where, value, "0");
}

Status OnlyFalse(const std::string& where, const Json& value, BatchRequest*) {
  return value == Json(false) ? Status() : Wrong(where, value, "false");
}

Status OnlyAuto(const std::string& where, const Json& value, BatchRequest*) {
  return value == Json("auto") ? Status() : Refuse(where, value.Dump(), "\"auto\"");
}

Status OnlyTextFormat(const std::string& where, const Json& value, BatchRequest*) {
  const Json& type = value["type"];
  return type == Json("text") ? Status() : Refuse(where, "type " + type.Dump(), "type \"text\"");
}

Status NoTools(const std::string& where, const Json& value, BatchRequest*) {
  if (value.is_array() && value.items().empty()) {
    return {};
  }
  return Wrong(where, value, "none (a line with id and messages may have tools)");
}

// --- the table -----------------------------------------------------------------------------------

struct Field {
  std::string_view name;
  Reader own;      ///< null: unknown in our own form
  Reader open_ai;  ///< null: unknown in OpenAI's
};

template <Reader kReader>
constexpr Field Both(std::string_view name) {
  return {name, kReader, kReader};
}

constexpr Field kFields[] = {
    {"id", Ignore, nullptr},
    {"prompt", ReadPrompt, nullptr},
    {"system", ReadSystem, nullptr},
    {"raw", ReadFlag<&Options::raw>, nullptr},
    Both<ReadMessages>("messages"),
    {"tools", ReadTools, NoTools},
    Both<ReadFlag<&Options::think>>("think"),
    Both<ReadFlag<&Options::think>>("enable_thinking"),
    Both<ReadInt<&Options::max_tokens>>("max_tokens"),
    Both<ReadInt<&Options::max_tokens>>("max_completion_tokens"),
    Both<ReadFloat<&Options::temperature>>("temperature"),
    Both<ReadInt<&Options::top_k>>("top_k"),
    Both<ReadFloat<&Options::top_p>>("top_p"),
    Both<ReadFloat<&Options::min_p>>("min_p"),
    Both<ReadFloat<&Options::repeat_penalty>>("repetition_penalty"),
    Both<ReadFloat<&Options::repeat_penalty>>("repeat_penalty"),
    Both<ReadFloat<&Options::presence_penalty>>("presence_penalty"),
    Both<ReadFloat<&Options::frequency_penalty>>("frequency_penalty"),
    Both<ReadSeed>("seed"),
    Both<ReadStop>("stop"),
    Both<ReadLogitBias>("logit_bias"),
    Both<ReadModel>("model"),
    Both<ReadSpec>("spec"),
    Both<OnlyOne>("n"),
    Both<OnlyFalse>("stream"),
    Both<OnlyFalse>("logprobs"),
    Both<OnlyZero>("top_logprobs"),
    Both<OnlyAuto>("tool_choice"),
    Both<OnlyTextFormat>("response_format"),
    Both<Ignore>("metadata"),
    Both<Ignore>("parallel_tool_calls"),
    Both<Ignore>("prompt_cache_key"),
    Both<Ignore>("safety_identifier"),
    Both<Ignore>("service_tier"),
    Both<Ignore>("store"),
    Both<Ignore>("stream_options"),
    Both<Ignore>("user"),
};

const Field* FindField(std::string_view name) {
  const auto* field = std::find_if(std::begin(kFields), std::end(kFields),
                                   [name](const Field& f) { return f.name == name; });
  return field == std::end(kFields) ? nullptr : field;
}

Status ReadFields(const Json& object, Form form, BatchRequest* request) {
  for (const auto& [name, value] : object.members()) {
    const std::string where = form == Form::kOwn ? name : "body." + name;
    const Field* field = FindField(name);
    const Reader reader = field == nullptr     ? nullptr
                          : form == Form::kOwn ? field->own
                                               : field->open_ai;
    if (reader == nullptr) {
      return Refuse(where, "an unknown field", "none of this name (docs/batch.md lists them)");
    }
    if (!value.is_null()) {
      FACET_RETURN_IF_ERROR(reader(where, value, request));
    }
  }
  return {};
}

// --- what belongs together -----------------------------------------------------------------------

Status CheckRaw(const Json& object, const BatchRequest& request) {
  if (!request.options.raw) {
    return {};
  }
  for (const auto& [name, is_given] :
       {std::pair("messages", !request.messages.is_null()),
        std::pair("tools", !request.tools.is_null()), std::pair("think", request.options.think),
        std::pair("system", !request.options.system.empty())}) {
    if (is_given) {
      return Refuse("raw", fmt::format("given with {}", name), "no chat template, or one");
    }
  }
  return object["prompt"].is_null() ? Status(Refuse("raw", "no prompt", "one")) : Status();
}

Json Message(std::string_view role, const std::string& text) {
  return Json::MakeObject({{"role", role}, {"content", text}});
}

/// Makes the messages of a prompt, and puts the system's text before them. A system message of the
/// line's own goes before the command line's text.
Status CompleteMessages(const Json& object, BatchRequest* request) {
  const bool has_prompt = !object["prompt"].is_null();
  if (has_prompt == !request->messages.is_null()) {
    return Refuse("line", has_prompt ? "prompt and messages" : "neither prompt nor messages",
                  "one of them");
  }
  if (has_prompt) {
    request->messages = Json::MakeArray({Message("user", request->prompt)});
  }
  const std::string& system = request->options.system;
  Json::Array& messages = request->messages.mutable_items();
  if (system.empty() || messages.empty()) {
    return {};
  }
  const std::string& role = messages.front()["role"].as_string();
  if (role != "system" && role != "developer") {
    messages.insert(messages.begin(), Message("system", system));
    return {};
  }
  return object["system"].is_null()
             ? Status()
             : Refuse("system", "given with a message of role " + role, "one of them");
}

bool IsOpenAi(const Json& json) { return json.contains("custom_id") || json.contains("body"); }

Status CheckEnvelope(const Json& json) {
  constexpr std::string_view kUrl = "/v1/chat/completions";
  if (json["method"] != Json("POST")) {
    return Refuse("method", json["method"].Dump(), "\"POST\"");
  }
  if (json["url"] != Json(kUrl)) {
    return Refuse("url", json["url"].Dump(), Json(kUrl).Dump());
  }
  for (const auto& [name, value] : json.members()) {
    if (name != "custom_id" && name != "method" && name != "url" && name != "body") {
      return Refuse(name, "an unknown field", "custom_id, method, url and body");
    }
  }
  return json["body"].is_object() ? Status() : Wrong("body", json["body"], "an object");
}

}  // namespace

Status ReadBatchKey(const Json& json, int64_t line, BatchKey* key) {
  *key = {Form::kOwn, line, Json()};
  if (!json.is_object()) {
    return Wrong("line", json, "an object");
  }
  const bool is_open_ai = IsOpenAi(json);
  key->form = is_open_ai ? Form::kOpenAi : Form::kOwn;
  const char* name = is_open_ai ? "custom_id" : "id";
  const Json& id = json[name];
  if (id.is_null() && !is_open_ai) {
    key->id = line;
    return {};
  }
  if (!id.is_string() && (is_open_ai || !id.is_integer())) {
    return Wrong(name, id, is_open_ai ? "a string" : "a string or an integer");
  }
  if (id.is_string() && (id.as_string().empty() || id.as_string().size() > kMaxBatchIdBytes)) {
    return Refuse(name, fmt::format("{} bytes", id.as_string().size()),
                  fmt::format("1 to {}", kMaxBatchIdBytes));
  }
  key->id = id;
  return {};
}

Result<BatchRequest> ReadBatchRequest(const Json& json, const BatchKey& key,
                                      const Options& defaults) {
  BatchRequest request;
  request.options = defaults;
  const bool is_open_ai = key.form == Form::kOpenAi;
  if (is_open_ai) {
    FACET_RETURN_IF_ERROR(CheckEnvelope(json));
  }
  const Json& object = is_open_ai ? json["body"] : json;
  FACET_RETURN_IF_ERROR(ReadFields(object, key.form, &request));
  FACET_RETURN_IF_ERROR(CheckRaw(object, request));
  if (!request.options.raw) {
    FACET_RETURN_IF_ERROR(CompleteMessages(object, &request));
  }
  return request;
}

}  // namespace facet
