// SPDX-License-Identifier: Apache-2.0
#include "app/inspection.h"

#include <gtest/gtest.h>

#include "app/inspection_text.h"

namespace facet {
namespace {

TEST(Inspect, TellsTheLayersOfTheEmbeddedModel) {
  ::testing::internal::CaptureStderr();
  const auto model = LoadedModel::Load("");
  ::testing::internal::GetCapturedStderr();
  ASSERT_TRUE(model.ok()) << model.error().Message();
  const auto source = InspectionSource::Open("");
  ASSERT_TRUE(source.ok()) << source.error().Message();
  Json inspection = Inspect(*source);
  AddModel(**model, &inspection);
  EXPECT_EQ(inspection["model"]["vocabulary"].as_int(), 2048);
  EXPECT_EQ(inspection["model"]["parameters"].as_int(), 2964490);
  ASSERT_EQ(inspection["layers"].items().size(), 10U);
  const Json& last = inspection["layers"].items()[9];
  EXPECT_EQ(last["kind"].as_string(), "full");
  EXPECT_EQ(last["kv_layer"].as_int(), 4);
  EXPECT_EQ(last["head_size"].as_int(), 64);
  ASSERT_EQ(inspection["kv_memory"].items().size(), 1U);
  const Json& row = inspection["kv_memory"].items()[0];
  EXPECT_EQ(row["context"].as_int(), 4096);
  EXPECT_EQ(row["f32"].as_int(), 2 * row["f16"].as_int());
  const std::string text = ShowInspection(inspection);
  for (const std::string_view wanted :
       {"2,964,490", "of layer 4", "16 <turn|>", "Memory for keys and values"}) {
    EXPECT_NE(text.find(wanted), std::string::npos) << wanted << "\n" << text;
  }
}

}  // namespace
}  // namespace facet
