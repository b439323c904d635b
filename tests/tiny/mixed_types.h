// SPDX-License-Identifier: Apache-2.0
// Tiny checkpoints in which neighbouring matrices have different types, so that a few small models
// hold a matrix of every type that can be computed, in every role.
#pragma once

#include <string>

namespace facet::testing {

/// Writes testdata/text/gguf/BASE.gguf with another type for each matrix and returns the path. Row
/// sizes permitting, matrix i gets type number i + rotation; the types without an encoder get
/// blocks of testdata in drawn order. The same arguments give the same bytes.
std::string MakeMixedTypes(const std::string& base, int rotation);

}  // namespace facet::testing
