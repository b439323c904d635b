// SPDX-License-Identifier: Apache-2.0
// How tests look into a model: its intermediates, named as the goldens name them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

namespace facet {

/// Receives intermediates ("layer3.q", "embeddings"): values [n_rows, n_columns].
using Tap =
    std::function<void(std::string_view name, std::span<const float> values, int64_t n_rows)>;

inline void EmitTap(const Tap& tap, std::string_view name, std::span<const float> values,
                    int64_t n_rows) {
  if (tap) {
    tap(name, values, n_rows);
  }
}

}  // namespace facet
