// SPDX-License-Identifier: Apache-2.0
// GGUF files: the directory of metadata and tensors that stands before the data. Reads versions 2
// and 3, with shards; writes version 3. Knows nothing of models. Parsing works on bytes and never
// allocates by a count that the bytes left could not hold. docs/gguf.md describes the format as we
// read it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/mapped_file.h"
#include "base/status.h"
#include "base/tensor_type.h"

namespace facet::gguf {

/// Values are the ids stored in files.
enum class ValueType : uint32_t {
  kUint8 = 0,
  kInt8 = 1,
  kUint16 = 2,
  kInt16 = 3,
  kUint32 = 4,
  kInt32 = 5,
  kFloat32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kUint64 = 10,
  kInt64 = 11,
  kFloat64 = 12,
};
std::string_view NameOf(ValueType type);  ///< "uint32", "string", ...

/// A metadata value. Integers of every width are held in 64 bits, floats in double; `type` (and
/// `element_type` of an array) is the type as stored. An array of arrays is refused when read.
struct Value {
  ValueType type = ValueType::kUint32;
  ValueType element_type = ValueType::kUint32;  ///< of an array
  std::variant<int64_t, uint64_t, double, bool, std::string, std::vector<int64_t>,
               std::vector<uint64_t>, std::vector<double>, std::vector<uint8_t>,
               std::vector<std::string>>
      data;
  // vector<uint8_t> holds bool arrays, one byte each.

  static Value U32(uint32_t v);
  static Value F32(float v);
  static Value Bool(bool v);
  static Value String(std::string v);
  static Value Strings(std::vector<std::string> v);
  static Value U32s(const std::vector<uint32_t>& v);
  static Value I32s(const std::vector<int32_t>& v);
  static Value F32s(const std::vector<float>& v);
  static Value Bools(const std::vector<bool>& v);

  [[nodiscard]] bool is_array() const { return type == ValueType::kArray; }
  [[nodiscard]] size_t array_size() const;  ///< 0 unless an array
  /// Any integer or bool kind that fits; nothing for others.
  [[nodiscard]] std::optional<int64_t> AsInt() const;
  [[nodiscard]] std::optional<double> AsDouble() const;  ///< any number
  [[nodiscard]] std::optional<bool> AsBool() const;
  [[nodiscard]] const std::string* AsString() const;
  [[nodiscard]] const std::vector<std::string>* AsStrings() const;
  /// Element `i` of an array of integers or bools.
  [[nodiscard]] std::optional<int64_t> IntAt(size_t i) const;
  [[nodiscard]] std::optional<double> DoubleAt(size_t i) const;
};

/// Metadata in the order of the file. Repeated keys are refused when read.
class Metadata {
 public:
  using Entries = std::vector<std::pair<std::string, Value>>;

  Metadata() = default;
  /// Takes entries whose keys all differ (Set would look for each key among those before it).
  explicit Metadata(Entries entries) : entries_(std::move(entries)) {}

  [[nodiscard]] const Value* Find(std::string_view key) const;
  void Set(std::string key, Value value);  ///< adds or replaces
  [[nodiscard]] const Entries& entries() const { return entries_; }

 private:
  Entries entries_;
};

/// A tensor's place. `shape` has the slowest axis first ([rows, columns]: the reverse of the file's
/// order).
struct TensorInfo {
  std::string name;
  TensorType type;
  std::vector<int64_t> shape;
  uint64_t offset;  ///< from the beginning of the file
  uint64_t n_bytes;
};

/// What Parse found; refers to nothing of the bytes.
struct Directory {
  uint32_t version = 3;
  uint32_t alignment = 32;
  Metadata metadata;
  std::vector<TensorInfo> tensors;
};

/// Reads the directory of one file. `name` is what errors call it. Checks every offset, size,
/// alignment, overlap of tensor data, duplicate names and keys, types and dimensions (1 to 4, all
/// positive, product within 2^60).
Result<Directory> Parse(std::span<const std::byte> bytes, const std::string& name);

/// A tensor with its data, which lies in the mapped file.
struct TensorView {
  std::string name;
  TensorType type;
  std::vector<int64_t> shape;
  std::span<const std::byte> data;
  size_t shard = 0;     ///< from 0
  uint64_t offset = 0;  ///< from the beginning of that shard
};

/// An open GGUF file with all its shards. Movable; the views live as long as it does (or the bytes
/// given to FromBytes).
class File {
 public:
  /// Opens PATH; when it is the first of split files (split.count > 1, NAME-00001-of-0000N.gguf)
  /// the others too. Another than the first shard is refused, naming the first one.
  static Result<File> Open(const std::string& path);
  /// A file that is already in memory, such as the embedded model; the bytes must outlive the File.
  static Result<File> FromBytes(std::span<const std::byte> bytes, const std::string& name);

