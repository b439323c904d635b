// SPDX-License-Identifier: Apache-2.0
#include "convert/quantize.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <mutex>
#include <optional>
#include <utility>

#include "base/file.h"
#include "base/log.h"
#include "compute/thread_pool.h"
#include "convert/imatrix.h"
#include "format/gguf.h"
#include "quant/codec.h"

namespace facet {
namespace {

/// What is read at a time, of whole rows and at least one.
constexpr int64_t kElementsAtOnce = int64_t{1} << 22;
/// Work that is worth a thread.
constexpr int64_t kElementsPerGrain = int64_t{1} << 14;

bool IsPlainFloat(TensorType type) {
  return type == TensorType::kF32 || type == TensorType::kF16 || type == TensorType::kBF16;
}

std::string Where(const std::string& file, const std::string& tensor) {
  return fmt::format("{}, tensor {}", file, tensor);
}

/// The largest magnitude that `type` can hold: above it scales or values become infinite.
float LargestOf(TensorType type) {
  switch (type) {
    case TensorType::kF32:
      return std::numeric_limits<float>::max();
    case TensorType::kBF16:
      return 0x1.FEp127F;
    default:
      return 65504.0F;  // half precision
  }
}

/// The first value that is no number or above `largest`, or nothing.
std::optional<int64_t> FindUnfit(const std::vector<float>& values, float largest) {
  bool is_fit = true;
  for (const float value : values) {
    is_fit &= std::fabs(value) <= largest;
  }
  if (is_fit) {
    return std::nullopt;
  }
  const auto unfit = std::find_if(values.begin(), values.end(), [largest](float value) {
    return !(std::fabs(value) <= largest);
  });
  return unfit - values.begin();
}

/// A tensor on its way from one type to another, row by row.
class Recoder {
 public:
  /// `importance` has values for each matrix [n_matrices, n_columns], or none.
  Recoder(const gguf::TensorView& tensor, TensorType to, std::span<const float> importance)
      : tensor_(tensor),
        to_(to),
        importance_(importance),
        n_columns_(tensor.shape.back()),
        rows_per_matrix_(tensor.shape.size() < 2 ? 1 : tensor.shape.end()[-2]),
        from_bytes_(BytesOf(tensor.type, n_columns_)),
        to_bytes_(BytesOf(to, n_columns_)) {}

  [[nodiscard]] int64_t n_rows() const {
    return static_cast<int64_t>(tensor_.data.size()) / from_bytes_;
  }
  [[nodiscard]] int64_t n_columns() const { return n_columns_; }
  [[nodiscard]] int64_t from_bytes() const { return from_bytes_; }
  [[nodiscard]] int64_t to_bytes() const { return to_bytes_; }

  /// Writes rows [begin, end) to `out`; stops at the first value that cannot be written and returns
  /// its row and column.
  struct Unfit {
    int64_t row;
    int64_t column;
    float value;
  };
  std::optional<Unfit> Rows(int64_t begin, int64_t end, std::byte* out) const {
    std::vector<float> values(static_cast<size_t>(n_columns_));
    for (int64_t row = begin; row < end; ++row, out += to_bytes_) {
      const std::byte* from = tensor_.data.data() + row * from_bytes_;
      FindCodec(tensor_.type)->decode(from, n_columns_, values.data());
      if (const auto column = FindUnfit(values, LargestOf(to_))) {
        return Unfit{row, *column, values[static_cast<size_t>(*column)]};
      }
      if (to_ == tensor_.type) {
        std::memcpy(out, from, static_cast<size_t>(to_bytes_));
      } else {
        FindCodec(to_)->encode(values.data(), ImportanceOfRow(row), n_columns_, out);
      }
    }
    return std::nullopt;
  }

 private:
  [[nodiscard]] const float* ImportanceOfRow(int64_t row) const {
    return importance_.empty() ? nullptr : importance_.data() + row / rows_per_matrix_ * n_columns_;
  }

  const gguf::TensorView& tensor_;
  TensorType to_;
  std::span<const float> importance_;
  int64_t n_columns_;
  int64_t rows_per_matrix_;
  int64_t from_bytes_;
  int64_t to_bytes_;
};

/// Collects the first of the values that threads found unfit.
class FirstUnfit {
 public:
  void Offer(const std::optional<Recoder::Unfit>& unfit) {
    const std::lock_guard lock(mutex_);
    if (unfit.has_value() && (!first_.has_value() || unfit->row < first_->row)) {
      first_ = unfit;
    }
  }
  [[nodiscard]] const std::optional<Recoder::Unfit>& first() const { return first_; }

