// SPDX-License-Identifier: Apache-2.0
// Builds the tree of a template: Jinja's grammar with the extensions that chat templates use
// (break, continue, generation). Finds syntax errors, unknown filters and unknown tests; where
// Jinja only notices those when they are reached (inside a branch) they become findings. Nesting
// and the height of every tree are limited here, so that walking and destroying a tree may recurse.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "jinja/ast.h"
#include "jinja/limits.h"

namespace facet::jinja {

Result<Program> Parse(std::string_view source, const std::string& name, const Limits& limits);

}  // namespace facet::jinja