  [[nodiscard]] const Metadata& metadata() const { return metadata_; }  ///< of the first shard
  [[nodiscard]] uint32_t version() const { return version_; }
  [[nodiscard]] uint32_t alignment() const { return alignment_; }
  [[nodiscard]] const std::vector<TensorView>& tensors() const {
    return tensors_;
  }  ///< of all shards, in order
  [[nodiscard]] const TensorView* Find(std::string_view tensor_name) const;
  [[nodiscard]] uint64_t n_bytes() const { return n_bytes_; }  ///< of all files
  /// Gives memory with data of a tensor back (MappedFile::Release); bytes in memory stay.
  void Release(std::span<const std::byte> data) const;
  [[nodiscard]] size_t n_shards() const { return n_shards_; }
  [[nodiscard]] const std::vector<std::string>& paths() const {
    return paths_;
  }  ///< of all files; empty for bytes in memory

 private:
  void Add(Directory directory, std::span<const std::byte> bytes);
  Status AddShard(const std::string& path, int64_t number, int64_t count);

  std::vector<std::string> paths_;
  std::vector<MappedFile> maps_;
  Metadata metadata_;
  std::vector<TensorView> tensors_;
  std::vector<std::pair<std::string, size_t>> by_name_;  // sorted
  uint32_t version_ = 3;
  uint32_t alignment_ = 32;
  uint64_t n_bytes_ = 0;
  size_t n_shards_ = 1;
};

/// Takes the data of one tensor in order, in pieces of any size.
class ByteSink {
 public:
  using Take = std::function<Status(std::span<const std::byte>)>;
  explicit ByteSink(Take take) : take_(std::move(take)) {}

  Status Append(std::span<const std::byte> bytes) { return take_(bytes); }

 private:
  Take take_;
};

/// A tensor to be written: its data is asked for when its turn comes, so that a large file never
/// lies in memory.
struct TensorToWrite {
  std::string name;
  TensorType type;
  std::vector<int64_t> shape;  ///< slowest axis first
  /// Appends exactly BytesOf(type, product of shape) bytes; called once. Its error is returned by
  /// the writing function.
  std::function<Status(ByteSink&)> write;
};

/// For TensorToWrite::write, where a tensor is small enough to be kept.
std::function<Status(ByteSink&)> WholeTensor(std::string data);

/// Called with the bytes written so far and those in all, whenever data has been written.
using OnProgress = std::function<void(uint64_t n_written, uint64_t n_total)>;

/// Writes a version 3 file with alignment 32 (general.alignment is written only when `metadata`
/// sets it), through an AtomicFile.
Status Write(const std::string& path, const Metadata& metadata,
             const std::vector<TensorToWrite>& tensors, const OnProgress& on_progress = {});

struct SplitOptions {
  /// No file is larger unless it holds a single tensor.
  uint64_t max_file_bytes = 0;
  /// Called before anything is written with the names of all files, the first one first. While
  /// they are written `.part` is added to each (base/file.h).
  std::function<void(const std::vector<std::string>& paths)> on_paths;
  OnProgress on_progress;
};

/// Writes PREFIX-00001-of-0000N.gguf and so on, which File::Open and llama.cpp open by the first,
/// which has the metadata. The files appear together when all are complete, the first one last;
/// after an error there are none. Always numbered, even when one file is enough.
Status WriteSplit(const std::string& prefix, const Metadata& metadata,
                  const std::vector<TensorToWrite>& tensors, const SplitOptions& options);

}  // namespace facet::gguf
