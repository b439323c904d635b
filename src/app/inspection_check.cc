// SPDX-License-Identifier: Apache-2.0
#include "app/inspection_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>
#include <cmath>
#include <set>

#include "app/text_width.h"
#include "quant/codec.h"

namespace facet {
namespace {

constexpr size_t kMaxFindings = 20;

struct BadValue {
  int64_t row;
  int64_t column;
  float value;
};

/// What was seen in some rows of one tensor.
struct RowFacts {
  int64_t n_nan = 0;
  int64_t n_infinite = 0;
  int64_t n_zero_rows = 0;
  int64_t first_zero_row = -1;
  std::vector<BadValue> bad;  ///< the first kMaxFindings

  void Add(const RowFacts& later) {
    n_nan += later.n_nan;
    n_infinite += later.n_infinite;
    n_zero_rows += later.n_zero_rows;
    first_zero_row = first_zero_row < 0 ? later.first_zero_row : first_zero_row;
    const size_t n = std::min(later.bad.size(), kMaxFindings - bad.size());
    bad.insert(bad.end(), later.bad.begin(), later.bad.begin() + static_cast<ptrdiff_t>(n));
  }
};

/// The largest magnitude as bits: 0 for nothing but zeros, at least kInfinityBits where something
/// is no number.
constexpr uint32_t kInfinityBits = 0x7F800000;
uint32_t LargestMagnitude(const float* values, int64_t n) {
  uint32_t largest = 0;
  for (int64_t i = 0; i < n; ++i) {
    largest = std::max(largest, std::bit_cast<uint32_t>(values[i]) & 0x7FFFFFFFU);
  }
  return largest;
}

/// Reads the rows of one tensor.
class RowReader {
 public:
  explicit RowReader(const SourceTensor& tensor)
      : tensor_(tensor), codec_(FindCodec(tensor.type)), n_columns_(tensor.n_columns()) {}

  [[nodiscard]] int64_t n_rows() const { return tensor_.n_elements() / n_columns_; }

  [[nodiscard]] RowFacts Read(int64_t begin, int64_t end) const {
    RowFacts facts;
    std::vector<float> values(static_cast<size_t>(std::min(n_columns_, kScanPiece)));
    for (int64_t row = begin; row < end; ++row) {
      uint32_t largest = 0;
      for (int64_t column = 0; column < n_columns_; column += kScanPiece) {
        const int64_t n = std::min(kScanPiece, n_columns_ - column);
        const int64_t first = row * n_columns_ + column;
        codec_->decode(tensor_.data.data() + BytesOf(tensor_.type, first), n, values.data());
        const uint32_t magnitude = LargestMagnitude(values.data(), n);
        if (magnitude >= kInfinityBits) {
          NoteBad(row, column, {values.data(), static_cast<size_t>(n)}, &facts);
        }
        largest = std::max(largest, magnitude);
      }
      if (largest == 0) {
        facts.first_zero_row = facts.n_zero_rows == 0 ? row : facts.first_zero_row;
        ++facts.n_zero_rows;
      }
    }
    return facts;
  }

 private:
  static void NoteBad(int64_t row, int64_t first_column, std::span<const float> values,
                      RowFacts* facts) {
    for (size_t i = 0; i < values.size(); ++i) {
      if (std::isfinite(values[i])) {
        continue;
      }
      ++(std::isnan(values[i]) ? facts->n_nan : facts->n_infinite);
      if (facts->bad.size() < kMaxFindings) {
        facts->bad.push_back({row, first_column + static_cast<int64_t>(i), values[i]});
      }
    }
  }

  const SourceTensor& tensor_;
  const Codec* codec_;
  int64_t n_columns_;
};

std::string_view NameOfBad(float value) {
  return std::isnan(value) ? "NaN" : value > 0 ? "inf" : "-inf";
}

/// The counts of a file that is read tensor by tensor.
class FileCheck {
 public:
  void Add(const SourceTensor& tensor, const RowFacts& facts) {
    n_values_ += tensor.n_elements();
    n_nan_ += facts.n_nan;
    n_infinite_ += facts.n_infinite;
    n_zero_rows_ += facts.n_zero_rows;
    for (const BadValue& bad : facts.bad) {
      if (findings_.items().size() < kMaxFindings) {
        findings_.Append(Json::MakeObject({{"tensor", tensor.name},
                                           {"row", bad.row},
                                           {"column", bad.column},
                                           {"value", NameOfBad(bad.value)}}));
      }
    }
    if (facts.n_zero_rows > 0) {
      zeros_.Append(Json::MakeObject({{"tensor", tensor.name},
                                      {"rows", facts.n_zero_rows},
                                      {"of", tensor.n_elements() / tensor.n_columns()},
                                      {"first", facts.first_zero_row}}));
    }
  }
  void AddUnread(TensorType type) { unread_.insert(std::string(InfoOf(type).name)); }

