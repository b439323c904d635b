// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <vector>

#include "base/check.h"
#include "compute/context.h"
#include "compute/kernels.h"

namespace facet {
namespace {

const Kernels kSets[] = {
    {Isa::kScalar, &kMatMulScalar, &kRowsScalar, &kAttentionScalar},
#if defined(__aarch64__)
    {Isa::kNeon, &kMatMulNeon, &kRowsNeon, &kAttentionNeon},
#endif
#if defined(__x86_64__)
    {Isa::kAvx2, &kMatMulAvx2, &kRowsAvx2, &kAttentionAvx2},
    {Isa::kAvxVnni, &kMatMulAvxVnni, &kRowsAvx2, &kAttentionAvx2},
    {Isa::kAvx512, &kMatMulAvx512, &kRowsAvx2, &kAttentionAvx512},
    {Isa::kAmx, &kMatMulAmx, &kRowsAvx2, &kAttentionAvx512},
#endif
};

}  // namespace

const Kernels& KernelsFor(Isa isa) {
  const std::vector<Isa> supported = SupportedIsas();
  FACET_CHECK(std::find(supported.begin(), supported.end(), isa) != supported.end());
  const Kernels* set = std::find_if(std::begin(kSets), std::end(kSets),
                                    [isa](const Kernels& kernels) { return kernels.isa == isa; });
  FACET_CHECK(set != std::end(kSets));
  return *set;
}

}  // namespace facet
