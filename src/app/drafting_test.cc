// SPDX-License-Identifier: Apache-2.0
#include "app/drafting.h"

#include <gtest/gtest.h>

#include "app/embedded_model.h"
#include "base/log.h"
#include "support/testing.h"

namespace facet {
namespace {

using testing::TestdataPath;

Result<std::optional<DrafterCheckpoint>> OpenFor(const Options& options) {
  const auto checkpoint = options.model.empty()
                              ? Checkpoint::FromGgufBytes(EmbeddedModel(), "embedded model")
                              : Checkpoint::Open(options.model);
  EXPECT_TRUE(checkpoint.ok());
  return OpenDrafter(options, *checkpoint);
}

TEST(OpenDrafter, TakesTheEmbeddedModelsOwn) {
  const auto drafter = OpenFor({});
  ASSERT_TRUE(drafter.ok()) << drafter.error().Message();
  ASSERT_TRUE(drafter->has_value());
  EXPECT_EQ((*drafter)->path(), "embedded drafter");
}

TEST(OpenDrafter, TakesNoneForAnotherModelUnlessItIsNamed) {
  Options options;
  options.model = TestdataPath("text/dense-keqv");
  const auto none = OpenFor(options);
  ASSERT_TRUE(none.ok());
  EXPECT_FALSE(none->has_value());
  options.draft = TestdataPath("text/dense-keqv-assistant");
  const auto named = OpenFor(options);
  ASSERT_TRUE(named.ok()) << named.error().Message();
  EXPECT_EQ((*named)->path(), options.draft);
}

std::string RefusalOf(const Options& options) {
  const Status status = CheckDrafting(options);
  return status.ok() ? "" : status.error().Message();
}

TEST(CheckDrafting, RefusesMtpWithoutADrafter) {
  Options options;
  options.command = Command::kRun;
  options.spec = SpecMode::kMtp;
  EXPECT_EQ(RefusalOf(options), "") << "the embedded model has one";
  const std::string refusal = "--spec: mtp without a drafter, wanted --draft MODEL, or --spec auto";
  options.model = "m.gguf";
  EXPECT_EQ(RefusalOf(options), refusal);
  options.command = Command::kBench;
  EXPECT_EQ(RefusalOf(options), "") << "not measured";
  options.drafting = true;
  options.model = "";
  options.synth = "e2b";
  EXPECT_EQ(RefusalOf(options), refusal);
  options.draft = "d.gguf";
  EXPECT_EQ(RefusalOf(options), "");
  options.command = Command::kTokenize;
  options.draft = "";
  EXPECT_EQ(RefusalOf(options), "");
}

TEST(CheckDrafting, RefusesANumberOfDrafts) {
  Options options;
  options.command = Command::kServe;
  options.draft = "16";
  EXPECT_EQ(RefusalOf(options),
            "--draft: \"16\", wanted a drafter; --spec-max N is how many tokens it guesses");
  options.spec = SpecMode::kNgram;
  EXPECT_EQ(RefusalOf(options), "") << "not used";
}

TEST(CheckFoundDrafter, TellsWhyItCannotGoWithTheModel) {
  const std::string model = testing::SourcePath("models/tiny/facet-tiny.gguf");
  const std::string other = TestdataPath("text/dense-keqv-assistant");
  EXPECT_EQ(CheckFoundDrafter(other, model).error().Message(),
            other + ": a drafter for width 64, wanted 128, the width of " + model);
  EXPECT_TRUE(
      CheckFoundDrafter(testing::SourcePath("models/tiny/facet-tiny-drafter.gguf"), model).ok());
  EXPECT_TRUE(CheckFoundDrafter(other, "/nothing/here.gguf").ok());
}

TEST(OpenDrafter, TellsWhatTheBenchDoesNotUse) {
  Options options;
  options.command = Command::kBench;
  options.draft = "d.gguf";
  options.spec_max = 3;
  options.spec = SpecMode::kNgram;
  ::testing::internal::CaptureStderr();
  EXPECT_TRUE(OpenFor(options).ok());
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "--draft: not loaded without --drafting\n--spec: not used without --drafting\n"
            "--spec-max: not used without --drafting\n");
}

TEST(OpenDrafter, RefusesOneOfAnotherModel) {
  Options options;
  options.draft = TestdataPath("text/dense-keqv-assistant");
  EXPECT_EQ(OpenFor(options).error().Message(),
            options.draft + ": a drafter for width 64, wanted 128, the width of embedded model");
}

TEST(OpenDrafter, LeavesOneThatIsNotAskedAlone) {
  Options options;
  options.draft = "/nothing/here.gguf";
  for (const SpecMode mode : {SpecMode::kOff, SpecMode::kNgram}) {
    options.spec = mode;
    ::testing::internal::CaptureStderr();
    const auto drafter = OpenFor(options);
    EXPECT_EQ(::testing::internal::GetCapturedStderr(),
              "--draft: not loaded, for --spec is " + std::string(NameOf(mode)) + "\n");
    ASSERT_TRUE(drafter.ok());
    EXPECT_FALSE(drafter->has_value());
  }
}

TEST(SetDrafting, TellsWhyADrafterFailed) {
  Options options;
  options.spec = SpecMode::kNgram;
  options.spec_max = 3;
  int n_steps = 0;
  EngineOptions engine;
  engine.on_step = [&n_steps](const StepReport&) { ++n_steps; };
  SetDrafting(options, &engine);
  EXPECT_EQ(engine.spec, SpecMode::kNgram);
  EXPECT_EQ(engine.max_drafts, 3);
  ::testing::internal::CaptureStderr();
  engine.on_step({});
  StepReport report;
  report.draft_error = "layer 0: no block";
  engine.on_step(report);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "warning: the drafter failed and is not asked any more: layer 0: no block\n");
  EXPECT_EQ(n_steps, 2);
}

TEST(DraftingText, TellsModeBoundAndDrafter) {
  Options options;
  EXPECT_EQ(DraftingText(options, nullptr), "auto, at most 8 tokens at a time, no drafter");
  options.spec = SpecMode::kNgram;
  EXPECT_EQ(DraftingText(options, nullptr), "ngram, at most 8 tokens at a time");
  options.spec = SpecMode::kOff;
  EXPECT_EQ(DraftingText(options, nullptr), "off");
}

}  // namespace
}  // namespace facet
