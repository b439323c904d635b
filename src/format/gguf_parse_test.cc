// SPDX-License-Identifier: Apache-2.0
// Files built byte by byte, sound and broken: each fault must give its one message.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "base/bytes.h"
#include "format/gguf.h"
#include "format/gguf_layout.h"

namespace facet::gguf {
namespace {

constexpr uint64_t kHuge = uint64_t{1} << 63;

template <typename... Scalars>
std::string Pack(Scalars... scalars) {
  std::string out;
  (Append(out, scalars), ...);
  return out;
}

std::string Text(std::string_view text) { return Pack(uint64_t{text.size()}) + std::string(text); }

std::string Entry(std::string_view key, ValueType type, const std::string& payload) {
  return Text(key) + Pack(static_cast<uint32_t>(type)) + payload;
}

std::string ArrayEntry(std::string_view key, uint32_t element_type, uint64_t count,
                       const std::string& payload) {
  return Entry(key, ValueType::kArray, Pack(element_type, count) + payload);
}

/// `dims` as in the file: fastest axis first.
std::string Tensor(std::string_view name, const std::vector<uint64_t>& dims, uint32_t type,
                   uint64_t offset) {
  std::string out = Text(name) + Pack(static_cast<uint32_t>(dims.size()));
  for (const uint64_t dim : dims) {
    Append(out, dim);
  }
  return out + Pack(type, offset);
}

struct Parts {
  std::vector<std::string> entries = {};
  std::vector<std::string> tensors = {};
  size_t data_bytes = 0;
  uint32_t alignment = 32;
  std::optional<uint64_t> n_entries = {};  ///< another count than there are
  std::optional<uint64_t> n_tensors = {};
};

std::string Build(const Parts& parts, uint32_t version = 3) {
  std::string out = "GGUF" + Pack(version, parts.n_tensors.value_or(parts.tensors.size()),
                                  parts.n_entries.value_or(parts.entries.size()));
  for (const std::string& entry : parts.entries) {
    out += entry;
  }
  for (const std::string& tensor : parts.tensors) {
    out += tensor;
  }
  if (parts.data_bytes > 0) {
    out.resize(AlignUp(out.size(), parts.alignment) + parts.data_bytes, '\1');
  }
  return out;
}

std::string ErrorOf(const std::string& bytes) {
  const auto directory = Parse(AsBytes(bytes), "a.gguf");
  return directory.ok() ? "no error" : directory.error().Message();
}

std::string EntryError(const std::string& entry) { return ErrorOf(Build({.entries = {entry}})); }

/// With 64 bytes of data.
std::string TensorError(const std::vector<std::string>& tensors) {
  return ErrorOf(Build({.tensors = tensors, .data_bytes = 64}));
}

/// One value of each kind and two tensors; nothing is padding.
Parts SmallFile() {
  return {
      .entries =
          {
              Entry("u8", ValueType::kUint8, Pack(uint8_t{200})),
              Entry("i8", ValueType::kInt8, Pack(int8_t{-100})),
              Entry("u16", ValueType::kUint16, Pack(uint16_t{60000})),
              Entry("i16", ValueType::kInt16, Pack(int16_t{-30000})),
              Entry("u32", ValueType::kUint32, Pack(uint32_t{4000000000})),
              Entry("i32", ValueType::kInt32, Pack(int32_t{-2000000000})),
              Entry("f32", ValueType::kFloat32, Pack(1.5f)),
              Entry("bool", ValueType::kBool, Pack(uint8_t{1})),
              Entry("string", ValueType::kString, Text("h\xc3\xa9\xff")),
              Entry("u64", ValueType::kUint64, Pack(UINT64_MAX)),
              Entry("i64", ValueType::kInt64, Pack(INT64_MIN)),
              Entry("f64", ValueType::kFloat64, Pack(0.1)),
              ArrayEntry("strings", 8, 2, Text("") + Text("b")),
              ArrayEntry("bools", 7, 3, Pack(uint8_t{1}, uint8_t{0}, uint8_t{1})),
              ArrayEntry("i16s", 3, 2, Pack(int16_t{-1}, int16_t{2})),
              ArrayEntry("f32s", 6, 1, Pack(-0.5f)),
              ArrayEntry("none", 4, 0, ""),
          },
      .tensors = {Tensor("second", {8}, 0, 64), Tensor("first", {32, 3}, 2, 0)},
      .data_bytes = 96,
  };
}

TEST(GgufParseTest, ReadsEveryKindOfValue) {
  const std::string bytes = Build(SmallFile());
  const auto directory = Parse(AsBytes(bytes), "a.gguf");
  ASSERT_TRUE(directory.ok()) << directory.error().Message();
  EXPECT_EQ(directory->version, 3u);
  EXPECT_EQ(directory->alignment, 32u);
  const Metadata& metadata = directory->metadata;
  ASSERT_EQ(metadata.entries().size(), 17u);
  EXPECT_EQ(metadata.Find("u8")->AsInt(), 200);
  EXPECT_EQ(metadata.Find("i8")->AsInt(), -100);
  EXPECT_EQ(metadata.Find("u16")->AsInt(), 60000);
  EXPECT_EQ(metadata.Find("i16")->AsInt(), -30000);
  EXPECT_EQ(metadata.Find("u32")->AsInt(), 4000000000);
  EXPECT_EQ(metadata.Find("i32")->AsInt(), -2000000000);
  EXPECT_EQ(metadata.Find("f32")->AsDouble(), 1.5);
  EXPECT_EQ(metadata.Find("bool")->AsBool(), true);
  EXPECT_EQ(*metadata.Find("string")->AsString(), "h\xc3\xa9\xff");
  EXPECT_EQ(std::get<uint64_t>(metadata.Find("u64")->data), UINT64_MAX);
  EXPECT_EQ(metadata.Find("i64")->AsInt(), INT64_MIN);
  EXPECT_EQ(metadata.Find("f64")->AsDouble(), 0.1);
  EXPECT_EQ(*metadata.Find("strings")->AsStrings(), (std::vector<std::string>{"", "b"}));
  EXPECT_EQ(metadata.Find("bools")->IntAt(1), 0);
  EXPECT_EQ(metadata.Find("bools")->IntAt(2), 1);
  EXPECT_EQ(metadata.Find("i16s")->IntAt(0), -1);
  EXPECT_EQ(metadata.Find("i16s")->element_type, ValueType::kInt16);
  EXPECT_EQ(metadata.Find("f32s")->DoubleAt(0), -0.5);
  EXPECT_TRUE(metadata.Find("none")->is_array());
  EXPECT_EQ(metadata.Find("none")->array_size(), 0u);
}

TEST(GgufParseTest, ReadsTensorsWithTheSlowestAxisFirst) {
  const std::string bytes = Build(SmallFile());
  const auto directory = Parse(AsBytes(bytes), "a.gguf");
  ASSERT_TRUE(directory.ok()) << directory.error().Message();
  ASSERT_EQ(directory->tensors.size(), 2u);
  const TensorInfo& second = directory->tensors[0];
  const TensorInfo& first = directory->tensors[1];
  EXPECT_EQ(second.name, "second");
  EXPECT_EQ(second.shape, (std::vector<int64_t>{8}));
  EXPECT_EQ(second.offset + second.n_bytes, bytes.size());
  EXPECT_EQ(first.type, TensorType::kQ4_0);
  EXPECT_EQ(first.shape, (std::vector<int64_t>{3, 32}));
  EXPECT_EQ(first.n_bytes, 54u);
  EXPECT_EQ(first.offset, bytes.size() - 96);
}

TEST(GgufParseTest, AcceptsWhatFilesInUseHave) {
  EXPECT_EQ(ErrorOf(Build({})), "no error");                     // a first shard without tensors
  EXPECT_EQ(ErrorOf(Build(SmallFile(), 2)), "no error");         // version 2
  EXPECT_EQ(TensorError({Tensor("a", {1}, 0, 0)}), "no error");  // a hole behind the tensor
  const Parts wide{.entries = {Entry("general.alignment", ValueType::kUint32, Pack(uint32_t{128}))},
                   .tensors = {Tensor("a", {1}, 0, 0), Tensor("b", {1}, 0, 128)},
                   .data_bytes = 132,
                   .alignment = 128};
  EXPECT_EQ(ErrorOf(Build(wide)), "no error");  // and no padding after the last tensor
}

TEST(GgufParseTest, EveryTruncationIsAnError) {
  const std::string bytes = Build(SmallFile());
  for (size_t size = 0; size < bytes.size(); ++size) {
    // A copy of exactly this size, so that a sanitizer sees a read behind it.
    const std::vector<char> part(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_FALSE(Parse(std::as_bytes(std::span(part)), "a.gguf").ok()) << size;
  }
}

TEST(GgufParseTest, EveryChangedByteIsHandled) {
  const std::string bytes = Build(SmallFile());
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (const int change : {0x01, 0x80, 0xff}) {
      std::string changed = bytes;
      changed[i] = static_cast<char>(changed[i] ^ change);
      const auto directory = Parse(AsBytes(changed), "a.gguf");
      for (size_t t = 0; directory.ok() && t < directory->tensors.size(); ++t) {
        const TensorInfo& tensor = directory->tensors[t];
        EXPECT_LE(tensor.offset + tensor.n_bytes, bytes.size()) << i;
      }
    }
  }
}

TEST(GgufParseTest, RefusesOtherFormats) {
  EXPECT_EQ(ErrorOf(""), "a.gguf, byte 0: 0 bytes left for magic, wanted 4");
  EXPECT_EQ(ErrorOf("lmggxxxxxxxx"),
            "a.gguf: a GGML file, older than GGUF, wanted GGUF version 2 or 3");
  EXPECT_EQ(ErrorOf("fmggxxxxxxxx"),
            "a.gguf: a GGMF file, older than GGUF, wanted GGUF version 2 or 3");
  EXPECT_EQ(ErrorOf("tjggxxxxxxxx"),
            "a.gguf: a GGJT file, older than GGUF, wanted GGUF version 2 or 3");
  EXPECT_EQ(ErrorOf("algg"), "a.gguf: a GGLA file, older than GGUF, wanted GGUF version 2 or 3");
  EXPECT_EQ(ErrorOf(std::string("PK\3\4", 4)), "a.gguf: magic \"PK\\x03\\x04\", wanted \"GGUF\"");
  EXPECT_EQ(ErrorOf(Build({}, 1)), "a.gguf: GGUF version 1, wanted version 2 or 3");
  EXPECT_EQ(ErrorOf(Build({}, 0)), "a.gguf: GGUF version 0, wanted version 2 or 3");
  EXPECT_EQ(ErrorOf(Build({}, 4)), "a.gguf: GGUF version 4, wanted version 2 or 3");
  EXPECT_EQ(ErrorOf(Build({}, 0x03000000)),
            "a.gguf: a big-endian GGUF file, wanted a little-endian one");
}

TEST(GgufParseTest, RefusesCountsThatTheFileCannotHold) {
  EXPECT_EQ(
      ErrorOf(Build({.n_tensors = kHuge})),
      "a.gguf: tensor count 9223372036854775808, wanted at most 0, which fit in the 8 bytes left");
  EXPECT_EQ(
      ErrorOf(Build(
          {.entries = {Entry("key", ValueType::kUint32, Pack(uint32_t{1}))}, .n_entries = kHuge})),
      "a.gguf: key count 9223372036854775808, wanted at most 1, which fit in the 19 bytes left");
  EXPECT_EQ(EntryError(Pack(kHuge)),
            "a.gguf: key count 1, wanted at most 0, which fit in the 8 bytes left");
  EXPECT_EQ(EntryError(Pack(kHuge) + std::string(6, 'x')),
            "a.gguf, byte 24: a key of 9223372036854775808 bytes, wanted at most 67108864");
  EXPECT_EQ(EntryError(Entry("k", ValueType::kString, Pack(kHuge))),
            "a.gguf, byte 37: a string of 9223372036854775808 bytes, wanted at most 67108864");
  EXPECT_EQ(EntryError(Entry("k", ValueType::kString, Pack(uint64_t{67108865}))),
            "a.gguf, byte 37: a string of 67108865 bytes, wanted at most 67108864");
  EXPECT_EQ(EntryError(Entry("k", ValueType::kString, Pack(uint64_t{67108864}))),
            "a.gguf, byte 45: 0 bytes left for a string, wanted 67108864");
  EXPECT_EQ(EntryError(ArrayEntry("k", 4, kHuge, "xxxxyyyy")),
            "a.gguf, key \"k\": array of 9223372036854775808 uint32 values, wanted at most 2, "
            "which fit in the 8 "
            "bytes left");
  EXPECT_EQ(EntryError(ArrayEntry("k", 8, 2, Text("abcdef"))),
            "a.gguf, key \"k\": array of 2 string values, wanted at most 1, which fit in the 14 "
            "bytes left");
  EXPECT_EQ(EntryError(ArrayEntry("k", 8, 1, Pack(kHuge))),
            "a.gguf, byte 49: a string of 9223372036854775808 bytes, wanted at most 67108864");
  // The product with the element size would be 0 in 64 bits.
  EXPECT_EQ(EntryError(ArrayEntry("k", 10, uint64_t{1} << 61, "")),
            "a.gguf, key \"k\": array of 2305843009213693952 uint64 values, wanted at most 0, "
            "which fit in the 0 "
            "bytes left");
  const std::string large =
      ArrayEntry("k", 7, kMaxArrayElements, std::string(kMaxArrayElements, '\1'));
  EXPECT_EQ(EntryError(large), "no error");
  EXPECT_EQ(ErrorOf(Build({.entries = {large, ArrayEntry("l", 7, 1, Pack(uint8_t{1}))}})),
            "a.gguf, key \"l\": array of 1 elements after 16777216, wanted at most 16777216 in all "
            "arrays");
}

TEST(GgufParseTest, RefusesBrokenMetadata) {
  EXPECT_EQ(EntryError(Entry("", ValueType::kUint32, Pack(uint32_t{1}))),
            "a.gguf: key of 0 bytes, wanted 1 to 65535");
  EXPECT_EQ(EntryError(Entry("a\xffz", ValueType::kUint32, Pack(uint32_t{1}))),
            "a.gguf: key \"a\xef\xbf\xbdz\", wanted valid UTF-8");
  EXPECT_EQ(EntryError(Entry("k", static_cast<ValueType>(13), "x")),
            "a.gguf, key \"k\": value type 13, wanted 0 to 12");
  EXPECT_EQ(EntryError(ArrayEntry("k", 4294967295u, 0, "")),
            "a.gguf, key \"k\": element type 4294967295, wanted 0 to 12");
  EXPECT_EQ(EntryError(ArrayEntry("k", 9, 1, Pack(uint32_t{4}, uint64_t{0}))),
            "a.gguf, key \"k\": an array of arrays, wanted an array of plain values");
  EXPECT_EQ(EntryError(Entry("k", ValueType::kBool, Pack(uint8_t{2}))),
            "a.gguf, key \"k\": bool 2, wanted 0 or 1");
  EXPECT_EQ(EntryError(ArrayEntry("k", 7, 2, Pack(uint8_t{1}, uint8_t{255}))),
            "a.gguf, key \"k\": bool 255, wanted 0 or 1");
  EXPECT_EQ(EntryError(Entry("k", ValueType::kUint64, Pack(uint32_t{1}))),
            "a.gguf, byte 37: 4 bytes left for uint64, wanted 8");
  const std::string entry = Entry("twice", ValueType::kUint8, Pack(uint8_t{1}));
  EXPECT_EQ(ErrorOf(Build({.entries = {entry, Entry("k", ValueType::kUint8, "x"), entry}})),
            "a.gguf: key \"twice\" twice, wanted each key once");
  EXPECT_EQ(EntryError(Entry("general.alignment", ValueType::kUint32, Pack(uint32_t{48}))),
            "a.gguf, key \"general.alignment\": 48, wanted a power of two from 8 to 65536");
  EXPECT_EQ(EntryError(Entry("general.alignment", ValueType::kUint64, Pack(uint64_t{32}))),
            "a.gguf, key \"general.alignment\": type uint64, wanted uint32");
}

TEST(GgufParseTest, RefusesBrokenTensors) {
  EXPECT_EQ(TensorError({Tensor("t", {}, 0, 0)}),
            "a.gguf, tensor \"t\": 0 dimensions, wanted 1 to 4");
  EXPECT_EQ(TensorError({Tensor("t", {1, 1, 1, 1, 1}, 0, 0)}),
            "a.gguf, tensor \"t\": 5 dimensions, wanted 1 to 4");
  EXPECT_EQ(TensorError({Tensor("t", {4, 0}, 0, 0)}),
            "a.gguf, tensor \"t\": shape [0, 4], wanted dimensions of 1 or more");
  EXPECT_EQ(TensorError({Tensor("t", {UINT64_MAX}, 0, 0)}),
            "a.gguf, tensor \"t\": shape [-1], wanted dimensions of 1 or more");
  EXPECT_EQ(TensorError({Tensor("t", {uint64_t{1} << 32, uint64_t{1} << 32}, 0, 0)}),
            "a.gguf, tensor \"t\": shape [4294967296, 4294967296], wanted at most 2^60 elements");
  EXPECT_EQ(TensorError({Tensor("t", {33}, 2, 0)}),
            "a.gguf, tensor \"t\": rows of 33 elements of Q4_0, wanted a multiple of 32");
  EXPECT_EQ(TensorError({Tensor("t", {4}, 5, 0)}),
            "a.gguf, tensor \"t\": tensor type 5, wanted a known one");
  EXPECT_EQ(TensorError({Tensor("t", {4}, 99, 0)}),
            "a.gguf, tensor \"t\": tensor type 99, wanted a known one");
  EXPECT_EQ(TensorError({Tensor("", {4}, 0, 0)}), "a.gguf: tensor name of 0 bytes, wanted 1 to 64");
  EXPECT_EQ(TensorError({Tensor(std::string(65, 'n'), {4}, 0, 0)}),
            "a.gguf: tensor name of 65 bytes, wanted 1 to 64");
  EXPECT_EQ(TensorError({Tensor("\xc0", {4}, 0, 0)}),
            "a.gguf: tensor name \"\xef\xbf\xbd\", wanted valid UTF-8");
  EXPECT_EQ(TensorError({Tensor("t", {1}, 0, 0), Tensor("t", {1}, 0, 32)}),
            "a.gguf: tensor \"t\" twice, wanted each name once");
}

TEST(GgufParseTest, RefusesBadPlaces) {
  EXPECT_EQ(TensorError({Tensor("t", {1}, 0, 4)}),
            "a.gguf, tensor \"t\": data offset 4, wanted a multiple of 32");
  EXPECT_EQ(
      TensorError({Tensor("t", {17}, 0, 0)}),
      "a.gguf, tensor \"t\": 68 bytes at data offset 0, wanted data within the 64 bytes there are");
  EXPECT_EQ(TensorError({Tensor("t", {9}, 0, 32)}),
            "a.gguf, tensor \"t\": 36 bytes at data offset 32, wanted data within the 64 bytes "
            "there are");
  // Offset and size would wrap around to a place inside the file.
  EXPECT_EQ(TensorError({Tensor("t", {16}, 0, UINT64_MAX - 31)}),
            "a.gguf, tensor \"t\": 64 bytes at data offset 18446744073709551584, wanted data "
            "within the 64 bytes "
            "there are");
  EXPECT_EQ(TensorError({Tensor("t", {uint64_t{1} << 60}, 28, 0)}),
            "a.gguf, tensor \"t\": 9223372036854775808 bytes at data offset 0, wanted data within "
            "the 64 bytes there "
            "are");
  EXPECT_EQ(
      ErrorOf(Build({.tensors = {Tensor("t", {1}, 0, 0)}})),
      "a.gguf, tensor \"t\": 4 bytes at data offset 0, wanted data within the 0 bytes there are");
  EXPECT_EQ(
      TensorError({Tensor("b", {8}, 0, 32), Tensor("a", {9}, 0, 0)}),
      "a.gguf, tensor \"b\": data at byte 128, wanted byte 132 or later, where tensor \"a\" ends");
  EXPECT_EQ(
      TensorError({Tensor("a", {8}, 0, 32), Tensor("b", {8}, 0, 32)}),
      "a.gguf, tensor \"b\": data at byte 128, wanted byte 160 or later, where tensor \"a\" ends");
}

TEST(GgufParseTest, ManyNamesAreReadInAMoment) {
  // A quadratic search would take minutes.
  Parts parts;
  for (int i = 0; i < 200000; ++i) {
    parts.entries.push_back(Entry("key" + std::to_string(i), ValueType::kUint8, "x"));
    parts.tensors.push_back(Tensor("t" + std::to_string(i), {1}, 0, static_cast<uint64_t>(i) * 32));
  }
  parts.data_bytes = parts.tensors.size() * 32;
  EXPECT_EQ(ErrorOf(Build(parts)), "no error");
}

}  // namespace
}  // namespace facet::gguf
