// SPDX-License-Identifier: Apache-2.0
// The tiny model that is compiled into the program (models/tiny/README.md), so that it answers
// without any file.
#pragma once

#include <cstddef>
#include <span>

namespace facet {

/// A whole GGUF file. Lives as long as the program.
std::span<const std::byte> EmbeddedModel();

/// The GGUF file of its encoders of pictures and sound (mmproj). Lives as long as the program.
std::span<const std::byte> EmbeddedProjector();

/// The GGUF file of its drafter. Lives as long as the program.
std::span<const std::byte> EmbeddedDrafter();

/// Most soft tokens of a picture that it was trained with, which the file does not say.
inline constexpr int kEmbeddedImageTokens = 70;

}  // namespace facet
