// SPDX-License-Identifier: Apache-2.0
#include "app/embedded_model.h"

extern "C" {
extern const std::byte
    facet_embedded_model_begin[];  // NOLINT(readability-identifier-naming): embedded_model.S
extern const std::byte facet_embedded_model_end[];  // NOLINT(readability-identifier-naming)
}

namespace facet {

std::span<const std::byte> EmbeddedModel() {
  return {facet_embedded_model_begin, facet_embedded_model_end};
}

}  // namespace facet
