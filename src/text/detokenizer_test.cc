// SPDX-License-Identifier: Apache-2.0
#include "text/detokenizer.h"

#include <gtest/gtest.h>

#include "base/utf8.h"
#include "text/test_vocabs.h"

namespace facet {
namespace {

void CheckStreaming(const Vocab& vocab, const std::string& file) {
  const std::vector<Json> rows = testing::JsonLinesOrDie(testing::TestdataPath(file));
  EXPECT_EQ(rows.size(), 32u);
  for (const Json& row : rows) {
    SCOPED_TRACE(row["id"].as_string());
    const bool skip_special = row["skip_special"].as_bool();
    Detokenizer detokenizer(&vocab, skip_special);
    std::vector<int> ids;
    std::string whole;
    const auto& chunks = row["chunks"].items();
    ASSERT_EQ(chunks.size(), row["ids"].items().size());
    for (size_t i = 0; i < chunks.size(); ++i) {
      ids.push_back(static_cast<int>(row["ids"].items()[i].as_int()));
      EXPECT_EQ(detokenizer.Push(ids.back()), chunks[i].as_string()) << "token " << i;
      whole += chunks[i].as_string();
    }
    EXPECT_EQ(detokenizer.Flush(), row["final"].as_string());
    EXPECT_EQ(Decode(vocab, ids, skip_special), whole + row["final"].as_string());
  }
}

TEST(DetokenizerTest, StreamsAsTheReferenceDoesTiny) {
  CheckStreaming(testing::TinyVocab(), "tokenizer/streaming_tiny.jsonl");
}

TEST(DetokenizerTest, StreamsAsTheReferenceDoesReal) {
  if (testing::RealVocab() == nullptr) {
    GTEST_SKIP() << testing::kNoShared;
  }
  CheckStreaming(*testing::RealVocab(), "tokenizer/streaming.jsonl");
}

TEST(DetokenizerTest, EveryTokenByItselfGivesValidText) {
  const Vocab& vocab = testing::TinyVocab();
  for (int id = 0; id < vocab.size(); ++id) {
    Detokenizer detokenizer(&vocab, false);
    std::string text = detokenizer.Push(id);
    text += detokenizer.Flush();
    EXPECT_TRUE(IsValidUtf8(text)) << id;
    EXPECT_EQ(text, Decode(vocab, {&id, 1}, false));
  }
}

}  // namespace
}  // namespace facet
