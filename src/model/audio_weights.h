// SPDX-License-Identifier: Apache-2.0
// The weights of the encoder of sound, bound by GGUF's names (reference.md 9.3), with what is
// computed from them once.
#pragma once

#include <vector>

#include "base/aligned_vector.h"
#include "base/status.h"
#include "compute/context.h"
#include "compute/matmul.h"
#include "model/audio_subsampling.h"
#include "model/clipped_linear.h"
#include "model/media_checkpoint.h"

namespace facet {

struct AudioFeedForwardWeights {
  std::vector<float> pre_norm;  ///< [n_embd]
  ClippedLinear up;             ///< [n_ff, n_embd]
  ClippedLinear down;           ///< [n_embd, n_ff]
  std::vector<float> post_norm;
};

struct AudioLayerWeights {
  AudioFeedForwardWeights feed_forward1;
  std::vector<float> norm_pre_attn;  ///< [n_embd], as all norms
  ClippedLinear q;                   ///< [n_embd, n_embd]
  ClippedLinear k;
  ClippedLinear v;
  ClippedLinear post;
  std::vector<float> q_scale;     ///< [d_head]: softplus(per_dim_scale) / (sqrt(d_head) · ln 2)
  AlignedVector<float> relative;  ///< [kAudioWindow, n_embd], audio_mixing.h
  std::vector<float> norm_post_attn;
  std::vector<float> lconv_pre_norm;
  ClippedLinear lconv_value;        ///< [n_embd, n_embd]: the first half of linear_start
  ClippedLinear lconv_gate;         ///< the second
  AlignedVector<float> lconv_taps;  ///< [kAudioTaps, n_embd]
  std::vector<float> lconv_norm;
  ClippedLinear lconv_end;  ///< [n_embd, n_embd]
  AudioFeedForwardWeights feed_forward2;
  std::vector<float> norm_out;
};

struct AudioTowerWeights {
  SubsamplingWeights subsampling;
  std::vector<AudioLayerWeights> layers;
  WeightMatrix output;             ///< [n_out, n_embd]
  std::vector<float> output_bias;  ///< [n_out]
  WeightMatrix projection;         ///< [n_embd_text, n_out]
};

/// Binds the tensors of an encoder that is not raw: each missing or misshapen one is refused by
/// name, and so are sizes that it cannot compute. The checkpoint must outlive the result.
Result<AudioTowerWeights> BindAudioTower(const MediaCheckpoint& checkpoint,
                                         const ComputeContext& context);

}  // namespace facet
