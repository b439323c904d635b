// SPDX-License-Identifier: Apache-2.0
// Drives a text model without the engine: sequences, their blocks, and batches that a test puts
// together row by row.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "compute/thread_pool.h"
#include "kv/block_pool.h"
#include "kv/block_table.h"
#include "model/checkpoint.h"
#include "model/text_model.h"

namespace facet::testing {

struct DriverOptions {
  Isa isa = Isa::kScalar;
  int n_threads = 1;
  KvType kv_type = KvType::kF32;
  int n_context = 256;
  const MediaCheckpoint* media = nullptr;  ///< decides how pictures see themselves
};

/// A run of rows of one sequence, in a batch.
struct Part {
  int sequence = 0;
  int n_rows = 0;
  bool wants_all_logits = false;  ///< else only the last row's
};

class Driver {
 public:
  /// Aborts when the checkpoint cannot be bound.
  Driver(const Checkpoint& checkpoint, const DriverOptions& options);

  /// Adds a sequence; `span_type` as in the goldens (0 text, 1 image, 2 video, 3 audio; empty: all
  /// text), `soft` the rows for the positions that are not text. Returns its number.
  int Add(std::vector<int32_t> tokens, std::vector<int> span_type = {},
          std::vector<float> soft = {});
  void Append(int sequence, int32_t token);
  /// Rows of the sequence that are not yet computed.
  [[nodiscard]] int n_left(int sequence) const;
  /// First row at or after `n` rows from the current one at which a chunk may end (spans are never
  /// cut).
  [[nodiscard]] int ChunkEnd(int sequence, int n) const;

  /// Runs the next rows of the sequences; logits per row that wants them, [n_vocab] each, in order.
  std::vector<std::vector<float>> Run(const std::vector<Part>& parts);

  /// Starts to collect taps; `taps` must outlive the driver.
  void Collect(std::map<std::string, std::vector<float>>* taps);

  [[nodiscard]] int n_vocab() const { return model_->info().n_vocab; }

 private:
  struct Sequence {
    std::vector<int32_t> tokens;
    std::vector<int> span_type;
    std::vector<float> soft;
    int n_done = 0;
    BlockTable sliding;
    BlockTable full;
  };

  int n_embd_;
  ThreadPool pool_;
  std::unique_ptr<TextModel> model_;
  std::unique_ptr<BlockPool> sliding_pool_;
  std::unique_ptr<BlockPool> full_pool_;
  std::vector<Sequence> sequences_;
};

int ArgMax(const std::vector<float>& values);

/// Opens a checkpoint or aborts.
Checkpoint OpenOrDie(const std::string& path);

/// The Hugging Face checkpoints of testdata/text that hold weights, and the text GGUF files we can
/// compute.
std::vector<std::string> TinyHfNames();
std::vector<std::string> TinyGgufNames();

}  // namespace facet::testing
