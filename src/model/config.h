// SPDX-License-Identifier: Apache-2.0
// The numbers of one model, checked. Sizes of the family differ by data, never by class: a layer's
// description is all that the forward pass asks. Read from GGUF metadata or from config.json;
// anything that is not a Gemma 4 text model is refused with the number found and the number wanted.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "format/gguf.h"

namespace facet {

enum class LayerKind { kSliding, kFull };

/// One decoder layer. Geometry as in reference.md 1.3, 1.5 and 1.9.
struct LayerDesc {
  LayerKind kind = LayerKind::kFull;
  int d_head = 0;
  int n_kv_heads = 0;
  int n_ff = 0;      ///< width of the dense MLP
  int kv_layer = 0;  ///< the layer whose K and V this one reads: itself, or its donor when shared
  bool v_is_k = false;  ///< no V projection: V is the raw K projection (k_eq_v)
};

struct Config {
  std::string name;  ///< general.name, or the directory's
  std::string
      size_label;  ///< "E2B", "26B-A4B", ... when the numbers are those of a released size; else ""
  int n_layers = 0;
  int n_embd = 0;
  int n_heads = 0;
  int n_vocab = 0;
  int n_context = 0;  ///< positions the model was made for
  int sliding_window = 0;
  int n_embd_per_layer = 0;    ///< width of the per-layer embeddings; 0: none
  int n_shared_kv_layers = 0;  ///< the last layers, which write no K and V
  int n_experts = 0;           ///< 0: no mixture
  int n_experts_used = 0;
  int n_ff_expert = 0;
  float norm_eps = 1e-6F;
  float logit_softcap = 30.0F;
  float rope_theta_full = 1e6F;
  float rope_theta_sliding = 1e4F;
  float rope_full_turning = 0.25F;  ///< share of a full head's channel pairs that turn
  bool has_bidirectional_spans = false;
  std::vector<LayerDesc> layers;

  /// Layers from here on read the K and V of a donor.
  [[nodiscard]] int first_shared_layer() const { return n_layers - n_shared_kv_layers; }
  [[nodiscard]] bool has_sliding_layers() const;
};

/// Defaults for sampling that came with the model (generation_config.json, or general.sampling.*
/// keys).
struct GenerationDefaults {
  float temperature = 1.0F;
  int top_k = 64;
  float top_p = 0.95F;
  std::vector<int> end_tokens;  ///< eos_token_id; more are added by name (Vocab::end_ids)
  std::vector<int> suppressed_tokens;
};

/// `name` is what errors call the file.
Result<Config> ConfigFromGguf(const gguf::Metadata& metadata, const std::string& name);
Result<Config> ConfigFromHf(const Json& config, const std::string& name);
Result<GenerationDefaults> DefaultsFromGguf(const gguf::Metadata& metadata,
                                            const std::string& name);
Result<GenerationDefaults> DefaultsFromHf(const Json& generation_config, const std::string& name);

/// The metadata that describes `config` in a GGUF file (reference.md 9.1): what ConfigFromGguf
/// reads back as the same.
void SetGgufConfig(const Config& config, gguf::Metadata* metadata);

/// The numbers of a released size, which hold together (reference.md section 2).
struct ReleasedSize {
  std::string_view label;
  int n_layers, n_embd, n_heads, n_kv_sliding, n_kv_full, n_ff;
  int n_ff_shared;  ///< of the layers that share keys and values
  int full_every;   ///< every n-th layer is full
  int sliding_window, n_embd_per_layer;
  int n_shared;  ///< the last layers, which share keys and values
  int n_experts, n_experts_used, n_ff_expert;
};
inline constexpr std::array kReleasedSizes = {
    ReleasedSize{"E2B", 35, 1536, 8, 1, 1, 6144, 12288, 5, 512, 256, 20, 0, 0, 0},
    ReleasedSize{"E4B", 42, 2560, 8, 2, 2, 10240, 10240, 6, 512, 256, 18, 0, 0, 0},
    ReleasedSize{"12B", 48, 3840, 16, 8, 1, 15360, 15360, 6, 1024, 0, 0, 0, 0, 0},
    ReleasedSize{"26B-A4B", 30, 2816, 16, 8, 2, 2112, 2112, 6, 1024, 0, 0, 128, 8, 704},
    ReleasedSize{"31B", 60, 5376, 32, 16, 4, 21504, 21504, 6, 1024, 0, 0, 0, 0, 0},
};
inline constexpr int kReleasedHeadSliding = 256;
inline constexpr int kReleasedHeadFull = 512;

/// Checks every number against every other and against sane bounds; sets kv_layer and size_label.
Status CompleteConfig(Config* config, const std::string& name);

}  // namespace facet
