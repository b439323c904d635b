// SPDX-License-Identifier: Apache-2.0
#include "app/inspection_diff.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <optional>

#include "app/inspection_values.h"
#include "app/text_width.h"
#include "quant/codec.h"

namespace facet {
namespace {

constexpr size_t kShownItems = 4;

/// The first place where two values of the same kind and length differ, or nothing when they are
/// the same. NaN is the same as NaN.
template <typename T>
std::optional<size_t> FirstDifference(const std::vector<T>& here, const std::vector<T>& there) {
  for (size_t i = 0; i < here.size(); ++i) {
    bool is_same = here[i] == there[i];
    if constexpr (std::is_floating_point_v<T>) {
      is_same = is_same || (std::isnan(here[i]) && std::isnan(there[i]));
    }
    if (!is_same) {
      return i;
    }
  }
  return std::nullopt;
}

Json DiffOfKey(const std::string& key, const gguf::Value* here, const gguf::Value* there) {
  const auto text = [](const gguf::Value* value) {
    return value == nullptr
               ? Json()
               : Json(fmt::format("{} {}", TypeText(*value), ValueText(*value, kShownItems)));
  };
  return Json::MakeObject(
      {{"key", key}, {"here", text(here)}, {"there", text(there)}, {"index", nullptr}});
}

/// The difference under one key, or null. Arrays of one length tell where it begins.
Json CompareValues(const std::string& key, const gguf::Value& here, const gguf::Value& there) {
  if (here.type != there.type || here.element_type != there.element_type ||
      here.array_size() != there.array_size()) {
    return DiffOfKey(key, &here, &there);
  }
  if (!here.is_array()) {
    const auto* number = std::get_if<double>(&here.data);
    const bool is_nan =
        number != nullptr && std::isnan(*number) && std::isnan(std::get<double>(there.data));
    return here.data == there.data || is_nan ? Json() : DiffOfKey(key, &here, &there);
  }
  std::optional<size_t> index;
  std::visit(
      [&](const auto& items) {
        using Items = std::decay_t<decltype(items)>;
        if constexpr (requires { items.begin(); } && !std::is_same_v<Items, std::string>) {
          index = FirstDifference(items, std::get<Items>(there.data));
        }
      },
      here.data);
  if (!index.has_value()) {
    return {};
  }
  return Json::MakeObject({{"key", key},
                           {"here", ItemText(here, *index)},
                           {"there", ItemText(there, *index)},
                           {"index", static_cast<int64_t>(*index)}});
}

Json DiffMetadata(const gguf::Metadata& here, const gguf::Metadata& there) {
  Json all = Json(Json::Array());
  for (const auto& [key, value] : here.entries()) {
    const gguf::Value* other = there.Find(key);
    Json difference =
        other != nullptr ? CompareValues(key, value, *other) : DiffOfKey(key, &value, nullptr);
    if (!difference.is_null()) {
      all.Append(std::move(difference));
    }
  }
  for (const auto& [key, value] : there.entries()) {
    if (here.Find(key) == nullptr) {
      all.Append(DiffOfKey(key, nullptr, &value));
    }
  }
  return all;
}

/// How far decoded values are apart.
struct Distance {
  double max = 0;
  double squares = 0;       ///< of the differences
  double squares_here = 0;  ///< of this file's values
  bool has_odd = false;     ///< a NaN or an infinity on one side only

