// SPDX-License-Identifier: Apache-2.0
// The embedded model end to end: messages through its template, tokenizer, engine and sampler to
// the reference's greedy text (testdata/tiny-hf/goldens.json, made by transformers in float32).
// Also through the file that llama.cpp's converter made, and through the Hugging Face directory.
// Tolerance on first logits: 5e-4 for bfloat16 weights.
#include <gtest/gtest.h>

#include <cmath>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>

#include "chat/chat_template.h"
#include "chat/prompt.h"
#include "engine/engine.h"
#include "format/safetensors.h"
#include "model/model.h"
#include "support/testing.h"
#include "text/tokenizer.h"
#include "text/vocab.h"
#include "tiny/driver.h"

namespace facet::testing {
namespace {

std::vector<int32_t> Ints(const Json& json) {
  std::vector<int32_t> out;
  for (const Json& item : json.items()) {
    out.push_back(static_cast<int32_t>(item.as_int()));
  }
  return out;
}

std::vector<Json> TextCases() {
  std::vector<Json> cases;
  const Json goldens = JsonOrDie(TestdataPath("tiny-hf/goldens.json"));
  for (const Json& one : goldens["cases"].items()) {
    if (one["name"].as_string().rfind("text", 0) == 0) {
      cases.push_back(one);
    }
  }
  return cases;
}

Vocab VocabOf(const Checkpoint& checkpoint) {
  auto vocab =
      checkpoint.gguf_metadata() != nullptr
          ? Vocab::FromGguf(*checkpoint.gguf_metadata(), checkpoint.path())
          : Vocab::FromTokenizerJson(checkpoint.tokenizer_json(),
                                     checkpoint.tokenizer_config_json(), checkpoint.path());
  FACET_CHECK(vocab.ok());
  return *std::move(vocab);
}

/// Runs requests through the engine and waits for all of them.
class Answers {
 public:
  void Take(const Event& event) {
    const std::lock_guard lock(mutex_);
    if (event.kind == Event::Kind::kToken) {
      tokens_[event.request_id].push_back(event.token);
    } else {
      if (event.token >= 0) {
        tokens_[event.request_id].push_back(event.token);
      }
      ++n_finished_;
      changed_.notify_all();
    }
  }
  void WaitFor(size_t n) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return n_finished_ >= n; });
  }
  std::vector<int32_t> operator[](uint64_t id) { return tokens_[id]; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<uint64_t, std::vector<int32_t>> tokens_;
  size_t n_finished_ = 0;
};

class FacetTiny : public ::testing::TestWithParam<std::string> {};

TEST_P(FacetTiny, AnswersEveryTextGolden) {
  const Checkpoint checkpoint = OpenOrDie(SourcePath(GetParam()));
  const Vocab vocab = VocabOf(checkpoint);
  const Tokenizer tokenizer(&vocab);
  const auto chat = ChatTemplate::Load(checkpoint.chat_template(), "template",
                                       std::string(vocab.text(vocab.bos_id())),
                                       std::string(vocab.text(vocab.eos_id())));
  ASSERT_TRUE(chat.ok()) << chat.error().Message();
  RunnerOptions options;
  options.n_context = 1024;
  options.n_sequences = 8;
  options.n_threads = 2;
  auto runner = MakeRunner(checkpoint, options);
  ASSERT_TRUE(runner.ok()) << runner.error().Message();
  Answers answers;
  EngineOptions engine_options;
  engine_options.max_rows_beside = 16;
  engine_options.token_bytes = [&vocab](int32_t id) { return vocab.bytes(id); };
  Engine engine(*std::move(runner), engine_options);
  const std::vector<Json> cases = TextCases();
  ASSERT_EQ(cases.size(), 47U);
  for (size_t i = 0; i < cases.size(); ++i) {
    const Json& one = cases[i];
    ChatRequest chat_request;
    chat_request.messages = one["messages"];
    chat_request.tools = one["tools"];
    chat_request.thinking = one["thinking"].as_bool();
    const auto prompt = chat->Render(chat_request);
    ASSERT_TRUE(prompt.ok()) << prompt.error().Message();
    const std::vector<int> ids = TokenizePrompt(tokenizer, vocab, *prompt);
    ASSERT_EQ(ids, Ints(one["ids"])) << one["name"].as_string();
    Request request;
    request.id = i;
    request.prompt = ids;
    request.sampling.temperature = 0;
    request.max_tokens = static_cast<int>(one["output_ids"].items().size());
    request.end_tokens = {vocab.end_ids().begin(), vocab.end_ids().end()};
    const Status status =
        engine.Submit(request, [&answers](const Event& event) { answers.Take(event); });
    ASSERT_TRUE(status.ok()) << status.error().Message();
  }
  answers.WaitFor(cases.size());
  for (size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(answers[i], Ints(cases[i]["output_ids"])) << cases[i]["name"].as_string();
  }
}

INSTANTIATE_TEST_SUITE_P(Files, FacetTiny,
                         ::testing::Values("models/tiny/facet-tiny.gguf",
                                           "testdata/tiny-gguf/facet-tiny-q8_0.gguf",
                                           "testdata/tiny-hf"),
                         [](const auto& param) {
                           std::string name = param.param;
                           for (char& c : name) {
                             c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
                           }
                           return name;
                         });

TEST(FacetTinyLogits, OfTheFirstTokenAgree) {
  const Checkpoint checkpoint = OpenOrDie(SourcePath("models/tiny/facet-tiny.gguf"));
  const auto goldens = safetensors::File::Open(TestdataPath("tiny-hf/goldens.safetensors"));
  ASSERT_TRUE(goldens.ok());
  int n_compared = 0;
  for (const Json& one : TextCases()) {
    const auto* view = goldens->Find(one["name"].as_string() + ".logits");
    if (view == nullptr) {
      continue;
    }
    Driver driver(checkpoint, {BestIsa(), 1, KvType::kF32, 1024});
    const int s = driver.Add(Ints(one["ids"]));
    const std::vector<float> logits = driver.Run({{s, driver.n_left(s), false}}).back();
    ASSERT_EQ(view->data.size(), logits.size() * sizeof(float));
    for (size_t i = 0; i < logits.size(); ++i) {
      float golden = 0;
      std::memcpy(&golden, view->data.data() + i * sizeof golden, sizeof golden);
      ASSERT_NEAR(logits[i], golden, 5e-4) << one["name"].as_string() << " token " << i;
    }
    ++n_compared;
  }
  EXPECT_EQ(n_compared, 8);
}

}  // namespace
}  // namespace facet::testing
