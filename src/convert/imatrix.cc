// SPDX-License-Identifier: Apache-2.0
#include "convert/imatrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <utility>

#include "base/bytes.h"
#include "base/mapped_file.h"
#include "format/gguf.h"

namespace facet {
namespace {

constexpr std::string_view kSumsSuffix = ".in_sum2";
constexpr std::string_view kCountsSuffix = ".counts";
constexpr int32_t kMaxNameBytes = 1024;  // of the older form

int64_t ElementsOf(const std::vector<int64_t>& shape) {
  int64_t n = 1;
  for (const int64_t d : shape) {
    n *= d;
  }
  return n;
}

std::vector<float> FloatsOf(std::span<const std::byte> bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

std::string Where(const std::string& name, std::string_view tensor) {
  return fmt::format("{}, tensor {}", name, tensor);
}

Status CheckValues(const std::string& where, std::string_view what,
                   const std::vector<float>& values) {
  const auto bad = std::find_if(values.begin(), values.end(),
                                [](float value) { return !std::isfinite(value) || value < 0; });
  if (bad != values.end()) {
    return Refuse(where, fmt::format("{} {} is {}", what, bad - values.begin(), *bad),
                  "a finite number, not below 0");
  }
  return {};
}

Status CheckEntry(const std::string& name, const ImatrixEntry& entry) {
  const std::string where = Where(name, entry.name);
  if (entry.counts.empty() || entry.sums.size() % entry.counts.size() != 0) {
    return Refuse(where,
                  fmt::format("{} sums and {} counts", entry.sums.size(), entry.counts.size()),
                  "the same number of sums for each count");
  }
  FACET_RETURN_IF_ERROR(CheckValues(where, "sum", entry.sums));
  return CheckValues(where, "count", entry.counts);
}

/// Sorts the entries; refuses none at all, wrong ones and repeated names.
Result<Imatrix> Complete(Imatrix imatrix, const std::string& name) {
  if (imatrix.entries.empty()) {
    return Refuse(name, "no entries", "an importance matrix");
  }
  std::sort(imatrix.entries.begin(), imatrix.entries.end(),
            [](const ImatrixEntry& a, const ImatrixEntry& b) { return a.name < b.name; });
  for (size_t i = 0; i < imatrix.entries.size(); ++i) {
    FACET_RETURN_IF_ERROR(CheckEntry(name, imatrix.entries[i]));
    if (i > 0 && imatrix.entries[i].name == imatrix.entries[i - 1].name) {
      return Refuse(Where(name, imatrix.entries[i].name), "twice", "each name once");
    }
  }
  return imatrix;
}

uint32_t Count32(const gguf::Metadata& metadata, std::string_view key) {
  const gguf::Value* value = metadata.Find(key);
  const int64_t number = value != nullptr ? value->AsInt().value_or(0) : 0;
  return static_cast<uint32_t>(std::clamp<int64_t>(number, 0, UINT32_MAX));
}

/// The two tensors of one entry.
struct Halves {
  const gguf::TensorView* sums = nullptr;
  const gguf::TensorView* counts = nullptr;
};

Result<ImatrixEntry> MakeEntry(const std::string& tensor, const Halves& halves,
                               const std::string& name) {
  for (const auto& [half, suffix] :
       {std::pair(halves.sums, kSumsSuffix), std::pair(halves.counts, kCountsSuffix)}) {
    const std::string where = fmt::format("{}{}", Where(name, tensor), suffix);
    if (half == nullptr) {
      return Refuse(where, "missing", fmt::format("{} and {}", kSumsSuffix, kCountsSuffix));
    }
    if (half->type != TensorType::kF32) {
      return Refuse(where, fmt::format("type {}", InfoOf(half->type).name), "F32");
    }
  }
  return ImatrixEntry{tensor, FloatsOf(halves.sums->data), FloatsOf(halves.counts->data)};
}

Result<Imatrix> ParseGguf(std::span<const std::byte> bytes, const std::string& name) {
  FACET_ASSIGN(const gguf::File file, gguf::File::FromBytes(bytes, name));
  const gguf::Metadata& metadata = file.metadata();
  const gguf::Value* type = metadata.Find("general.type");
  if (type != nullptr && type->AsString() != nullptr && *type->AsString() != "imatrix") {
    return Refuse(name, fmt::format("a GGUF file of type \"{}\"", *type->AsString()),
                  "an importance matrix");
  }
  Imatrix imatrix;
  const gguf::Value* datasets = metadata.Find("imatrix.datasets");
  if (datasets != nullptr && datasets->AsStrings() != nullptr) {
    imatrix.datasets = *datasets->AsStrings();
  }
  imatrix.n_chunks = Count32(metadata, "imatrix.chunk_count");
  imatrix.chunk_size = Count32(metadata, "imatrix.chunk_size");
  std::map<std::string_view, Halves> entries;
  for (const gguf::TensorView& tensor : file.tensors()) {
    std::string_view base = tensor.name;
    if (base.ends_with(kSumsSuffix)) {
      base.remove_suffix(kSumsSuffix.size());
      entries[base].sums = &tensor;
    } else if (base.ends_with(kCountsSuffix)) {
      base.remove_suffix(kCountsSuffix.size());
      entries[base].counts = &tensor;
    }
  }
  for (const auto& [tensor, halves] : entries) {
    FACET_ASSIGN(ImatrixEntry entry, MakeEntry(std::string(tensor), halves, name));
    imatrix.entries.push_back(std::move(entry));
  }
  return Complete(std::move(imatrix), name);
}

/// A 32-bit count within [low, high].
Result<int32_t> ReadCount(ByteCursor* cursor, std::string_view what, int32_t low, int32_t high) {
  FACET_ASSIGN(const auto count, cursor->Read<int32_t>(what));
  if (count < low || count > high) {
    return Refuse(cursor->name(), fmt::format("{} {}", what, count),
                  fmt::format("{} to {}", low, high));
  }
  return count;
}

Result<std::string> ReadText(ByteCursor* cursor, std::string_view what, int32_t max_bytes) {
  FACET_ASSIGN(const int32_t size,
               ReadCount(cursor, fmt::format("length of {}", what), 0, max_bytes));
  FACET_ASSIGN(const auto bytes, cursor->Take(static_cast<uint64_t>(size), what));
  return std::string(AsText(bytes));
}

Result<ImatrixEntry> ReadOlderEntry(ByteCursor* cursor) {
  ImatrixEntry entry;
  FACET_ASSIGN(entry.name, ReadText(cursor, "a tensor's name", kMaxNameBytes));
  FACET_ASSIGN(const int32_t n_calls, ReadCount(cursor, "number of calls", 0, INT32_MAX));
  FACET_ASSIGN(const int32_t n_values, ReadCount(cursor, "number of values", 1, INT32_MAX));
  FACET_ASSIGN(const auto values, cursor->Take(static_cast<uint64_t>(n_values) * sizeof(float),
                                               fmt::format("the values of {}", entry.name)));
  entry.sums = FloatsOf(values);
  entry.counts = {static_cast<float>(std::max(n_calls, 1))};
  return entry;
}

/// int32 n; n times: int32 length, name, int32 calls, int32 values, float sums of means over the
/// calls; then, not in every file, int32 chunks, int32 length, name of the text.
Result<Imatrix> ParseOlder(std::span<const std::byte> bytes, const std::string& name) {
  ByteCursor cursor(bytes, name);
  FACET_ASSIGN(const int32_t n_entries, ReadCount(&cursor, "number of entries", 1, INT32_MAX));
  Imatrix imatrix;
  for (int32_t i = 0; i < n_entries; ++i) {
    FACET_ASSIGN(ImatrixEntry entry, ReadOlderEntry(&cursor));
    imatrix.entries.push_back(std::move(entry));
  }
  if (cursor.remaining() > 0) {
    FACET_ASSIGN(const int32_t n_chunks, ReadCount(&cursor, "number of chunks", 0, INT32_MAX));
    imatrix.n_chunks = static_cast<uint32_t>(n_chunks);
  }
  if (cursor.remaining() > 0) {
    FACET_ASSIGN(std::string dataset, ReadText(&cursor, "the text's name", INT32_MAX));
    imatrix.datasets.push_back(std::move(dataset));
  }
  return Complete(std::move(imatrix), name);
}

gguf::TensorToWrite FloatTensor(std::string name, std::vector<int64_t> shape,
                                const std::vector<float>& values) {
  return {std::move(name), TensorType::kF32, std::move(shape), [&values](gguf::ByteSink& sink) {
            return sink.Append(std::as_bytes(std::span(values)));
          }};
}

}  // namespace

const ImatrixEntry* Imatrix::Find(std::string_view name) const {
  const auto found = std::lower_bound(
      entries.begin(), entries.end(), name,
      [](const ImatrixEntry& entry, std::string_view wanted) { return entry.name < wanted; });
  return found != entries.end() && found->name == name ? &*found : nullptr;
}

Result<Imatrix> ParseImatrix(std::span<const std::byte> bytes, const std::string& name) {
  return AsText(bytes).starts_with("GGUF") ? ParseGguf(bytes, name) : ParseOlder(bytes, name);
}

Result<Imatrix> ReadImatrix(const std::string& path) {
  FACET_ASSIGN(const MappedFile file, MappedFile::Open(path));
  return ParseImatrix(file.bytes(), path);
}

Status WriteImatrix(const std::string& path, const Imatrix& imatrix) {
  using gguf::Value;
  gguf::Metadata metadata;
  metadata.Set("general.type", Value::String("imatrix"));
  metadata.Set("imatrix.datasets", Value::Strings(imatrix.datasets));
  metadata.Set("imatrix.chunk_count", Value::U32(imatrix.n_chunks));
  metadata.Set("imatrix.chunk_size", Value::U32(imatrix.chunk_size));
  std::vector<gguf::TensorToWrite> tensors;
  tensors.reserve(2 * imatrix.entries.size());
  for (const ImatrixEntry& entry : imatrix.entries) {
    const auto n_counts = static_cast<int64_t>(entry.counts.size());
    const auto n_columns = static_cast<int64_t>(entry.sums.size()) / n_counts;
    tensors.push_back(FloatTensor(fmt::format("{}{}", entry.name, kSumsSuffix),
                                  {n_counts, n_columns}, entry.sums));
    tensors.push_back(
        FloatTensor(fmt::format("{}{}", entry.name, kCountsSuffix), {n_counts, 1}, entry.counts));
  }
  return gguf::Write(path, metadata, tensors);
}

Result<std::vector<float>> ImportanceOf(const ImatrixEntry& entry,
                                        const std::vector<int64_t>& shape,
                                        const std::string& file) {
  const int64_t n_columns = shape.back();
  const int64_t n_matrices =
      shape.size() < 3 ? 1 : ElementsOf(shape) / (shape.end()[-2] * n_columns);
  const auto n_counts = static_cast<int64_t>(entry.counts.size());
  const std::string where = Where(file, entry.name);
  if (static_cast<int64_t>(entry.sums.size()) != n_matrices * n_columns) {
    return Refuse(where, fmt::format("{} sums", entry.sums.size()),
                  fmt::format("{}: {} columns of {} matrices", n_matrices * n_columns, n_columns,
                              n_matrices));
  }
  if (n_counts != 1 && n_counts != n_matrices) {
    return Refuse(where, fmt::format("{} counts", n_counts), fmt::format("1 or {}", n_matrices));
  }
  std::vector<float> importance(entry.sums.size(), 1.0F);
  for (int64_t i = 0; i < n_matrices * n_columns; ++i) {
    const float count = entry.counts[static_cast<size_t>(n_counts == 1 ? 0 : i / n_columns)];
    if (count >= 1) {
      importance[static_cast<size_t>(i)] = entry.sums[static_cast<size_t>(i)] / count;
    }
  }
  return importance;
}

bool IsMeasured(std::string_view tensor_name) {
  return tensor_name != "output.weight" && tensor_name != "token_embd.weight" &&
         tensor_name != "per_layer_token_embd.weight";
}

ImatrixCollector::ImatrixCollector(const Checkpoint& checkpoint) : path_(checkpoint.path()) {
  for (const CheckpointTensor& tensor : checkpoint.tensors()) {
    if (tensor.shape.size() >= 2 && IsMeasured(tensor.name)) {
      seen_.push_back({&tensor, {}, {}});
    }
  }
  std::sort(seen_.begin(), seen_.end(), [](const Seen& a, const Seen& b) {
    return a.tensor->data.data() < b.tensor->data.data();
  });
}

void ImatrixCollector::Observe(const WeightMatrix& w, const float* x, int64_t n_rows) {
  const auto after = std::upper_bound(
      seen_.begin(), seen_.end(), w.data,
      [](const std::byte* data, const Seen& seen) { return data < seen.tensor->data.data(); });
  if (after == seen_.begin()) {
    return;
  }
  Seen& seen = *std::prev(after);
  const std::vector<int64_t>& shape = seen.tensor->shape;
  const int64_t offset = w.data - seen.tensor->data.data();
  const int64_t matrix_bytes = shape.end()[-2] * w.row_bytes();
  // Products with parts of a matrix (gate and up in one, the layers of the per-layer projection)
  // all meet the same rows: the first part stands for them.
  if (offset >= static_cast<int64_t>(seen.tensor->data.size()) || offset % matrix_bytes != 0) {
    return;
  }
  if (seen.sums.empty()) {
    const int64_t n_matrices = ElementsOf(shape) / (shape.end()[-2] * w.n_in);
    seen.sums.resize(static_cast<size_t>(n_matrices * w.n_in));
    seen.counts.resize(static_cast<size_t>(n_matrices));
  }
  const int64_t matrix = offset / matrix_bytes;
  seen.counts[static_cast<size_t>(matrix)] += n_rows;
  double* sums = seen.sums.data() + matrix * w.n_in;
  for (int64_t r = 0; r < n_rows; ++r) {
    for (int64_t i = 0; i < w.n_in; ++i) {
      const double value = x[r * w.n_in + i];
      sums[i] += value * value;
    }
  }
}

Result<Imatrix> ImatrixCollector::Finish() const {
  Imatrix imatrix;
  for (const Seen& seen : seen_) {
    if (!seen.counts.empty()) {
      imatrix.entries.push_back({seen.tensor->name,
                                 {seen.sums.begin(), seen.sums.end()},
                                 {seen.counts.begin(), seen.counts.end()}});
    }
  }
  return Complete(std::move(imatrix), path_);
}

}  // namespace facet
