// SPDX-License-Identifier: Apache-2.0
#include "convert/quantize_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include "model/weights.h"

namespace facet {
namespace {

using enum TensorType;

/// The layers whose tensor of some kind gets more bits.
enum class Layers { kNone, kFirst, kSome, kAll };

struct Raise {
  Layers layers = Layers::kNone;
  TensorType type = kF32;
};

/// What a file type makes of matrices. Values, the way back from the feed-forward part and the way
/// out of attention lose most to rounding: those may be raised.
struct FileType {
  std::string_view name;
  uint32_t id;  ///< general.file_type, as llama.cpp numbers it
  TensorType type;
  Raise value = {};        // attn_v, or attn_k where a layer has no attn_v
  Raise down = {};         // ffn_down, ffn_down_exps
  Raise attn_output = {};  // attn_output
};

constexpr FileType kFileTypes[] = {
    {"q4_k_m", 15, kQ4_K, {Layers::kSome, kQ6_K}, {Layers::kSome, kQ6_K}},
    {"q4_k_s", 14, kQ4_K, {Layers::kFirst, kQ5_K}, {Layers::kFirst, kQ5_K}},
    {"q5_k_m", 17, kQ5_K, {Layers::kSome, kQ6_K}, {Layers::kSome, kQ6_K}},
    {"q5_k_s", 16, kQ5_K},
    {"q6_k", 18, kQ6_K},
    {"q8_0", 7, kQ8_0},
    {"q4_0", 2, kQ4_0},
    {"q4_1", 3, kQ4_1},
    {"q5_0", 8, kQ5_0},
    {"q5_1", 9, kQ5_1},
    {"q3_k_s", 11, kQ3_K},
    {"q3_k_m", 12, kQ3_K, {Layers::kAll, kQ5_K}, {Layers::kAll, kQ4_K}, {Layers::kAll, kQ4_K}},
    {"q3_k_l", 13, kQ3_K, {Layers::kAll, kQ5_K}, {Layers::kAll, kQ5_K}, {Layers::kAll, kQ5_K}},
    {"q2_k", 10, kQ2_K, {Layers::kAll, kQ4_K}, {Layers::kAll, kQ3_K}, {Layers::kAll, kQ3_K}},
    {"iq4_nl", 25, kIQ4_NL, {Layers::kAll, kQ5_K}, {Layers::kFirst, kQ5_K}},
    {"iq4_xs", 30, kIQ4_XS, {Layers::kAll, kQ5_K}, {Layers::kFirst, kQ5_K}},
    {"mxfp4", 38, kMXFP4},
    {"bf16", 32, kBF16},
    {"f16", 1, kF16},
    {"f32", 0, kF32},
};

bool IsPlainFloat(TensorType type) { return type == kF32 || type == kF16 || type == kBF16; }
bool IsQuantized(TensorType type) { return InfoOf(type).block_elements > 1; }
bool IsMatrix(const TensorOutline& tensor) { return tensor.shape.size() >= 2; }

/// `type`, or where a row is not a whole number of its blocks the smallest type with blocks of 32
/// that keeps as many bits; F16 where nothing fits.
TensorType Fitting(TensorType type, int64_t n_columns) {
  if (n_columns % InfoOf(type).block_elements == 0) {
    return type;
  }
  if (n_columns % 32 != 0) {
    return kF16;
  }
  switch (type) {
    case kQ2_K:
    case kQ3_K:
    case kIQ4_XS:
      return kIQ4_NL;
    case kQ4_K:
      return kQ5_0;
    case kQ5_K:
      return kQ5_1;
    default:
      return kQ8_0;
  }
}

/// "blk.12.attn_q.weight" in its two parts; layer -1 for the tensors of no layer.
struct SplitName {
  int layer = -1;
  std::string_view part;
};
SplitName Split(std::string_view name) {
  constexpr std::string_view kPrefix = "blk.";
  int layer = -1;
  if (!name.starts_with(kPrefix)) {
    return {-1, name};
  }
  const char* end = name.data() + name.size();
  const auto [after, error] = std::from_chars(name.data() + kPrefix.size(), end, layer);
  if (error != std::errc() || after == end || *after != '.' || layer < 0) {
    return {-1, name};
  }
  return {layer, {after + 1, static_cast<size_t>(end - after - 1)}};
}

/// Chooses the types of one file's tensors.
class Planner {
 public:
  Planner(const FileType& file, bool is_pure, std::span<const TensorOutline> tensors)
      : file_(file), is_pure_(is_pure) {
    for (const TensorOutline& tensor : tensors) {
      const SplitName name = Split(tensor.name);
      n_layers_ = std::max(n_layers_, int64_t{name.layer} + 1);
      if (name.part == "attn_v.weight") {
        layers_with_v_.insert(name.layer);
      }
    }
  }

  [[nodiscard]] TensorType TypeOf(const TensorOutline& tensor) const {
    if (!IsTextTensorName(tensor.name)) {
      return tensor.type;
    }
    if (!IsMatrix(tensor)) {
      return IsPlainFloat(tensor.type) ? kF32 : tensor.type;
    }
    const SplitName name = Split(tensor.name);
    if (name.part == "ffn_gate_inp.weight") {
      return tensor.type;  // the router decides much and weighs little
    }
    return Fitting(is_pure_ ? file_.type : Mixed(name, tensor.type), tensor.shape.back());
  }

