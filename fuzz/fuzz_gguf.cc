// SPDX-License-Identifier: Apache-2.0
// Any bytes give an error, or a directory whose tensors all lie in the bytes, aligned and apart
// from each other.
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/check.h"
#include "format/gguf.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto directory = facet::gguf::Parse(bytes, "fuzz");
  const auto file = facet::gguf::File::FromBytes(bytes, "fuzz");
  if (!directory.ok()) {
    FACET_CHECK(!directory.error().Message().empty());
    FACET_CHECK(!file.ok() && file.error().Message() == directory.error().Message());
    return 0;
  }
  uint64_t n_bytes = 0;
  for (const auto& tensor : directory->tensors) {
    FACET_CHECK(tensor.offset % directory->alignment == 0);
    FACET_CHECK(tensor.offset <= size && tensor.n_bytes <= size - tensor.offset);
    FACET_CHECK(!file.ok() || file->Find(tensor.name)->data.data() == bytes.data() + tensor.offset);
    n_bytes += tensor.n_bytes;
  }
  FACET_CHECK(n_bytes <= size);
  for (const auto& [key, value] : directory->metadata.entries()) {
    FACET_CHECK(directory->metadata.Find(key) == &value);
    FACET_CHECK(value.array_size() == 0 ||
                (value.is_array() && !value.IntAt(value.array_size()).has_value()));
  }
  return 0;
}
