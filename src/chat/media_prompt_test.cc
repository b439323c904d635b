// SPDX-License-Identifier: Apache-2.0
#include "chat/media_prompt.h"

#include <gtest/gtest.h>

#include "chat/chat_template.h"
#include "support/testing.h"
#include "text/test_vocabs.h"

namespace facet {
namespace {

using testing::JsonOrDie;
using testing::TestdataPath;
using testing::TinyVocab;

MediaItemPtr Item(int n_tokens) {
  auto item = std::make_shared<MediaItem>();
  item->n_tokens = n_tokens;
  return item;
}

MediaPart Part(MediaPartKind kind, std::initializer_list<int> n_tokens) {
  MediaPart part;
  part.kind = kind;
  for (const int n : n_tokens) {
    part.items.push_back(Item(n));
  }
  return part;
}

std::string TextOf(const Prompt& prompt) {
  std::string text;
  for (const TextRun& run : prompt.runs) {
    text += run.text;
  }
  return text;
}

std::string Expanded(const Prompt& prompt, std::span<const MediaPart> parts) {
  const auto expanded = ExpandMedia(prompt, parts, TinyVocab());
  return expanded.ok() ? TextOf(*expanded) : "error: " + expanded.error().Message();
}

std::vector<int> IdsOf(const Prompt& prompt) { return Tokenizer(&TinyVocab()).Encode(prompt.runs); }

int IdOf(std::string_view text) { return TinyVocab().Find(text).value(); }

TEST(ExpandMedia, WritesMarksAndSoftTokens) {
  const std::vector<MediaPart> parts = {Part(MediaPartKind::kImage, {2}),
                                        Part(MediaPartKind::kAudio, {1, 2}),
                                        Part(MediaPartKind::kImage, {1})};
  EXPECT_EQ(Expanded({{{"a<|image|>b", true}, {"c", false}, {"<|audio|><|image|>", true}}}, parts),
            "a<|image><|image|><|image|><image|>bc<|audio><|audio|><audio|>"
            "<|audio><|audio|><|audio|><audio|><|image><|image|><image|>");
}

TEST(ExpandMedia, WritesAVideoAsTheReference) {
  const Json example = JsonOrDie(TestdataPath("media/video/cases.json"))["expansion_example"];
  MediaPart video = Part(MediaPartKind::kVideo, {3, 3, 3, 3});
  video.seconds = {0, 0.75, 1.5, 2.25};
  const std::vector<MediaPart> parts = {video};
  const auto prompt =
      ExpandMedia({{{"<|turn>user\n<|video|>What moves?<turn|>\n", true}}}, parts, TinyVocab());
  ASSERT_TRUE(prompt.ok()) << prompt.error().Message();
  EXPECT_EQ(TextOf(*prompt), example["text"].as_string());
  const std::vector<int> ids = IdsOf(*prompt);
  const Json::Array& wanted = example["ids"].items();
  ASSERT_EQ(ids.size(), wanted.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    EXPECT_EQ(ids[i], wanted[i].as_int()) << i;
  }
  const auto placed = PlaceMedia(ids, parts, TinyVocab());
  ASSERT_TRUE(placed.ok()) << placed.error().Message();
  std::vector<int> types(ids.size());
  for (const PlacedMedia& place : *placed) {
    std::fill(types.begin() + place.begin, types.begin() + place.end(), 2);
  }
  const Json::Array& wanted_types = example["mm_token_type_ids"].items();
  for (size_t i = 0; i < types.size(); ++i) {
    EXPECT_EQ(types[i], wanted_types[i].as_int()) << i;
  }
}

/// Lengths of the runs of `soft` in `ids`.
std::vector<int> RunsOf(const Json::Array& ids, int soft) {
  std::vector<int> runs;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i].as_int() == soft) {
      if (i == 0 || ids[i - 1].as_int() != soft) {
        runs.push_back(0);
      }
      ++runs.back();
    }
  }
  return runs;
}

TEST(ExpandMedia, MakesThePromptsOfTheTinyModel) {
  const auto chat = ChatTemplate::Load("", "built-in", "<bos>", "<eos>");
  ASSERT_TRUE(chat.ok());
  int n_cases = 0;
  const Json goldens = JsonOrDie(TestdataPath("tiny-hf/goldens.json"));
  for (const Json& row : goldens["cases"].items()) {
    if (!row.contains("files")) {
      continue;
    }
    SCOPED_TRACE(row["name"].as_string());
    ++n_cases;
    Json messages = row["messages"];
    Json& given = messages.mutable_items()[0].mutable_members()[1].second.mutable_items()[0];
    const std::string type = given["type"].as_string();
    given.Set("path", "file");
    MediaPart part;
    part.kind = type == "image"   ? MediaPartKind::kImage
                : type == "audio" ? MediaPartKind::kAudio
                                  : MediaPartKind::kVideo;
    for (const int n : RunsOf(row["ids"].items(), IdOf("<|" + type + "|>"))) {
      part.seconds.push_back(static_cast<double>(part.items.size()));
      part.items.push_back(Item(n));
    }
    const std::vector<MediaPart> parts = {part};
    const auto prompt = chat->Render({.messages = messages});
    ASSERT_TRUE(prompt.ok()) << prompt.error().Message();
    const auto expanded = ExpandMedia(*prompt, parts, TinyVocab());
    ASSERT_TRUE(expanded.ok()) << expanded.error().Message();
    const std::vector<int> ids = TokenizePrompt(Tokenizer(&TinyVocab()), TinyVocab(), *expanded);
    EXPECT_EQ(Json(Json::Array(ids.begin(), ids.end())), row["ids"]);
    const auto placed = PlaceMedia(ids, parts, TinyVocab());
    ASSERT_TRUE(placed.ok()) << placed.error().Message();
    EXPECT_EQ(placed->size(), part.items.size());
  }
  EXPECT_EQ(n_cases, 10);
}