 private:
  [[nodiscard]] TensorType Mixed(const SplitName& name, TensorType source) const {
    if (IsPlainFloat(file_.type)) {
      return file_.type;
    }
    const bool is_large = file_.type == kQ8_0;
    if (name.part == "per_layer_model_proj.weight") {
      return source == kF32 ? kBF16 : source;
    }
    if (name.part == "inp_gate.weight" || name.part == "proj.weight") {
      return kQ8_0;
    }
    if (name.part == "token_embd.weight" || name.part == "output.weight" ||
        name.part == "per_layer_token_embd.weight") {
      return is_large ? kQ8_0 : kQ6_K;
    }
    const Raise raise = RaiseOf(name);
    return Covers(raise.layers, name.layer) ? raise.type : file_.type;
  }

  [[nodiscard]] Raise RaiseOf(const SplitName& name) const {
    if (name.part == "attn_v.weight" ||
        (name.part == "attn_k.weight" && layers_with_v_.count(name.layer) == 0)) {
      return file_.value;
    }
    if (name.part == "ffn_down.weight" || name.part == "ffn_down_exps.weight") {
      return file_.down;
    }
    return name.part == "attn_output.weight" ? file_.attn_output : Raise{};
  }

  /// kFirst: the first eighth; kSome: also the last eighth and every third between.
  [[nodiscard]] bool Covers(Layers layers, int64_t layer) const {
    const int64_t eighth = n_layers_ / 8;
    switch (layers) {
      case Layers::kNone:
        return false;
      case Layers::kFirst:
        return layer < eighth;
      case Layers::kSome:
        return layer < eighth || layer >= 7 * n_layers_ / 8 || (layer - eighth) % 3 == 2;
      case Layers::kAll:
        return true;
    }
    return false;
  }

  const FileType& file_;
  bool is_pure_;
  int64_t n_layers_ = 0;
  std::set<int> layers_with_v_;
};

struct Override {
  std::string_view pattern;
  TensorType type;
};

Result<Override> ParseOverride(std::string_view text) {
  const size_t equals = text.rfind('=');
  if (equals == std::string_view::npos || equals == 0) {
    return Refuse("--tensor", fmt::format("\"{}\"", text), "NAME=TYPE");
  }
  const auto info = FindTensorTypeByName(text.substr(equals + 1));
  if (!info.has_value()) {
    return Refuse("--tensor", fmt::format("\"{}\"", text), "a type such as q6_k, q8_0 or bf16");
  }
  return Override{text.substr(0, equals), info->type};
}

Status ApplyOverride(const Override& override, std::string_view text,
                     std::span<const TensorOutline> tensors, std::vector<TensorType>* types) {
  const TensorTypeInfo info = InfoOf(override.type);
  bool has_matched = false;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const TensorOutline& tensor = tensors[i];
    if (!IsMatrix(tensor) || !MatchesGlob(override.pattern, tensor.name)) {
      continue;
    }
    has_matched = true;
    if (tensor.shape.back() % info.block_elements != 0) {
      return Refuse(fmt::format("--tensor {}, tensor {}", text, tensor.name),
                    fmt::format("rows of {} in type {}", tensor.shape.back(), info.name),
                    fmt::format("a multiple of {}", info.block_elements));
    }
    (*types)[i] = override.type;
  }
  if (!has_matched) {
    return Refuse("--tensor", fmt::format("\"{}\", which matches no matrix", override.pattern),
                  "the name of one (facet inspect --tensors lists them)");
  }
  return {};
}

/// Quantising what is quantised already adds a second loss: only when the user says so.
Status CheckRequantize(const std::string& file, std::span<const TensorOutline> tensors,
                       const std::vector<TensorType>& types) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (types[i] != tensors[i].type && IsQuantized(tensors[i].type)) {
      return Refuse(fmt::format("{}, tensor {}", file, tensors[i].name),
                    fmt::format("type {}, already quantised", InfoOf(tensors[i].type).name),
                    "F32, F16 or BF16; --allow-requantize to lose quality twice");
    }
  }
  return {};
}

}  // namespace

Result<QuantizePlan> PlanQuantization(const std::string& file,
                                      std::span<const TensorOutline> tensors,
                                      const QuantizeChoice& choice) {
  const auto* file_type =
      std::find_if(std::begin(kFileTypes), std::end(kFileTypes),
                   [&choice](const FileType& known) { return known.name == choice.file_type; });
  if (file_type == std::end(kFileTypes)) {
    return Refuse("--type",
                  choice.file_type.empty() ? "nothing" : fmt::format("\"{}\"", choice.file_type),
                  "one of " + FileTypeNames());
  }
  QuantizePlan plan;
  plan.file_type_id = file_type->id;
  plan.types.reserve(tensors.size());
  const Planner planner(*file_type, choice.is_pure, tensors);
  for (const TensorOutline& tensor : tensors) {
    plan.types.push_back(planner.TypeOf(tensor));
  }
  for (const std::string& text : choice.overrides) {
    FACET_ASSIGN(const Override override, ParseOverride(text));
    FACET_RETURN_IF_ERROR(ApplyOverride(override, text, tensors, &plan.types));
  }
  if (!choice.allows_requantize) {
    FACET_RETURN_IF_ERROR(CheckRequantize(file, tensors, plan.types));
  }
  return plan;
}

std::string FileTypeNames() {
  std::string names;
  for (const FileType& file_type : kFileTypes) {
    names += names.empty() ? "" : ", ";
    names += file_type.name;
  }
  return names;
}

bool MatchesGlob(std::string_view pattern, std::string_view text) {
  // After a star, the shortest run that lets the rest match: only the last star ever moves.
  size_t p = 0;
  size_t t = 0;
  std::optional<size_t> star;  // in the pattern
  size_t star_end = 0;         // in the text, of the run that the star stands for
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      star_end = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star.has_value()) {
      p = *star + 1;
      t = ++star_end;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

}  // namespace facet