  void Add(float here, float there) {
    const double difference = double{here} - double{there};
    if (here == there || (std::isnan(here) && std::isnan(there))) {
      squares_here += std::isfinite(here) ? double{here} * here : 0;
    } else if (std::isfinite(difference)) {
      max = std::max(max, std::fabs(difference));
      squares += difference * difference;
      squares_here += double{here} * here;
    } else {
      has_odd = true;
    }
  }
  void Add(const Distance& later) {
    max = std::max(max, later.max);
    squares += later.squares;
    squares_here += later.squares_here;
    has_odd = has_odd || later.has_odd;
  }
};

Distance DistanceOf(const SourceTensor& here, const SourceTensor& there, int64_t part) {
  const int64_t first = part * kScanPiece;
  const int64_t n = std::min(kScanPiece, here.n_elements() - first);
  const auto decode = [first, n](const SourceTensor& tensor) {
    std::vector<float> values(static_cast<size_t>(n));
    FindCodec(tensor.type)
        ->decode(tensor.data.data() + BytesOf(tensor.type, first), n, values.data());
    return values;
  };
  const std::vector<float> a = decode(here);
  const std::vector<float> b = decode(there);
  Distance distance;
  for (size_t i = 0; i < a.size(); ++i) {
    distance.Add(a[i], b[i]);
  }
  return distance;
}

bool HasSameBytes(const SourceTensor& here, const SourceTensor& there) {
  return here.type == there.type && here.shape == there.shape &&
         here.data.size() == there.data.size() &&
         (here.data.empty() ||
          std::memcmp(here.data.data(), there.data.data(), here.data.size()) == 0);
}

std::string OutlineText(const SourceTensor& tensor) {
  return fmt::format("{} {}", InfoOf(tensor.type).name, ShapeText(tensor.shape));
}

Json DiffOfTensor(const std::string& name, const SourceTensor* here, const SourceTensor* there) {
  const auto text = [](const SourceTensor* tensor) {
    return tensor == nullptr ? Json() : Json(OutlineText(*tensor));
  };
  return Json::MakeObject({{"name", name},
                           {"here", text(here)},
                           {"there", text(there)},
                           {"max_difference", nullptr},
                           {"relative_difference", nullptr}});
}

Json CompareTensors(const SourceTensor& here, const SourceTensor& there, ThreadPool* pool) {
  Json difference = DiffOfTensor(here.name, &here, &there);
  if (here.shape != there.shape || here.data.empty() || FindCodec(here.type) == nullptr ||
      FindCodec(there.type) == nullptr) {
    return difference;
  }
  const int64_t n_parts = (here.n_elements() + kScanPiece - 1) / kScanPiece;
  Distance sum;
  for (const Distance& part : ScanParts<Distance>(
           pool, n_parts, [&](int64_t p) { return DistanceOf(here, there, p); }, [](int64_t) {})) {
    sum.Add(part);
  }
  if (!sum.has_odd) {
    difference.Set("max_difference", sum.max);
    if (sum.squares == 0 || sum.squares_here > 0) {
      difference.Set("relative_difference",
                     sum.squares == 0 ? 0.0 : std::sqrt(sum.squares / sum.squares_here));
    }
  }
  return difference;
}

std::string ShowKeys(const Json& keys) {
  if (keys.is_null()) {
    return "\nMetadata\n  not compared: GGUF and Hugging Face have different keys\n";
  }
  const size_t n = keys.items().size();
  std::string out = fmt::format("\nMetadata: {} {}\n", n, n == 1 ? "key differs" : "keys differ");
  constexpr int kColumns = 70;
  for (const Json& key : keys.items()) {
    out += fmt::format("  {}{}\n", ShownText(key["key"].as_string()),
                       key["index"].is_null()
                           ? std::string()
                           : fmt::format(", from item {} on", key["index"].as_int()));
    for (const auto& [side, member] : {std::pair{"A", "here"}, std::pair{"B", "there"}}) {
      out += fmt::format(
          "    {}: {}\n", side,
          key[member].is_null() ? "nothing" : CutText(key[member].as_string(), kColumns));
    }
  }
  return out;
}

std::string ShowDistance(const Json& tensor) {
  const Json& max = tensor["max_difference"];
  if (max.is_null()) {
    return "";
  }
  const Json& relative = tensor["relative_difference"];
  return fmt::format("    values: at most {:.3g} apart{}\n", max.as_double(),
                     relative.is_null()
                         ? std::string()
                         : fmt::format(", {:.3g}% of their size", 100 * relative.as_double()));
}

}  // namespace

Json DiffSources(const InspectionSource& source, const InspectionSource& other, ThreadPool* pool,
                 const ScanProgress& progress) {
  Json diff = Json::MakeObject({{"this", source.path()}, {"other", other.path()}});
  diff.Set("metadata", source.is_gguf() == other.is_gguf()
                           ? DiffMetadata(source.metadata(), other.metadata())
                           : Json());
  Json tensors = Json(Json::Array());
  int64_t n_same = 0;
  uint64_t n_done = 0;
  for (const SourceTensor& here : source.tensors()) {
    const SourceTensor* there = other.Find(here.name);
    if (there == nullptr) {
      tensors.Append(DiffOfTensor(here.name, &here, nullptr));
    } else if (HasSameBytes(here, *there)) {
      ++n_same;
    } else {
      tensors.Append(CompareTensors(here, *there, pool));
    }
    n_done += here.data.size();
    progress(n_done, source.n_bytes());
  }
  for (const SourceTensor& there : other.tensors()) {
    if (source.Find(there.name) == nullptr) {
      tensors.Append(DiffOfTensor(there.name, nullptr, &there));
    }
  }
  diff.Set("tensors", std::move(tensors));
  diff.Set("same_tensors", n_same);
  return diff;
}

bool HasDifferences(const Json& diff) {
  return !diff["metadata"].items().empty() || !diff["tensors"].items().empty();
}

std::string ShowDiff(const Json& diff) {
  std::string out =
      fmt::format("\nDifferences\n  A: {}\n  B: {}\n", ShownText(diff["this"].as_string()),
                  ShownText(diff["other"].as_string()));
  out += ShowKeys(diff["metadata"]);
  const auto& tensors = diff["tensors"].items();
  out += fmt::format("\nTensors: {} differ, {} are the same\n", tensors.size(),
                     diff["same_tensors"].as_int());
  for (const Json& tensor : tensors) {
    const Json& here = tensor["here"];
    const Json& there = tensor["there"];
    std::string outlines = here == there
                               ? here.as_string()
                               : fmt::format("{} and {}", here.as_string(), there.as_string());
    if (here.is_null() || there.is_null()) {
      outlines = here.is_null() ? fmt::format("only in B: {}", there.as_string())
                                : fmt::format("only in A: {}", here.as_string());
    }
    out += fmt::format("  {}: {}\n{}", ShownText(tensor["name"].as_string()), outlines,
                       ShowDistance(tensor));
  }
  return out;
}

}  // namespace facet
