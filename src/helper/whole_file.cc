// SPDX-License-Identifier: Apache-2.0
#include "helper/whole_file.h"

#include <bit>
#include <cstdint>
#include <optional>

namespace facet::helper {
namespace {

using Bytes = std::span<const std::byte>;

uint64_t BigEndian(Bytes bytes) {
  uint64_t value = 0;
  for (const std::byte byte : bytes) {
    value = value << 8 | std::to_integer<uint64_t>(byte);
  }
  return value;
}

/// The boxes of the file one after the other, each as long as it says.
bool IsIsoMediaCut(Bytes bytes) {
  constexpr size_t kHeader = 8;
  constexpr size_t kLongHeader = 16;
  while (bytes.size() >= kHeader) {
    uint64_t size = BigEndian(bytes.first(4));
    if (size == 0) {
      return false;  // up to the end
    }
    if (size == 1) {
      if (bytes.size() < kLongHeader) {
        return true;
      }
      size = BigEndian(bytes.subspan(kHeader, 8));
    }
    if (size < kHeader) {
      return false;  // no box: damaged in another way
    }
    if (size > bytes.size()) {
      return true;
    }
    bytes = bytes.subspan(static_cast<size_t>(size));
  }
  return false;
}

/// A number of EBML at the beginning, which is taken off; nothing where it means "unknown" or is
/// not all there.
std::optional<uint64_t> TakeEbmlSize(Bytes* bytes) {
  if (bytes->empty()) {
    return std::nullopt;
  }
  const auto first = std::to_integer<uint8_t>(bytes->front());
  const auto n_bytes = static_cast<size_t>(std::countl_zero(first)) + 1;
  if (n_bytes > sizeof(uint64_t) || n_bytes > bytes->size()) {
    return std::nullopt;
  }
  const uint64_t all_ones = (uint64_t{1} << (7 * n_bytes)) - 1;
  const uint64_t size = BigEndian(bytes->first(n_bytes)) & all_ones;
  *bytes = bytes->subspan(n_bytes);
  return size == all_ones ? std::nullopt : std::optional(size);
}

/// The head, then the segment with all the rest.
bool IsMatroskaCut(Bytes bytes) {
  constexpr size_t kId = 4;
  for (int element = 0; element < 2; ++element) {
    if (bytes.size() <= kId) {
      return true;
    }
    bytes = bytes.subspan(kId);
    const auto size = TakeEbmlSize(&bytes);
    if (!size) {
      return false;
    }
    if (*size > bytes.size()) {
      return true;
    }
    bytes = bytes.subspan(static_cast<size_t>(*size));
  }
  return false;
}

bool IsAviCut(Bytes bytes) {
  constexpr size_t kHeader = 8;
  if (bytes.size() < kHeader) {
    return true;
  }
  uint64_t size = 0;
  for (size_t i = 0; i < 4; ++i) {
    size |= std::to_integer<uint64_t>(bytes[4 + i]) << (8 * i);
  }
  return size > bytes.size() - kHeader;
}

/// The last byte but zeros is the trailer.
bool IsGifCut(Bytes bytes) {
  constexpr std::byte kTrailer{0x3B};
  while (!bytes.empty() && bytes.back() == std::byte{0}) {
    bytes = bytes.first(bytes.size() - 1);
  }
  return bytes.empty() || bytes.back() != kTrailer;
}

bool IsCut(Bytes bytes, Container container) {
  switch (container) {
    case Container::kIsoMedia:
      return IsIsoMediaCut(bytes);
    case Container::kMatroska:
      return IsMatroskaCut(bytes);
    case Container::kAvi:
      return IsAviCut(bytes);
    case Container::kGif:
      return IsGifCut(bytes);
    case Container::kAdts:
      break;
  }
  return false;
}

}  // namespace

Status CheckWholeFile(Bytes bytes, Container container) {
  return IsCut(bytes, container) ? Refuse("", "a file that ends too early", "a whole file")
                                 : Status();
}

}  // namespace facet::helper
