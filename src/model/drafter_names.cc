// SPDX-License-Identifier: Apache-2.0
#include "model/drafter_names.h"

#include <algorithm>
#include <array>

#include "model/hf_names.h"
#include "model/weights.h"

namespace facet {
namespace {

struct OtherName {
  std::string_view other;
  std::string_view name;
};

/// The fork that first converted drafters says assist_*. The programs whose files name the
/// architecture with an underscore, gemma4_assistant, say mtp.*.
constexpr std::array kGgufNames = {
    OtherName{"assist_pre_proj.weight", kDrafterPreProjection},
    OtherName{"assist_post_proj.weight", kDrafterPostProjection},
    OtherName{"assist_embed_centroids.weight", kDrafterCentroids},
    OtherName{"assist_token_ordering.weight", kDrafterOrdering},
    OtherName{"mtp.pre_projection.weight", kDrafterPreProjection},
    OtherName{"mtp.post_projection.weight", kDrafterPostProjection},
    OtherName{"mtp.centroids.weight", kDrafterCentroids},
    OtherName{"mtp.token_ordering.weight", kDrafterOrdering},
    OtherName{"masked_embd_ordering.weight", kDrafterOrdering},
};

constexpr std::array kHfNames = {
    OtherName{"pre_projection.weight", kDrafterPreProjection},
    OtherName{"post_projection.weight", kDrafterPostProjection},
    OtherName{"masked_embedding.centroids.weight", kDrafterCentroids},
    OtherName{"masked_embedding.token_ordering", kDrafterOrdering},
};

template <size_t N>
std::optional<std::string> Lookup(const std::array<OtherName, N>& table, std::string_view name) {
  const auto* found = std::find_if(table.begin(), table.end(),
                                   [name](const OtherName& row) { return row.other == name; });
  if (found == table.end()) {
    return std::nullopt;
  }
  return std::string(found->name);
}

}  // namespace

std::string DrafterNameFromGguf(std::string_view name) {
  return Lookup(kGgufNames, name).value_or(std::string(name));
}

std::optional<std::string> DrafterNameFromHf(std::string_view hf_name) {
  auto name = Lookup(kHfNames, hf_name);
  return name.has_value() ? std::move(name) : GgufNameOf(hf_name);
}

bool IsDrafterTensorName(std::string_view name) {
  return name == kDrafterPreProjection || name == kDrafterPostProjection ||
         name == kDrafterCentroids || name == kDrafterOrdering || IsTextTensorName(name);
}

}  // namespace facet