  [[nodiscard]] Json Report() const {
    Json unread = Json(Json::Array());
    for (const std::string& name : unread_) {
      unread.Append(name);
    }
    return Json::MakeObject({{"values", n_values_},
                             {"nan", n_nan_},
                             {"infinite", n_infinite_},
                             {"zero_rows", n_zero_rows_},
                             {"findings", findings_},
                             {"zeros", zeros_},
                             {"unread", std::move(unread)}});
  }

 private:
  int64_t n_values_ = 0;
  int64_t n_nan_ = 0;
  int64_t n_infinite_ = 0;
  int64_t n_zero_rows_ = 0;
  Json findings_ = Json(Json::Array());
  Json zeros_ = Json(Json::Array());
  std::set<std::string> unread_;
};

}  // namespace

Json CheckValues(const InspectionSource& source, ThreadPool* pool, const ScanProgress& progress) {
  FileCheck check;
  uint64_t n_done = 0;
  for (const SourceTensor& tensor : source.tensors()) {
    if (tensor.data.empty()) {
      continue;
    }
    if (FindCodec(tensor.type) == nullptr) {
      check.AddUnread(tensor.type);
      continue;
    }
    const RowReader reader(tensor);
    const int64_t n_rows = reader.n_rows();
    const int64_t grain = std::max<int64_t>(1, kScanPiece / tensor.n_columns());
    const auto read = [&](int64_t part) {
      return reader.Read(part * grain, std::min(n_rows, (part + 1) * grain));
    };
    const auto told = [&](int64_t n_parts) {
      const int64_t n_read = std::min(n_rows, n_parts * grain) * tensor.n_columns();
      progress(n_done + static_cast<uint64_t>(BytesOf(tensor.type, n_read)), source.n_bytes());
    };
    RowFacts facts;
    for (const RowFacts& part :
         ScanParts<RowFacts>(pool, (n_rows + grain - 1) / grain, read, told)) {
      facts.Add(part);
    }
    check.Add(tensor, facts);
    n_done += tensor.data.size();
  }
  return check.Report();
}

bool HasBadValues(const Json& check) {
  return check["nan"].as_int() > 0 || check["infinite"].as_int() > 0;
}

std::string ShowCheck(const Json& check) {
  const int64_t n_bad = check["nan"].as_int() + check["infinite"].as_int();
  const std::string n_values = fmt::format("\nCheck\n  {} values read", check["values"].as_int());
  std::string out = n_bad == 0 ? n_values + ", all are numbers\n"
                               : fmt::format("{}: {} are NaN, {} are infinite\n", n_values,
                                             check["nan"].as_int(), check["infinite"].as_int());
  const auto& findings = check["findings"].items();
  for (const Json& finding : findings) {
    out += fmt::format("  {:<4}  {}, row {}, column {}\n", finding["value"].as_string(),
                       ShownText(finding["tensor"].as_string()), finding["row"].as_int(),
                       finding["column"].as_int());
  }
  if (n_bad > static_cast<int64_t>(findings.size())) {
    out += fmt::format("  and {} more\n", n_bad - static_cast<int64_t>(findings.size()));
  }
  const auto& zeros = check["zeros"].items();
  for (size_t i = 0; i < std::min(zeros.size(), kMaxFindings); ++i) {
    out += fmt::format("  note: {}, {} of {} rows are zero, the first is {}\n",
                       ShownText(zeros[i]["tensor"].as_string()), zeros[i]["rows"].as_int(),
                       zeros[i]["of"].as_int(), zeros[i]["first"].as_int());
  }
  if (zeros.size() > kMaxFindings) {
    out += fmt::format("  note: rows of zeros in {} more tensors\n", zeros.size() - kMaxFindings);
  }
  for (const Json& type : check["unread"].items()) {
    out += fmt::format("  note: tensors of type {} were not read\n", type.as_string());
  }
  return out;
}

}  // namespace facet
