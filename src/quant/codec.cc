// SPDX-License-Identifier: Apache-2.0
#include "quant/codec.h"

#include "quant/codec_tables.h"

namespace facet {
namespace {

constexpr const Codec* kCodecs[] = {
    &kF32Codec,   &kF16Codec,    &kBf16Codec,    &kQ8_0Codec,  &kQ4_0Codec,   &kQ4_1Codec,
    &kQ5_0Codec,  &kQ5_1Codec,   &kQ2_KCodec,    &kQ3_KCodec,  &kQ4_KCodec,   &kQ5_KCodec,
    &kQ6_KCodec,  &kIQ4_NLCodec, &kIQ4_XSCodec,  &kMXFP4Codec, &kNVFP4Codec,  &kTQ1_0Codec,
    &kTQ2_0Codec, &kIQ3_SCodec,  &kIQ3_XXSCodec, &kIQ2_SCodec, &kIQ2_XSCodec, &kIQ2_XXSCodec,
    &kIQ1_SCodec, &kIQ1_MCodec,
};

}  // namespace

const Codec* FindCodec(TensorType type) {
  for (const Codec* codec : kCodecs) {
    if (codec->type == type) {
      return codec;
    }
  }
  return nullptr;
}

}  // namespace facet
