// SPDX-License-Identifier: Apache-2.0
#include "model/tensor_binder.h"

#include <gtest/gtest.h>

namespace facet {
namespace {

TEST(TensorBinder, VectorsAreNotQuantised) {
  const CheckpointTensor tensor{
      .name = "norm", .source_name = "norm", .type = TensorType::kQ8_0, .shape = {32}, .data = {}};
  TensorBinder binder("model", [&tensor](std::string_view) { return &tensor; });
  std::vector<float> values;
  binder.Vector("norm", 32, &values);
  ASSERT_FALSE(binder.status().ok());
  EXPECT_EQ(binder.status().error().Message(),
            "model, tensor norm: type Q8_0, wanted F32, F16 or BF16");
}

}  // namespace
}  // namespace facet
