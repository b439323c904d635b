// SPDX-License-Identifier: Apache-2.0
#include "quant/codec.h"

#include "quant/codec_tables.h"

namespace facet {

const Codec* FindCodec(TensorType type) {
  for (const Codec* codec :
       {&kF32Codec, &kF16Codec, &kBf16Codec, &kQ8_0Codec, &kQ4_0Codec, &kQ4_KCodec, &kQ6_KCodec}) {
    if (codec->type == type) {
      return codec;
    }
  }
  return nullptr;
}

}  // namespace facet
