// SPDX-License-Identifier: Apache-2.0
// The codecs of each family file, collected by FindCodec. Internal to quant/.
#pragma once

#include "quant/codec.h"

namespace facet {

extern const Codec kF32Codec;
extern const Codec kF16Codec;
extern const Codec kBf16Codec;
extern const Codec kQ8_0Codec;
extern const Codec kQ4_0Codec;
extern const Codec kQ4_KCodec;
extern const Codec kQ6_KCodec;

}  // namespace facet
