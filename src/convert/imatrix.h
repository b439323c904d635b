// SPDX-License-Identifier: Apache-2.0
// Importance matrices: for each matrix of a model the sum of squares of what met each of its
// columns while a text ran through it, and over how many rows. An encoder that knows it spends its
// error where it matters least. The files are llama.cpp's: the GGUF form, read and written, and the
// older binary form, read. docs/quantization.md, "Files".
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "model/checkpoint.h"
#include "model/weights.h"

namespace facet {

/// What met one tensor. A tensor of experts is one matrix for each of them.
struct ImatrixEntry {
  std::string name;           ///< the tensor's
  std::vector<float> sums;    ///< [n_matrices, n_columns] sums of squares, finite, not below 0
  std::vector<float> counts;  ///< rows of each matrix, or one number for all of them
};

struct Imatrix {
  std::vector<std::string> datasets;  ///< the texts, as whoever ran them called them
  uint32_t n_chunks = 0;              ///< windows of text that were run
  uint32_t chunk_size = 0;            ///< tokens of a window; 0: not known
  std::vector<ImatrixEntry> entries;  ///< sorted by name

  [[nodiscard]] const ImatrixEntry* Find(std::string_view name) const;
};

/// Reads either form. `name` is what errors call the file. Refuses values that are not finite or
/// below 0, counts that do not divide the sums, repeated names, and a file without entries.
Result<Imatrix> ParseImatrix(std::span<const std::byte> bytes, const std::string& name);
Result<Imatrix> ReadImatrix(const std::string& path);

/// Writes the GGUF form.
Status WriteImatrix(const std::string& path, const Imatrix& imatrix);

/// Mean squares [n_matrices, n_columns] for a tensor of this shape (slowest axis first); all 1 for
/// a matrix that no row has met. Refuses an entry of another size: `file` is what the error calls
/// the importance matrix.
Result<std::vector<float>> ImportanceOf(const ImatrixEntry& entry,
                                        const std::vector<int64_t>& shape, const std::string& file);

/// Whether an importance matrix has the tensor: tables are looked up, and the output matrix, whose
/// columns all matter alike, is left out as llama.cpp does.
bool IsMeasured(std::string_view tensor_name);

/// Makes an importance matrix of what the products of a model's batches tell it. Not for several
/// threads.
class ImatrixCollector {
 public:
  /// The checkpoint, whose tensors are known by where they lie, must outlive the collector.
  explicit ImatrixCollector(const Checkpoint& checkpoint);

  /// A MatMulObserver. Takes products with measured tensors of the checkpoint.
  void Observe(const WeightMatrix& w, const float* x, int64_t n_rows);

  /// What was seen, without datasets and chunks. Refuses a tensor that met values that are not
  /// finite.
  [[nodiscard]] Result<Imatrix> Finish() const;

 private:
  struct Seen {
    const CheckpointTensor* tensor;
    std::vector<double> sums;     // [n_matrices, n_columns]; empty until the first row
    std::vector<int64_t> counts;  // [n_matrices]
  };

  std::string path_;
  std::vector<Seen> seen_;  // by address of the tensor's data
};

}  // namespace facet
