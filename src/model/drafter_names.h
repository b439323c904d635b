// SPDX-License-Identifier: Apache-2.0
// Tensor names of drafters: whatever a file calls them, they become those of llama.cpp's master
// branch (reference.md 9.2).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace facet {

inline constexpr std::string_view kDrafterPreProjection = "nextn.pre_projection.weight";
inline constexpr std::string_view kDrafterPostProjection = "nextn.post_projection.weight";
inline constexpr std::string_view kDrafterCentroids = "masked_embd_centroids.weight";
inline constexpr std::string_view kDrafterOrdering = "masked_embd_ordering";

/// From the name in a GGUF file of any known spelling; other names stay.
std::string DrafterNameFromGguf(std::string_view name);

/// From the name in a Hugging Face checkpoint; nothing when it is no drafter's.
std::optional<std::string> DrafterNameFromHf(std::string_view hf_name);

/// Whether a drafter has a tensor of this name.
bool IsDrafterTensorName(std::string_view name);

}  // namespace facet
