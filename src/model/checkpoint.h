// SPDX-License-Identifier: Apache-2.0
// Weights on disk: a GGUF file with its shards, or a Hugging Face directory (config.json,
// safetensors, tokenizer.json, generation_config.json, chat template). Both become one thing with
// the same tensor names, those of GGUF (docs/gguf-names in reference: blk.N.attn_q.weight); only
// weights.cc knows which names a model needs.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "format/gguf.h"
#include "model/config.h"

namespace facet {

/// A tensor as it lies in the file. `shape` has the slowest axis first.
struct CheckpointTensor {
  std::string name;         ///< GGUF's
  std::string source_name;  ///< as in the file
  TensorType type;
  std::vector<int64_t> shape;
  std::span<const std::byte> data;
};

/// What is done about tensors that belong to no part of a Gemma 4 model.
enum class UnknownTensors {
  kWarn,   ///< once: a model computes without them
  kRefuse  ///< the first one: a copy would lose them. For directories
};

class Checkpoint {
 public:
  /// PATH is a .gguf file, or a directory that holds config.json and safetensors. Of a directory
  /// the tensors of vision and audio are passed over, and so is an output matrix where the
  /// embeddings are tied.
  static Result<Checkpoint> Open(const std::string& path,
                                 UnknownTensors unknown = UnknownTensors::kWarn);
  /// A GGUF file in memory; the bytes must outlive the checkpoint.
  static Result<Checkpoint> FromGgufBytes(std::span<const std::byte> bytes,
                                          const std::string& name);

  Checkpoint(Checkpoint&&) noexcept;
  Checkpoint& operator=(Checkpoint&&) noexcept;
  ~Checkpoint();

  [[nodiscard]] const std::string& path() const;
  [[nodiscard]] const Config& config() const;
  [[nodiscard]] const GenerationDefaults& defaults() const;
  [[nodiscard]] const std::vector<CheckpointTensor>& tensors() const;
  [[nodiscard]] const CheckpointTensor* Find(std::string_view gguf_name) const;
  [[nodiscard]] uint64_t n_bytes() const;  ///< of all files of weights
  /// Tensors of vision and audio in a directory, which are not among tensors().
  [[nodiscard]] size_t n_media_tensors() const;
  /// Gives memory that holds `data`, part of a tensor, back to the system: for what is not read
  /// again soon. It stays readable. Only GGUF files; what was in memory before stays there.
  void Release(std::span<const std::byte> data) const;
  /// The template in the file; empty when there is none.
  [[nodiscard]] const std::string& chat_template() const;

  /// Metadata of a GGUF checkpoint (tokenizer arrays and all), or null for a directory.
  [[nodiscard]] const gguf::Metadata* gguf_metadata() const;
  [[nodiscard]] uint32_t gguf_version() const;
  [[nodiscard]] size_t n_files() const;
  /// tokenizer.json and tokenizer_config.json of a directory (null values when absent or for GGUF).
  [[nodiscard]] const Json& tokenizer_json() const;
  [[nodiscard]] const Json& tokenizer_config_json() const;

 private:
  struct State;
  explicit Checkpoint(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace facet
