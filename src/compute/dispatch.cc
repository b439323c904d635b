// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "base/check.h"
#include "compute/context.h"
#include "compute/kernels.h"

namespace facet {
namespace {

const Kernels kScalarSet = {Isa::kScalar, &kMatMulScalar, &kRowsScalar, &kAttentionScalar};
#if defined(__x86_64__)
const Kernels kAvx2Set = {Isa::kAvx2, &kMatMulAvx2, &kRowsAvx2, &kAttentionAvx2};
#endif

}  // namespace

const Kernels& KernelsFor(Isa isa) {
  const std::vector<Isa> supported = SupportedIsas();
  FACET_CHECK(std::find(supported.begin(), supported.end(), isa) != supported.end());
#if defined(__x86_64__)
  if (isa == Isa::kAvx2) {
    return kAvx2Set;
  }
#endif
  return kScalarSet;
}

}  // namespace facet