 private:
  std::mutex mutex_;
  std::optional<Recoder::Unfit> first_;
};

Error RefuseValue(const std::string& where, const Recoder::Unfit& unfit, TensorType to) {
  return Refuse(fmt::format("{}, row {}, column {}", where, unfit.row, unfit.column),
                fmt::format("{}", unfit.value),
                std::isfinite(unfit.value)
                    ? fmt::format("at most {} in {}", LargestOf(to), InfoOf(to).name)
                    : "a finite number");
}

/// What llama.cpp writes about the importance matrix, in its types.
void SetImatrixKeys(const std::string& path, const Imatrix& imatrix, gguf::Metadata* metadata) {
  using gguf::Value;
  metadata->Set("quantize.imatrix.file", Value::String(path));
  if (!imatrix.datasets.empty()) {
    metadata->Set("quantize.imatrix.dataset", Value::String(imatrix.datasets.front()));
  }
  metadata->Set("quantize.imatrix.entries_count",
                Value::U32(static_cast<uint32_t>(imatrix.entries.size())));
  metadata->Set("quantize.imatrix.chunks_count", Value::U32(imatrix.n_chunks));
}

/// The input's metadata without what was true of the input only.
gguf::Metadata MakeMetadata(const gguf::Metadata& source, uint32_t file_type) {
  gguf::Metadata::Entries entries;
  for (const auto& entry : source.entries()) {
    if (!entry.first.starts_with("split.") && !entry.first.starts_with("quantize.")) {
      entries.push_back(entry);
    }
  }
  gguf::Metadata metadata(std::move(entries));
  metadata.Set("general.file_type", gguf::Value::U32(file_type));
  metadata.Set("general.quantization_version", gguf::Value::U32(2));
  return metadata;
}

/// Names and shapes are read by the rules of one family: other models would get nonsense.
Status CheckArchitecture(const gguf::Metadata& metadata, const std::string& file) {
  const gguf::Value* value = metadata.Find("general.architecture");
  const std::string* name = value != nullptr ? value->AsString() : nullptr;
  if (name == nullptr || (*name != "gemma4" && *name != "gemma4-assistant" && *name != "clip")) {
    return Refuse(fmt::format("{}, general.architecture", file),
                  name == nullptr ? "nothing" : fmt::format("\"{}\"", *name),
                  "gemma4, gemma4-assistant or clip");
  }
  return {};
}

bool IsSameFile(const std::string& a, const std::string& b) {
  std::error_code error;
  return std::filesystem::equivalent(a, b, error) && !error;
}

Status CheckPaths(const QuantizeOptions& options) {
  if (IsDirectory(options.in)) {
    return Refuse(options.in, "a directory", "a GGUF file (facet convert makes one)");
  }
  if (IsDirectory(options.out)) {
    return Refuse(options.out, "a directory", "the name of a file");
  }
  return {};
}

std::vector<TensorOutline> OutlinesOf(const gguf::File& file) {
  std::vector<TensorOutline> outlines;
  outlines.reserve(file.tensors().size());
  for (const gguf::TensorView& tensor : file.tensors()) {
    outlines.push_back({tensor.name, tensor.type, tensor.shape});
  }
  return outlines;
}

}  // namespace

struct Quantization::State {
  QuantizeOptions options;
  gguf::File file;
  gguf::Metadata metadata;
  std::vector<QuantizedTensor> tensors = {};
  std::vector<std::vector<float>> importance = {};  // of each tensor; empty: none

