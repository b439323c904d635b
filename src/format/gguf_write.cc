// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"
#include "base/file.h"
#include "format/gguf.h"
#include "format/gguf_layout.h"
#include "format/names.h"

namespace facet::gguf {
namespace {

void AppendString(std::string& out, std::string_view text) {
  Append(out, uint64_t{text.size()});
  out += text;
}

template <typename Stored, typename Held>
void AppendNumber(std::string& out, Held held) {
  if constexpr (std::is_integral_v<Stored>) {
    FACET_CHECK(std::in_range<Stored>(held));
  }
  Append(out, static_cast<Stored>(held));
}

void AppendArray(std::string& out, const Value& value) {
  Append(out, static_cast<uint32_t>(value.element_type));
  Append(out, uint64_t{value.array_size()});
  if (value.element_type == ValueType::kString) {
    for (const std::string& text : std::get<std::vector<std::string>>(value.data)) {
      AppendString(out, text);
    }
  } else if (value.element_type == ValueType::kBool) {
    for (const uint8_t flag : std::get<std::vector<uint8_t>>(value.data)) {
      Append(out, uint8_t{flag != 0});
    }
  } else {
    VisitStored(value.element_type, [&](auto sample) {
      using Stored = decltype(sample);
      for (const auto number : std::get<std::vector<Wide<Stored>>>(value.data)) {
        AppendNumber<Stored>(out, number);
      }
    });
  }
}

void AppendValue(std::string& out, const Value& value) {
  Append(out, static_cast<uint32_t>(value.type));
  switch (value.type) {
    case ValueType::kArray:
      AppendArray(out, value);
      break;
    case ValueType::kString:
      AppendString(out, std::get<std::string>(value.data));
      break;
    case ValueType::kBool:
      Append(out, uint8_t{std::get<bool>(value.data)});
      break;
    default:
      VisitStored(value.type, [&](auto sample) {
        using Stored = decltype(sample);
        AppendNumber<Stored>(out, std::get<Wide<Stored>>(value.data));
      });
  }
}

/// What Parse would refuse in the metadata, apart from the alignment.
Status CheckMetadata(const Metadata& metadata, const std::string& path) {
  uint64_t n_elements = 0;
  for (const auto& [key, value] : metadata.entries()) {
    FACET_RETURN_IF_ERROR(CheckKey(path, key));
    n_elements += value.array_size();
    const std::vector<std::string>* strings = value.AsStrings();
    const std::string* string = value.AsString();
    size_t longest = string != nullptr ? string->size() : 0;
    for (size_t i = 0; strings != nullptr && i < strings->size(); ++i) {
      longest = std::max(longest, (*strings)[i].size());
    }
    if (longest > kMaxStringBytes) {
      return Refuse(WhereKey(path, key), fmt::format("a string of {} bytes", longest),
                    fmt::format("at most {}", kMaxStringBytes));
    }
  }
  if (n_elements > kMaxArrayElements) {
    return Refuse(path, fmt::format("{} array elements", n_elements),
                  fmt::format("at most {} in all arrays", kMaxArrayElements));
  }
  return {};
}

/// Everything before the data, and how the data is laid out.
struct Plan {
  std::string header;
  std::vector<uint64_t> n_bytes;  ///< per tensor, without padding
  uint64_t total_bytes = 0;
  uint32_t alignment = kDefaultAlignment;
};

Result<Plan> MakePlan(const std::string& path, const Metadata& metadata,
                      const std::vector<TensorToWrite>& tensors) {
  Plan plan;
  FACET_RETURN_IF_ERROR(CheckMetadata(metadata, path));
  FACET_ASSIGN(plan.alignment, AlignmentOf(metadata, path));
  if (const auto repeated = FindRepeated(NamesOf(tensors))) {
    return Refuse(path, fmt::format("tensor {} twice", Quoted(*repeated)), "each name once");
  }
  plan.header = kMagic;
  Append(plan.header, kWrittenVersion);
  Append(plan.header, uint64_t{tensors.size()});
  Append(plan.header, uint64_t{metadata.entries().size()});
  for (const auto& [key, value] : metadata.entries()) {
    AppendString(plan.header, key);
    AppendValue(plan.header, value);
  }
  uint64_t offset = 0;
  for (const TensorToWrite& tensor : tensors) {
    FACET_RETURN_IF_ERROR(CheckTensorName(path, tensor.name));
    FACET_ASSIGN(const uint64_t n_bytes,
                 TensorBytes(WhereTensor(path, tensor.name), tensor.type, tensor.shape));
    AppendString(plan.header, tensor.name);
    Append(plan.header, static_cast<uint32_t>(tensor.shape.size()));
    for (auto dim = tensor.shape.rbegin(); dim != tensor.shape.rend(); ++dim) {
      Append(plan.header, *dim);
    }
    Append(plan.header, static_cast<uint32_t>(tensor.type));
    Append(plan.header, offset);
    plan.n_bytes.push_back(n_bytes);
    offset += AlignUp(n_bytes, plan.alignment);
  }
  plan.header.resize(AlignUp(plan.header.size(), plan.alignment), '\0');
  plan.total_bytes = plan.header.size() + offset;
  return plan;
}

/// The tensor's data, which must have as many bytes as its shape and type say.
Status WriteData(const std::string& path, const TensorToWrite& tensor, uint64_t n_bytes,
                 AtomicFile* file) {
  uint64_t n_given = 0;
  const ByteSink sink = [&](std::string_view part) {
    n_given += part.size();
    return n_given <= n_bytes ? file->Write(part) : Status();
  };
  if (tensor.parts) {
    FACET_RETURN_IF_ERROR(tensor.parts(sink));
  } else {
    FACET_ASSIGN(const std::string data, tensor.data());
    FACET_RETURN_IF_ERROR(sink(data));
  }
  if (n_given != n_bytes) {
    return Refuse(WhereTensor(path, tensor.name), fmt::format("{} bytes of data", n_given),
                  fmt::format("{}", n_bytes));
  }
  return {};
}

}  // namespace

Status Write(const std::string& path, const Metadata& metadata,
             const std::vector<TensorToWrite>& tensors,
             const std::function<void(uint64_t, uint64_t)>& on_progress) {
  FACET_ASSIGN(const Plan plan, MakePlan(path, metadata, tensors));
  FACET_ASSIGN(AtomicFile file, AtomicFile::Create(path));
  FACET_RETURN_IF_ERROR(file.Write(plan.header));
  uint64_t n_written = plan.header.size();
  for (size_t i = 0; i < tensors.size(); ++i) {
    const uint64_t n_bytes = plan.n_bytes[i];
    const uint64_t padded = AlignUp(n_bytes, plan.alignment);
    FACET_RETURN_IF_ERROR(WriteData(path, tensors[i], n_bytes, &file));
    FACET_RETURN_IF_ERROR(file.Write(std::string(padded - n_bytes, '\0')));
    n_written += padded;
    if (on_progress) {
      on_progress(n_written, plan.total_bytes);
    }
  }
  return file.Commit();
}

}  // namespace facet::gguf
