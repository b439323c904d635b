// SPDX-License-Identifier: Apache-2.0
#include "app/embedded_model.h"

// The names are those of embedded_model.S.
extern "C" {
// NOLINTBEGIN(readability-identifier-naming)
extern const std::byte facet_embedded_model_begin[];
extern const std::byte facet_embedded_model_end[];
extern const std::byte facet_embedded_projector_begin[];
extern const std::byte facet_embedded_projector_end[];
extern const std::byte facet_embedded_drafter_begin[];
extern const std::byte facet_embedded_drafter_end[];
// NOLINTEND(readability-identifier-naming)
}

namespace facet {

std::span<const std::byte> EmbeddedModel() {
  return {facet_embedded_model_begin, facet_embedded_model_end};
}

std::span<const std::byte> EmbeddedProjector() {
  return {facet_embedded_projector_begin, facet_embedded_projector_end};
}

std::span<const std::byte> EmbeddedDrafter() {
  return {facet_embedded_drafter_begin, facet_embedded_drafter_end};
}

}  // namespace facet
