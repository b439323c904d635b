// SPDX-License-Identifier: Apache-2.0
// Any bytes give an error, or tensors that lie in the bytes and cover all that follows the header
// exactly once.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/check.h"
#include "format/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto tensors = facet::safetensors::Parse(bytes, "fuzz");
  if (!tensors.ok()) {
    FACET_CHECK(!tensors.error().Message().empty());
    return 0;
  }
  uint64_t header_size = 0;
  std::memcpy(&header_size, data, sizeof header_size);
  size_t covered = 0;
  for (const auto& tensor : *tensors) {
    FACET_CHECK(tensor.data.data() >= bytes.data() && tensor.data.size() <= size);
    FACET_CHECK(static_cast<size_t>(tensor.data.data() - bytes.data()) <=
                size - tensor.data.size());
    covered += tensor.data.size();
  }
  FACET_CHECK(covered == size - sizeof header_size - header_size);
  return 0;
}
