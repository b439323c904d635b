// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"
#include "base/file.h"
#include "format/gguf.h"
#include "format/gguf_layout.h"
#include "format/names.h"

namespace facet::gguf {
namespace {

constexpr size_t kMaxWrittenShards = 65535;  // split.count has 16 bits

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

/// The part of the directory that stands before the tensors.
std::string MetadataBytes(const Metadata& metadata, size_t n_tensors) {
  std::string out(kMagic);
  Append(out, kWrittenVersion);
  Append(out, uint64_t{n_tensors});
  Append(out, uint64_t{metadata.entries().size()});
  for (const auto& [key, value] : metadata.entries()) {
    AppendString(out, key);
    AppendValue(out, value);
  }
  return out;
}

void AppendEntry(std::string& out, const TensorToWrite& tensor, uint64_t offset) {
  AppendString(out, tensor.name);
  Append(out, static_cast<uint32_t>(tensor.shape.size()));
  for (auto dim = tensor.shape.rbegin(); dim != tensor.shape.rend(); ++dim) {
    Append(out, *dim);
  }
  Append(out, static_cast<uint32_t>(tensor.type));
  Append(out, offset);
}

/// One file: everything before its data, and which tensors it holds.
struct Part {
  std::string path;
  std::string directory;  ///< padded to the alignment
  size_t begin = 0;       ///< tensors [begin, end)
  size_t end = 0;
};

/// All files of one model, checked and laid out before the first byte is written.
class Layout {
 public:
  static Result<Layout> Make(const std::string& where, const Metadata& metadata,
                             const std::vector<TensorToWrite>& tensors);

  [[nodiscard]] const std::vector<Part>& parts() const { return parts_; }
  [[nodiscard]] uint64_t total_bytes() const { return total_bytes_; }
  [[nodiscard]] uint64_t n_bytes(size_t tensor) const { return n_bytes_[tensor]; }
  [[nodiscard]] uint64_t PaddedBytes(size_t tensor) const {
    return AlignUp(n_bytes_[tensor], alignment_);
  }

  void AddPart(std::string path, const Metadata& metadata, size_t begin, size_t end);

  /// First tensors of the parts. `first_bytes` and `other_bytes` is what stands before the tensors
  /// in the directory of the first and of the other parts.
  [[nodiscard]] std::vector<size_t> SplitPoints(uint64_t first_bytes, uint64_t other_bytes,
                                                uint64_t max_file_bytes) const;

 private:
  explicit Layout(const std::vector<TensorToWrite>& tensors) : tensors_(&tensors) {}

  const std::vector<TensorToWrite>* tensors_;
  uint32_t alignment_ = kDefaultAlignment;
  std::vector<uint64_t> n_bytes_;  // per tensor, without padding
  std::vector<Part> parts_;
  uint64_t total_bytes_ = 0;
};

Result<Layout> Layout::Make(const std::string& where, const Metadata& metadata,
                            const std::vector<TensorToWrite>& tensors) {
  Layout layout(tensors);
  FACET_RETURN_IF_ERROR(CheckMetadata(metadata, where));
  FACET_ASSIGN(layout.alignment_, AlignmentOf(metadata, where));
  if (const auto repeated = FindRepeated(NamesOf(tensors))) {
    return Refuse(where, fmt::format("tensor {} twice", Quoted(*repeated)), "each name once");
  }
  layout.n_bytes_.reserve(tensors.size());
  for (const TensorToWrite& tensor : tensors) {
    FACET_RETURN_IF_ERROR(CheckTensorName(where, tensor.name));
    FACET_ASSIGN(const uint64_t n_bytes,
                 TensorBytes(WhereTensor(where, tensor.name), tensor.type, tensor.shape));
    layout.n_bytes_.push_back(n_bytes);
  }
  return layout;
}

void Layout::AddPart(std::string path, const Metadata& metadata, size_t begin, size_t end) {
  Part part{std::move(path), MetadataBytes(metadata, end - begin), begin, end};
  uint64_t offset = 0;
  for (size_t i = begin; i < end; ++i) {
    AppendEntry(part.directory, (*tensors_)[i], offset);
    offset += PaddedBytes(i);
  }
  part.directory.resize(AlignUp(part.directory.size(), alignment_), '\0');
  total_bytes_ += part.directory.size() + offset;
  parts_.push_back(std::move(part));
}

std::vector<size_t> Layout::SplitPoints(uint64_t first_bytes, uint64_t other_bytes,
                                        uint64_t max_file_bytes) const {
  std::vector<size_t> begins = {0};
  uint64_t directory_bytes = first_bytes;
  uint64_t data_bytes = 0;
  for (size_t i = 0; i < tensors_->size(); ++i) {
    std::string entry;
    AppendEntry(entry, (*tensors_)[i], 0);
    const uint64_t file_bytes = AlignUp(directory_bytes + entry.size(), alignment_) + data_bytes;
    if (i > begins.back() && file_bytes + PaddedBytes(i) > max_file_bytes) {
      begins.push_back(i);
      directory_bytes = other_bytes;
      data_bytes = 0;
    }
    directory_bytes += entry.size();
    data_bytes += PaddedBytes(i);
  }
  return begins;
}

/// Writes the parts and keeps them under their preliminary names until all are complete.
class PartWriter {
 public:
  PartWriter(const Layout& layout, const std::vector<TensorToWrite>& tensors,
             const OnProgress& on_progress)
      : layout_(layout), tensors_(tensors), on_progress_(on_progress) {}

