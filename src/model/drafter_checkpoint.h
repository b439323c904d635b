// SPDX-License-Identifier: Apache-2.0
// A drafter on disk (Gemma 4's "assistant", reference.md 8): a GGUF file in any of the spellings of
// reference.md 9.2, or a Hugging Face directory. All become one thing with GGUF's tensor names, as
// llama.cpp spells them, and with the ordering of the centroid head as I32, each token once. Which
// model it belongs to is checked beside that model.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "format/gguf.h"
#include "model/checkpoint.h"
#include "model/config.h"

namespace facet {

struct DrafterConfig {
  /// Its own layers. None writes keys and values (n_shared_kv_layers is n_layers), and kv_layer and
  /// v_is_k are not set. KV heads, the window and the rotation are what the file says of them: a
  /// drafter computes with its target's.
  Config body;
  int n_embd_target = 0;    ///< width of the model that it drafts for
  int n_centroids = 0;      ///< clusters of the vocabulary; 0: the head is dense
  int n_top_centroids = 0;  ///< clusters whose tokens are scored
};

class DrafterCheckpoint {
 public:
  /// PATH is a .gguf file or a directory whose config.json names an assistant.
  static Result<DrafterCheckpoint> Open(const std::string& path,
                                        UnknownTensors unknown = UnknownTensors::kWarn);
  /// The bytes must outlive the checkpoint.
  static Result<DrafterCheckpoint> FromGgufBytes(std::span<const std::byte> bytes,
                                                 const std::string& name);
  DrafterCheckpoint(DrafterCheckpoint&&) noexcept;
  DrafterCheckpoint& operator=(DrafterCheckpoint&&) noexcept;
  ~DrafterCheckpoint();

  [[nodiscard]] const std::string& path() const;
  [[nodiscard]] const DrafterConfig& config() const;
  [[nodiscard]] const std::vector<CheckpointTensor>& tensors() const;
  [[nodiscard]] const CheckpointTensor* Find(std::string_view gguf_name) const;
  [[nodiscard]] uint64_t n_bytes() const;  ///< of the tensors
  /// As Checkpoint::Release: `data`, part of a tensor, is not read again soon. It stays readable.
  void Release(std::span<const std::byte> data) const;
  /// Of a GGUF file; null for a directory.
  [[nodiscard]] const gguf::Metadata* gguf_metadata() const;

 private:
  struct State;
  explicit DrafterCheckpoint(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Whether PATH is a directory whose config.json names an assistant. False where there is none to
/// read: what opens it next says why.
bool IsDrafterDirectory(const std::string& path);

/// The layer of the target whose keys and values a drafter's layers of this kind read: the last of
/// the kind that writes its own (reference.md 8.3). Nothing when there is none.
std::optional<int> DonorLayer(const Config& target, LayerKind kind);

/// Whether the drafter was made for the model: widths, vocabulary, kinds of attention and head
/// sizes are the target's, and its heads are shared evenly by the donors' KV heads. Refused with
/// both numbers otherwise.
Status CheckFits(const DrafterCheckpoint& drafter, const Checkpoint& target);

/// The metadata that describes `config` in a GGUF file, as the loader of llama.cpp wants it, with
/// the keys of the centroid head where there is one: what FromGgufBytes reads back as the same.
void SetGgufDrafterConfig(const DrafterConfig& config, gguf::Metadata* metadata);

}  // namespace facet
