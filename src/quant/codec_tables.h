// SPDX-License-Identifier: Apache-2.0
// The codecs of each family file, collected by FindCodec, and the table that decoding and encoding
// share. Internal to quant/.
#pragma once

#include "quant/codec.h"

namespace facet {

/// The levels of IQ4_NL and IQ4_XS: denser around zero, as weights are.
inline constexpr int8_t kIq4Levels[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                          1,    13,   25,  38,  53,  69,  89,  113};

extern const Codec kF32Codec;
extern const Codec kF16Codec;
extern const Codec kBf16Codec;

extern const Codec kQ8_0Codec;
extern const Codec kQ4_0Codec;
extern const Codec kQ4_1Codec;
extern const Codec kQ5_0Codec;
extern const Codec kQ5_1Codec;

extern const Codec kQ2_KCodec;
extern const Codec kQ3_KCodec;
extern const Codec kQ4_KCodec;
extern const Codec kQ5_KCodec;
extern const Codec kQ6_KCodec;

extern const Codec kIQ4_NLCodec;
extern const Codec kIQ4_XSCodec;
extern const Codec kMXFP4Codec;
extern const Codec kNVFP4Codec;
extern const Codec kTQ1_0Codec;
extern const Codec kTQ2_0Codec;

extern const Codec kIQ3_SCodec;
extern const Codec kIQ3_XXSCodec;
extern const Codec kIQ2_SCodec;
extern const Codec kIQ2_XSCodec;
extern const Codec kIQ2_XXSCodec;
extern const Codec kIQ1_SCodec;
extern const Codec kIQ1_MCodec;

}  // namespace facet