  Status WriteAll() {
    files_.reserve(layout_.parts().size());
    for (const Part& part : layout_.parts()) {
      FACET_RETURN_IF_ERROR(WritePart(part));
    }
    return CommitAll();
  }

 private:
  Status WritePart(const Part& part) {
    FACET_ASSIGN(AtomicFile file, AtomicFile::Create(part.path));
    FACET_RETURN_IF_ERROR(Put(&file, part.directory));
    for (size_t i = part.begin; i < part.end; ++i) {
      FACET_RETURN_IF_ERROR(WriteTensor(i, part.path, &file));
    }
    FACET_RETURN_IF_ERROR(file.Finish());
    files_.push_back(std::move(file));
    return {};
  }

  Status WriteTensor(size_t i, const std::string& path, AtomicFile* file) {
    const uint64_t n_wanted = layout_.n_bytes(i);
    uint64_t n_got = 0;
    const auto refuse = [&] {
      return Refuse(WhereTensor(path, tensors_[i].name), fmt::format("{} bytes of data", n_got),
                    fmt::format("{}", n_wanted));
    };
    ByteSink sink([&](std::span<const std::byte> bytes) -> Status {
      n_got += bytes.size();
      return n_got > n_wanted ? Status(refuse()) : Put(file, AsText(bytes));
    });
    FACET_RETURN_IF_ERROR(tensors_[i].write(sink));
    if (n_got != n_wanted) {
      return refuse();
    }
    return Put(file, std::string(layout_.PaddedBytes(i) - n_wanted, '\0'));
  }

  Status Put(AtomicFile* file, std::string_view bytes) {
    if (bytes.empty()) {
      return {};
    }
    FACET_RETURN_IF_ERROR(file->Write(bytes));
    n_written_ += bytes.size();
    if (on_progress_) {
      on_progress_(n_written_, layout_.total_bytes());
    }
    return {};
  }

  /// The first part last: whoever sees it finds the others.
  Status CommitAll() {
    for (size_t i = files_.size(); i-- > 0;) {
      Status committed = files_[i].Commit();
      if (!committed.ok()) {
        for (size_t later = i + 1; later < files_.size(); ++later) {
          (void)std::remove(layout_.parts()[later].path.c_str());
        }
        return committed;
      }
    }
    return {};
  }

  const Layout& layout_;
  const std::vector<TensorToWrite>& tensors_;
  const OnProgress& on_progress_;
  std::vector<AtomicFile> files_;
  uint64_t n_written_ = 0;
};

/// The keys of part `number`: those of the model in the first, and in all what llama.cpp's
/// gguf-split writes, in its types.
Metadata PartMetadata(const Metadata& metadata, size_t number, size_t count, size_t n_tensors) {
  Metadata part;
  if (number == 0) {
    part = metadata;
  } else if (const Value* alignment = metadata.Find(kAlignmentKey)) {
    part.Set(std::string(kAlignmentKey), *alignment);
  }
  const auto set = [&part](std::string_view key, ValueType type, auto value) {
    part.Set(std::string(key), {type, ValueType::kUint32, value});
  };
  set(kSplitNumberKey, ValueType::kUint16, uint64_t{number});
  set(kSplitCountKey, ValueType::kUint16, uint64_t{count});
  set(kSplitTensorsKey, ValueType::kInt32, static_cast<int64_t>(n_tensors));
  return part;
}

}  // namespace

std::function<Status(ByteSink&)> WholeTensor(std::string data) {
  return [data = std::move(data)](ByteSink& sink) { return sink.Append(AsBytes(data)); };
}

Status Write(const std::string& path, const Metadata& metadata,
             const std::vector<TensorToWrite>& tensors, const OnProgress& on_progress) {
  FACET_ASSIGN(Layout layout, Layout::Make(path, metadata, tensors));
  layout.AddPart(path, metadata, 0, tensors.size());
  return PartWriter(layout, tensors, on_progress).WriteAll();
}

Status WriteSplit(const std::string& prefix, const Metadata& metadata,
                  const std::vector<TensorToWrite>& tensors, const SplitOptions& options) {
  FACET_ASSIGN(Layout layout, Layout::Make(prefix, metadata, tensors));
  const std::vector<size_t> begins = layout.SplitPoints(
      MetadataBytes(PartMetadata(metadata, 0, 0, 0), 0).size(),
      MetadataBytes(PartMetadata(metadata, 1, 0, 0), 0).size(), options.max_file_bytes);
  const size_t count = begins.size();
  if (count > kMaxWrittenShards) {
    return Refuse(prefix,
                  fmt::format("{} files of at most {} bytes", count, options.max_file_bytes),
                  fmt::format("at most {} files", kMaxWrittenShards));
  }
  std::vector<std::string> paths;
  paths.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    paths.push_back(ShardPath(prefix, static_cast<int64_t>(i), static_cast<int64_t>(count)));
    layout.AddPart(paths.back(), PartMetadata(metadata, i, count, tensors.size()), begins[i],
                   i + 1 < count ? begins[i + 1] : tensors.size());
  }
  if (options.on_paths) {
    options.on_paths(paths);
  }
  return PartWriter(layout, tensors, options.on_progress).WriteAll();
}

}  // namespace facet::gguf
