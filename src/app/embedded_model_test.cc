// SPDX-License-Identifier: Apache-2.0
#include "app/embedded_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

#include "support/testing.h"

namespace facet {
namespace {

TEST(EmbeddedModel, IsTheFileOfTheTree) {
  const std::string file = testing::ReadOrDie(testing::SourcePath("models/tiny/facet-tiny.gguf"));
  ASSERT_EQ(EmbeddedModel().size(), file.size());
  EXPECT_TRUE(
      std::equal(file.begin(), file.end(), reinterpret_cast<const char*>(EmbeddedModel().data())));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(EmbeddedModel().data()) % 64, 0U);
}

}  // namespace
}  // namespace facet
