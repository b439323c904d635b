// SPDX-License-Identifier: Apache-2.0
#include "app/fingerprint.h"

#include <gtest/gtest.h>

#include <set>

#include "app/embedded_model.h"
#include "support/testing.h"

namespace facet {
namespace {

TEST(Fingerprint, ChangesWithAllThatChangesNumbers) {
  const auto embedded = Checkpoint::FromGgufBytes(EmbeddedModel(), "embedded model");
  const auto again = Checkpoint::Open(testing::SourcePath("models/tiny/facet-tiny.gguf"));
  const auto other = Checkpoint::Open(testing::TestdataPath("tiny-gguf/facet-tiny-q8_0.gguf"));
  ASSERT_TRUE(embedded.ok() && again.ok() && other.ok());
  RunnerOptions options;
  options.isa = Isa::kScalar;
  const std::string first = Fingerprint(*embedded, options);
  EXPECT_EQ(first.size(), 64U);
  EXPECT_EQ(Fingerprint(*again, options), first) << "the same model from elsewhere";
  std::set<std::string> seen = {first, Fingerprint(*other, options)};
  options.kv_type = KvType::kF32;
  seen.insert(Fingerprint(*embedded, options));
  options.isa = Isa::kAvx2;
  seen.insert(Fingerprint(*embedded, options));
  EXPECT_EQ(seen.size(), 4U);
  options.n_threads = 7;
  options.n_context = 99;
  seen.insert(Fingerprint(*embedded, options));
  EXPECT_EQ(seen.size(), 4U) << "these change nothing";
}

TEST(Fingerprint, SeesOneByteOfASample) {
  std::string bytes(reinterpret_cast<const char*>(EmbeddedModel().data()), EmbeddedModel().size());
  const auto fingerprint = [&bytes] {
    const auto checkpoint =
        Checkpoint::FromGgufBytes(std::as_bytes(std::span<const char>(bytes)), "bytes");
    return checkpoint.ok() ? Fingerprint(*checkpoint, {.isa = Isa::kScalar}) : std::string();
  };
  const std::string before = fingerprint();
  const auto checkpoint =
      Checkpoint::FromGgufBytes(std::as_bytes(std::span<const char>(bytes)), "bytes");
  ASSERT_TRUE(checkpoint.ok());
  const std::byte* first = checkpoint->tensors().back().data.data();
  bytes[static_cast<size_t>(reinterpret_cast<const char*>(first) - bytes.data())] ^= 1;
  EXPECT_NE(fingerprint(), before);
}

}  // namespace
}  // namespace facet
