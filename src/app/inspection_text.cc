// SPDX-License-Identifier: Apache-2.0
#include "app/inspection_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "app/inspection_check.h"
#include "app/inspection_diff.h"
#include "app/inspection_values.h"
#include "app/progress.h"
#include "app/text_width.h"

namespace facet {
namespace {

constexpr int kColumns = 80;
constexpr int kMinValueColumns = 12;

std::string Shown(const Json& text) { return ShownText(text.as_string()); }

/// 2964448 -> "2,964,448"
std::string Grouped(int64_t value) {
  std::string digits = fmt::format("{}", value);
  for (size_t pos = digits.size(); pos > 3;) {
    pos -= 3;
    digits.insert(pos, ",");
  }
  return digits;
}

std::string Line(std::string_view name, const std::string& text) {
  return fmt::format("  {:<14}{}\n", name, text);
}

/// What can be told of any file.
std::string ShowFile(const Json& inspection) {
  const Json& file = inspection["file"];
  const Json& model = inspection["model"];
  const std::string path = Shown(file["path"]);
  std::string title = Shown(model.is_null() ? file["name"] : model["name"]);
  if (title.empty()) {
    title = path.substr(path.find_last_of('/') + 1);
  }
  if (!model["size"].as_string().empty()) {
    title += ", size " + Shown(model["size"]);
  }
  const int64_t n_files = file["files"].as_int();
  const int64_t n_parameters = file["parameters"].as_int();
  std::string out = title + "\n";
  out += Line("file", path);
  out +=
      Line("format", fmt::format("{}, {} file{}, {}", Shown(file["format"]), n_files,
                                 n_files == 1 ? "" : "s", ShownBytes(file["bytes"].as_double())));
  if (!file["architecture"].as_string().empty()) {
    out += Line("architecture", Shown(file["architecture"]));
  }
  std::string parameters = Grouped(n_parameters);
  if (n_parameters > 0) {
    double n_bytes = 0;
    for (const Json& type : inspection["tensor_types"].items()) {
      n_bytes += type["bytes"].as_double();
    }
    parameters +=
        fmt::format(", {:.3g} bits each", 8 * n_bytes / static_cast<double>(n_parameters));
  }
  out += Line("parameters", parameters);
  if (!inspection["refused"].is_null()) {
    std::string reason = Shown(inspection["refused"]);
    if (reason.starts_with(path)) {  // it stands above
      reason.erase(0, std::min(reason.size(), path.size() + 2));
    }
    out += Line("does not run", reason);
  }
  return out;
}

std::string ShowModel(const Json& model) {
  std::string out;
  const auto line = [&out](std::string_view name, const std::string& text) {
    out += Line(name, text);
  };
  line("weights read",
       fmt::format("{} per token", ShownBytes(model["bytes_per_token"].as_double())));
  line("context", fmt::format("{} positions, sliding window {}", model["context"].as_int(),
                              model["sliding_window"].as_int()));
  line("width", fmt::format("{}, {} heads, vocabulary {}", model["width"].as_int(),
                            model["heads"].as_int(), model["vocabulary"].as_int()));
  if (model["per_layer_width"].as_int() > 0) {
    line("per layer", fmt::format("embeddings of {}", model["per_layer_width"].as_int()));
  }
  if (model["experts"].as_int() > 0) {
    line("experts", fmt::format("{} of {}, width {}", model["experts_used"].as_int(),
                                model["experts"].as_int(), model["expert_width"].as_int()));
  }
  return out;
}

std::string ShowLayers(const Json& layers) {
  std::string out = "\nLayers\n   #  kind     heads  kv heads  head size     ff  keys and values\n";
  for (const Json& layer : layers.items()) {
    const bool is_own = layer["kv_layer"].as_int() == layer["index"].as_int();
    std::string source = is_own ? "own" : fmt::format("of layer {}", layer["kv_layer"].as_int());
    source += layer["v_is_k"].as_bool() ? ", V is K" : "";
    out += fmt::format("{:>4}  {:<8} {:>5}  {:>8}  {:>9}  {:>5}  {}\n", layer["index"].as_int(),
                       Shown(layer["kind"]), layer["heads"].as_int(), layer["kv_heads"].as_int(),
                       layer["head_size"].as_int(), layer["ff"].as_int(), source);
  }
  return out;
}

std::string ShowTokens(const Json& tokens) {
  std::string out;
  for (const Json& token : tokens.items()) {
    out +=
        fmt::format("{}{} {}", out.empty() ? "" : ", ", token["id"].as_int(), Shown(token["text"]));
  }
  return out;
}

std::string ShowTokenizer(const Json& tokenizer) {
  constexpr size_t kMaxShown = 32;
  const size_t n_special = tokenizer["special"].items().size();
  std::string out = fmt::format("\nTokenizer\n  {} tokens, {} merges, {} special; bos {}, eos {}\n",
                                tokenizer["tokens"].as_int(), tokenizer["merges"].as_int(),
                                n_special, tokenizer["bos"].as_int(), tokenizer["eos"].as_int());
  out += fmt::format("  replies end at: {}\n", ShowTokens(tokenizer["end"]));
  if (tokenizer["suppressed"].as_int() > 0) {
    out += fmt::format("  never drawn: {} tokens\n", tokenizer["suppressed"].as_int());
  }
  if (n_special <= kMaxShown) {
    out += fmt::format("  special: {}\n", ShowTokens(tokenizer["special"]));
  }
  return out;
}

std::string ShowTemplate(const Json& chat_template) {
  std::string knows;
  for (const std::string_view trait :
       {"thinking", "tools", "tool_role", "tool_responses", "system_parts"}) {
    if (chat_template[trait].as_bool()) {
      knows += fmt::format("{}{}", knows.empty() ? "" : ", ", trait);
    }
  }
  std::string out =
      fmt::format("\nChat template\n  {}, {} bytes; knows: {}\n", Shown(chat_template["source"]),
                  chat_template["bytes"].as_int(), knows.empty() ? "none of the extras" : knows);
  for (const Json& finding : chat_template["findings"].items()) {
    out += fmt::format("  line {}, column {}: {}\n", finding["line"].as_int(),
                       finding["column"].as_int(), Shown(finding["text"]));
  }
  return out;
}

std::string ShowKvMemory(const Json& rows) {
  std::string out = "\nMemory for keys and values\n   context";
  if (rows.items().empty()) {
    return "";
  }
  for (const auto& [name, n_bytes] : rows.items()[0].members()) {
    out += name == "context" ? "" : fmt::format("  {:>9}", name);
  }
  for (const Json& row : rows.items()) {
    out += fmt::format("\n  {:>8}", row["context"].as_int());
    for (const auto& [name, n_bytes] : row.members()) {
      if (name != "context") {
        out += fmt::format("  {:>9}", n_bytes.is_null() ? "-" : ShownBytes(n_bytes.as_double()));
      }
    }
  }
  return out + "\n";
}

std::string ShowTensorTypes(const Json& types) {
  std::string out = "\nTensors\n";
  for (const Json& type : types.items()) {
    out += fmt::format("  {:<8}  {:>5}  {:>9}  {:>5.1f}%\n", Shown(type["type"]),
                       type["tensors"].as_int(), ShownBytes(type["bytes"].as_double()),
                       100 * type["share"].as_double());
  }
  return out;
}

std::string ShowSampling(const Json& sampling) {
  return fmt::format("\nSampling\n  temperature {:.4g}, top-k {}, top-p {:.4g}\n",
                     sampling["temperature"].as_double(), sampling["top_k"].as_int(),
                     sampling["top_p"].as_double());
}

std::string ShowCompute(const Json& compute, const Json& packed) {
  std::string out = "\nInstruction sets\n ";
  for (const Json& isa : compute["supported"].items()) {
    out += fmt::format(" {}{}", isa.as_string(), isa == compute["isa"] ? " (in use)" : "");
  }
  out += "\n";
  if (packed["matrices"].as_int() > 0) {
    std::string types;
    for (const Json& type : packed["types"].items()) {
      types += (types.empty() ? "" : ", ") + type.as_string();
    }
    out += fmt::format("  {} matrices are arranged for it while loading: {}\n",
                       packed["matrices"].as_int(), types);
    out += fmt::format("  {} of memory in place of {} of the file\n",
                       ShownBytes(packed["bytes"].as_double()),
                       ShownBytes(packed["file_bytes"].as_double()));
  }
  return out;
}

/// One value of the metadata on one line; `type` as TypeText writes it.
std::string ShowEncoder(std::string_view name, const Json& encoder) {
  if (encoder.is_null()) {
    return "";
  }
  std::string out = fmt::format("  {:<12}  {}, width {}", name, Shown(encoder["kind"]),
                                encoder["width"].as_int());
  if (encoder["layers"].as_int() > 0) {
    out += fmt::format(", {} layers, {} heads, ff {}", encoder["layers"].as_int(),
                       encoder["heads"].as_int(), encoder["feed_forward"].as_int());
  }
  if (encoder.contains("tokens")) {
    out += fmt::format("; {} positions a side, at most {} tokens unless asked otherwise",
                       encoder["positions"].as_int(), encoder["tokens"].as_int());
  } else {
    out += fmt::format("; {} tokens a second", encoder["tokens_per_second"].as_int());
  }
  return out + "\n";
}

std::string ShowEncoders(const Json& encoders) {
  if (encoders.is_null()) {
    return "";
  }
  std::string out = fmt::format(
      "\nEncoders\n  {:<12}  {}, {}, for a width of {}\n", "file", Shown(encoders["file"]),
      ShownBytes(static_cast<double>(encoders["bytes"].as_int())), encoders["width"].as_int());
  out += ShowEncoder("pictures", encoders["pictures"]) + ShowEncoder("sound", encoders["sound"]);
  if (!encoders["refused"].is_null()) {
    out += fmt::format("  {:<12}  {}\n", "not used", Shown(encoders["refused"]));
  }
  return out;
}

std::string ShowDrafter(const Json& drafter) {
  if (drafter.is_null()) {
    return "";
  }
  std::string out = fmt::format(
      "\nDrafter\n  {:<12}  {}, {}, for a width of {}\n", "file", Shown(drafter["file"]),
      ShownBytes(static_cast<double>(drafter["bytes"].as_int())), drafter["target_width"].as_int());
  out += fmt::format("  {:<12}  {}, {} heads, vocabulary {}\n", "width", drafter["width"].as_int(),
                     drafter["heads"].as_int(), drafter["vocabulary"].as_int());
  const int64_t n_centroids = drafter["centroids"].as_int();
  out += fmt::format("  {:<12}  {}\n", "head",
                     n_centroids == 0
                         ? "dense"
                         : fmt::format("{} centroids, the best {} are scored", n_centroids,
                                       drafter["centroids_scored"].as_int()));
  const auto& layers = drafter["layers"].items();
  for (size_t l = 0; l < layers.size(); ++l) {
    out += fmt::format("  {:<12}  {}, head size {}, feed-forward {}\n", fmt::format("layer {}", l),
                       Shown(layers[l]["kind"]), layers[l]["head_size"].as_int(),
                       layers[l]["ff"].as_int());
  }
  if (!drafter["refused"].is_null()) {
    out += fmt::format("  {:<12}  {}\n", "not used", Shown(drafter["refused"]));
  }
  return out;
}

std::string ShowValue(const Json& entry, int n_columns) {
  const std::string& type = entry["type"].as_string();
  const auto text = [&type](const Json& value) {
    const bool is_short = value.is_double() && type.find("float32") != std::string::npos;
    return is_short ? fmt::format("{}", static_cast<float>(value.as_double())) : value.Dump();
  };
  if (!entry["value"].is_array()) {
    return CutText(text(entry["value"]), n_columns);
  }
  constexpr size_t kMaxShown = 40;  // more than fit
  std::string out = fmt::format("[{}]", entry["count"].as_int());
  const auto& items = entry["value"].items();
  for (size_t i = 0; i < std::min(kMaxShown, items.size()); ++i) {
    out += fmt::format("{} {}", i == 0 ? "" : ",", text(items[i]));
  }
  return CutText(out, n_columns);
}

std::string ShowMetadata(const Json& metadata) {
  std::string out = fmt::format("\nMetadata\n");
  for (const Json& entry : metadata.items()) {
    const std::string key =
        fmt::format("  {:<9}  {} = ", Shown(entry["type"]), Shown(entry["key"]));
    const int n_left = kColumns - static_cast<int>(std::min<size_t>(key.size(), kColumns));
    out += key + ShowValue(entry, std::max(kMinValueColumns, n_left)) + "\n";
  }
  return out;
}

std::string ShowTensors(const Json& tensors, bool has_shards) {
  std::vector<std::string> shapes;
  size_t name_width = 4;
  size_t shape_width = 5;
  for (const Json& tensor : tensors.items()) {
    std::vector<int64_t> shape;
    for (const Json& d : tensor["shape"].items()) {
      shape.push_back(d.as_int());
    }
    shapes.push_back(ShapeText(shape));
    name_width = std::max(name_width, Shown(tensor["name"]).size());
    shape_width = std::max(shape_width, shapes.back().size());
  }
  std::string out =
      fmt::format("\n  {:<{}}  {:>{}}  {:<7}  {:>7}  {}{:>11}\n", "name", name_width, "shape",
                  shape_width, "type", "bytes", has_shards ? "file  " : "", "offset");
  for (size_t i = 0; i < shapes.size(); ++i) {
    const Json& tensor = tensors.items()[i];
    const std::string shard =
        has_shards ? fmt::format("{:>4}  ", tensor["file"].as_int() + 1) : std::string();
    out += fmt::format("  {:<{}}  {:>{}}  {:<7}  {:>7}  {}{:>11}\n", Shown(tensor["name"]),
                       name_width, shapes[i], shape_width, Shown(tensor["type"]),
                       ShownBytes(tensor["bytes"].as_double()), shard, tensor["offset"].as_int());
  }
  return out;
}

std::string ShowWhatWasAskedFor(const Json& inspection) {
  std::string out;
  if (inspection.contains("tensors")) {
    out += ShowMetadata(inspection["metadata"]);
    out += ShowTensors(inspection["tensors"], inspection["file"]["files"].as_int() > 1);
  }
  if (inspection.contains("check")) {
    out += ShowCheck(inspection["check"]);
  }
  if (inspection.contains("diff")) {
    out += ShowDiff(inspection["diff"]);
  }
  return out;
}

}  // namespace

std::string ShowInspection(const Json& inspection) {
  std::string out = ShowFile(inspection);
  const bool is_model = inspection.contains("model");
  if (is_model) {
    out += ShowModel(inspection["model"]);
  }
  if (const std::string asked = ShowWhatWasAskedFor(inspection); !asked.empty()) {
    return out + ShowTensorTypes(inspection["tensor_types"]) + asked;
  }
  if (!is_model) {
    return out + ShowTensorTypes(inspection["tensor_types"]) +
           ShowEncoders(inspection["encoders"]) + ShowDrafter(inspection["drafter"]);
  }
  return out + ShowLayers(inspection["layers"]) + ShowTensorTypes(inspection["tensor_types"]) +
         ShowTokenizer(inspection["tokenizer"]) + ShowTemplate(inspection["chat_template"]) +
         ShowSampling(inspection["sampling"]) + ShowEncoders(inspection["encoders"]) +
         ShowDrafter(inspection["drafter"]) + ShowKvMemory(inspection["kv_memory"]) +
         ShowCompute(inspection["compute"], inspection["packed_weights"]);
}

}  // namespace facet