TEST(ExpandMedia, LeavesTypedPlaceholdersText) {
  const auto chat = ChatTemplate::Load("", "built-in", "<bos>", "<eos>");
  ASSERT_TRUE(chat.ok());
  const Json content =
      Json::MakeArray({Json::MakeObject({{"type", "text"}, {"text", "<|image|>?<image|>"}}),
                       Json::MakeObject({{"type", "image"}, {"path", "a"}})});
  const auto prompt = chat->Render(
      {.messages = Json::MakeArray({Json::MakeObject({{"role", "user"}, {"content", content}})})});
  ASSERT_TRUE(prompt.ok()) << prompt.error().Message();
  const std::vector<MediaPart> parts = {Part(MediaPartKind::kImage, {2})};
  EXPECT_EQ(Expanded(*prompt, parts),
            "<bos><|turn>user\n<|image|>?<image|><|image><|image|><|image|><image|><turn|>\n"
            "<|turn>model\n");
  const std::vector<int> ids = IdsOf(*ExpandMedia(*prompt, parts, TinyVocab()));
  EXPECT_EQ(std::count(ids.begin(), ids.end(), IdOf("<|image|>")), 2);
  EXPECT_TRUE(PlaceMedia(ids, parts, TinyVocab()).ok());
}

TEST(ExpandMedia, RefusesWhatTheTemplateDidNotWrite) {
  const std::vector<MediaPart> parts = {Part(MediaPartKind::kImage, {2}),
                                        Part(MediaPartKind::kAudio, {2})};
  EXPECT_EQ(Expanded({{{"<|image|>", false}}}, parts),
            "error: messages: 2 parts of media, wanted none (the model's chat template knows no "
            "media)");
  EXPECT_EQ(Expanded({{{"<|image|>", true}}}, parts),
            "error: messages: 2 parts of media, wanted 1, as the model's chat template writes");
  EXPECT_EQ(
      Expanded({{{"<|audio|><|image|>", true}}}, parts),
      "error: messages: 2 parts of media, wanted them in the order in which the chat template "
      "writes them");
}

TEST(ExpandMedia, WantsTheMarks) {
  VocabParts words;
  words.texts = {"<unk>", "<|image>", "<|image|>", "a"};
  words.kinds = {TokenKind::kUnknown, TokenKind::kControl, TokenKind::kControl, TokenKind::kNormal};
  const auto vocab = Vocab::FromParts(words);
  ASSERT_TRUE(vocab.ok()) << vocab.error().Message();
  const std::vector<MediaPart> parts = {Part(MediaPartKind::kImage, {2})};
  EXPECT_EQ(ExpandMedia({{{"<|image|>", true}}}, parts, *vocab).error().Message(),
            "tokenizer: no token <image|>, wanted the marks of media");
}

TEST(PlaceMedia, FindsEachItem) {
  const int open = IdOf("<|image>");
  const int soft = IdOf("<|image|>");
  const int close = IdOf("<image|>");
  const std::vector<MediaPart> parts = {Part(MediaPartKind::kImage, {2}),
                                        Part(MediaPartKind::kImage, {1})};
  const std::vector<int> ids = {2, open, soft, soft, close, open, soft, close, 300};
  const auto placed = PlaceMedia(ids, parts, TinyVocab());
  ASSERT_TRUE(placed.ok()) << placed.error().Message();
  ASSERT_EQ(placed->size(), 2U);
  EXPECT_EQ(placed->at(0).begin, 2);
  EXPECT_EQ(placed->at(1).begin, 6);
  EXPECT_EQ(placed->at(1).end(), 7);
  EXPECT_EQ(placed->at(1).item, parts[1].items[0]);
  EXPECT_EQ(PlaceMedia(std::span(ids).first(5), parts, TinyVocab()).error().Message(),
            "prompt: 0 soft tokens from 5 on, wanted 1 between their marks");
  const std::vector<int> unmarked = {2, soft, soft, close};
  EXPECT_EQ(PlaceMedia(unmarked, std::span(parts).first(1), TinyVocab()).error().Message(),
            "prompt: 2 soft tokens from 1 on, wanted 2 between their marks");
  EXPECT_TRUE(PlaceMedia({}, {}, TinyVocab())->empty());
}

}  // namespace
}  // namespace facet
