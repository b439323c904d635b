// SPDX-License-Identifier: Apache-2.0
// The options of facet bench and facet check.
#include "app/option_tables.h"

namespace facet {

std::vector<OptionSpec> BenchOptions() { return {}; }

}  // namespace facet