  [[nodiscard]] Status CheckCodecs() const;
  Status AddImatrix();
  Status Recode(size_t i, ThreadPool* pool, gguf::ByteSink* sink) const;
};

Quantization::Quantization(std::unique_ptr<State> state) : state_(std::move(state)) {}
Quantization::Quantization(Quantization&&) noexcept = default;
Quantization::~Quantization() = default;

const std::vector<QuantizedTensor>& Quantization::tensors() const { return state_->tensors; }

Result<Quantization> Quantization::Prepare(const QuantizeOptions& options) {
  FACET_RETURN_IF_ERROR(CheckPaths(options));
  FACET_ASSIGN(gguf::File file, gguf::File::Open(options.in));
  for (const std::string& path : file.paths()) {
    if (IsSameFile(path, options.out)) {
      return Refuse(options.out, "the input", "another file");
    }
  }
  FACET_RETURN_IF_ERROR(CheckArchitecture(file.metadata(), options.in));
  FACET_ASSIGN(const QuantizePlan plan,
               PlanQuantization(options.in, OutlinesOf(file), options.choice));
  gguf::Metadata metadata = MakeMetadata(file.metadata(), plan.file_type_id);
  auto state = std::make_unique<State>(State{options, std::move(file), std::move(metadata)});
  for (size_t i = 0; i < plan.types.size(); ++i) {
    const gguf::TensorView& tensor = state->file.tensors()[i];
    const auto n_elements = static_cast<int64_t>(tensor.data.size()) /
                            InfoOf(tensor.type).block_bytes * InfoOf(tensor.type).block_elements;
    state->tensors.push_back({tensor.name, tensor.shape, tensor.type, plan.types[i],
                              tensor.data.size(),
                              static_cast<uint64_t>(BytesOf(plan.types[i], n_elements))});
  }
  FACET_RETURN_IF_ERROR(state->CheckCodecs());
  state->importance.resize(state->tensors.size());
  if (!options.imatrix.empty()) {
    FACET_RETURN_IF_ERROR(state->AddImatrix());
  }
  return Quantization(std::move(state));
}

Status Quantization::State::CheckCodecs() const {
  for (const QuantizedTensor& tensor : tensors) {
    if (tensor.from == tensor.to) {
      continue;
    }
    const std::string where = Where(options.in, tensor.name);
    if (FindCodec(tensor.from) == nullptr) {
      return Refuse(where, fmt::format("type {}", InfoOf(tensor.from).name),
                    "one that Facet reads (docs/quantization.md)");
    }
    const Codec* codec = FindCodec(tensor.to);
    if (codec == nullptr || codec->encode == nullptr) {
      return Refuse(where, fmt::format("to become {}", InfoOf(tensor.to).name),
                    "a type that Facet writes (docs/quantization.md)");
    }
  }
  return {};
}

Status Quantization::State::AddImatrix() {
  FACET_ASSIGN(const Imatrix imatrix, ReadImatrix(options.imatrix));
  size_t n_without = 0;
  size_t n_with = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const QuantizedTensor& tensor = tensors[i];
    if (tensor.from == tensor.to || InfoOf(tensor.to).block_elements == 1) {
      continue;
    }
    if (const ImatrixEntry* entry = imatrix.Find(tensor.name)) {
      FACET_ASSIGN(importance[i], ImportanceOf(*entry, tensor.shape, options.imatrix));
      ++n_with;
    } else if (IsMeasured(tensor.name)) {
      ++n_without;
    }
  }
  if (n_without > 0) {
    Warn(fmt::format("{}: nothing about {} of {} matrices; they are quantised without",
                     options.imatrix, n_without, n_with + n_without));
  }
  SetImatrixKeys(options.imatrix, imatrix, &metadata);
  return {};
}

/// Gives the tensor's new bytes to the sink, a few rows at a time.
Status Quantization::State::Recode(size_t i, ThreadPool* pool, gguf::ByteSink* sink) const {
  const gguf::TensorView& tensor = file.tensors()[i];
  const TensorType to = tensors[i].to;
  if (to == tensor.type && !IsPlainFloat(to)) {
    return sink->Append(tensor.data);
  }
  const Recoder recoder(tensor, to, importance[i]);
  const int64_t n_at_once = std::max<int64_t>(1, kElementsAtOnce / recoder.n_columns());
  const int64_t grain = std::max<int64_t>(1, kElementsPerGrain / recoder.n_columns());
  std::vector<std::byte> out;
  for (int64_t begin = 0; begin < recoder.n_rows(); begin += n_at_once) {
    const int64_t n = std::min(n_at_once, recoder.n_rows() - begin);
    out.resize(static_cast<size_t>(n * recoder.to_bytes()));
    FirstUnfit unfit;
    pool->RunRanges(n, grain, [&](int64_t first, int64_t end) {
      unfit.Offer(
          recoder.Rows(begin + first, begin + end, out.data() + first * recoder.to_bytes()));
    });
    if (unfit.first().has_value()) {
      return RefuseValue(Where(options.in, tensor.name), *unfit.first(), to);
    }
    FACET_RETURN_IF_ERROR(sink->Append(out));
  }
  return {};
}

Status Quantization::Write(
    const std::function<void(uint64_t n_written, uint64_t n_total)>& on_progress) const {
  ThreadPool pool(state_->options.n_threads);
  std::vector<gguf::TensorToWrite> writes;
  writes.reserve(state_->tensors.size());
  for (size_t i = 0; i < state_->tensors.size(); ++i) {
    const QuantizedTensor& tensor = state_->tensors[i];
    writes.push_back({tensor.name, tensor.to, tensor.shape, [this, i, &pool](gguf::ByteSink& sink) {
                        return state_->Recode(i, &pool, &sink);
                      }});
  }
  return gguf::Write(state_->options.out, state_->metadata, writes, on_progress);
}

}  // namespace facet
