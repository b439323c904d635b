// SPDX-License-Identifier: Apache-2.0
#include "base/page_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace facet {
namespace {

TEST(PageMemory, IsZeroedAlignedAndWritable) {
  for (const size_t n_bytes : {size_t{1}, size_t{4096}, PageMemory::kAlignment + 1}) {
    const Result<PageMemory> memory = PageMemory::Allocate(n_bytes, "test");
    ASSERT_TRUE(memory.ok());
    EXPECT_GE(memory->size(), n_bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory->data()) % PageMemory::kAlignment, 0u);
    const std::byte* end = memory->data() + memory->size();
    EXPECT_TRUE(std::all_of(static_cast<const std::byte*>(memory->data()), end,
                            [](std::byte b) { return b == std::byte{0}; }));
    memory->data()[n_bytes - 1] = std::byte{7};
    EXPECT_EQ(memory->data()[n_bytes - 1], std::byte{7});
  }
}

TEST(PageMemory, NothingTakesNothing) {
  const Result<PageMemory> memory = PageMemory::Allocate(0, "test");
  ASSERT_TRUE(memory.ok());
  EXPECT_EQ(memory->data(), nullptr);
  EXPECT_EQ(memory->size(), 0u);
}

TEST(PageMemory, MovesKeepTheAddress) {
  PageMemory first = *PageMemory::Allocate(10, "test");
  std::byte* address = first.data();
  PageMemory second(std::move(first));
  EXPECT_EQ(second.data(), address);
  PageMemory third = *PageMemory::Allocate(20, "test");
  third = std::move(second);
  EXPECT_EQ(third.data(), address);
}

TEST(PageMemory, RefusesWhatTheSystemHasNot) {
  EXPECT_EQ(PageMemory::Allocate(size_t{1} << 60, "packed weights").error().Message(),
            "packed weights: no memory for 1152921504606846976 bytes: Cannot allocate memory");
  EXPECT_EQ(PageMemory::Allocate(SIZE_MAX, "packed weights").error().Message(),
            "packed weights: 18446744073709551615 bytes, wanted at most 9223372036854775807");
}

}  // namespace
}  // namespace facet
