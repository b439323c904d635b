// SPDX-License-Identifier: Apache-2.0
#include "app/embedded_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

#include "support/testing.h"

namespace facet {
namespace {

void ExpectIsFile(std::span<const std::byte> bytes, const std::string& path) {
  const std::string file = testing::ReadOrDie(testing::SourcePath(path));
  ASSERT_EQ(bytes.size(), file.size());
  EXPECT_TRUE(std::equal(file.begin(), file.end(), reinterpret_cast<const char*>(bytes.data())));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(bytes.data()) % 64, 0U);
}

TEST(EmbeddedModel, IsTheFileOfTheTree) {
  ExpectIsFile(EmbeddedModel(), "models/tiny/facet-tiny.gguf");
}

TEST(EmbeddedProjector, IsTheFileOfTheTree) {
  ExpectIsFile(EmbeddedProjector(), "models/tiny/mmproj-facet-tiny.gguf");
}

TEST(EmbeddedDrafter, IsTheFileOfTheTree) {
  ExpectIsFile(EmbeddedDrafter(), "models/tiny/facet-tiny-drafter.gguf");
}

}  // namespace
}  // namespace facet
