// SPDX-License-Identifier: Apache-2.0
#include "chat/media_reader.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "chat/messages.h"
#include "support/testing.h"

namespace facet {
namespace {

using testing::JsonOrDie;
using testing::ReadOrDie;
using testing::TestdataPath;

constexpr std::string_view kPicture = "media/images/source/baseline_420.jpg";
constexpr int64_t kPicturePixels = int64_t{320} * 240;
constexpr std::string_view kMovingSound = "media/audio/files/aac_44k_stereo.m4a";
constexpr std::string_view kSound = "media/audio/files/s16_16k_mono.wav";

std::string Base64(std::string_view bytes) {
  constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t bits = 0;
    for (size_t n = 0; n < 3; ++n) {
      bits = bits << 8 | (i + n < bytes.size() ? static_cast<unsigned char>(bytes[i + n]) : 0U);
    }
    for (size_t n = 0; n < 4; ++n) {
      text += i + n > bytes.size() ? '=' : kAlphabet[bits >> (18 - 6 * n) & 63];
    }
  }
  return text;
}

std::string DataUri(std::string_view file) {
  return "data:x/y;base64," + Base64(ReadOrDie(TestdataPath(file)));
}

Json Picture(std::string url, std::string_view detail = "auto") {
  return Json::MakeObject(
      {{"type", "image_url"},
       {"image_url", Json::MakeObject({{"url", std::move(url)}, {"detail", detail}})}});
}

Json Sound(std::string data) {
  return Json::MakeObject(
      {{"type", "input_audio"},
       {"input_audio", Json::MakeObject({{"data", std::move(data)}, {"format", "mp3"}})}});
}

Json Frames(Json::Array urls) {
  return Json::MakeObject({{"type", "video"}, {"frames", std::move(urls)}, {"fps", 2}});
}

Json Messages(Json::Array parts) {
  return Json::MakeArray({Json::MakeObject({{"role", "user"}, {"content", std::move(parts)}})});
}

MediaSettings Settings() {
  MediaSettings settings;
  settings.traits = {.sees = true, .hears = true};
  return settings;
}

Result<MediaContent> Read(Json::Array parts, const MediaSettings& settings = Settings()) {
  const Json messages = Messages(std::move(parts));
  const Status checked = CheckMessages(messages);
  EXPECT_TRUE(checked.ok()) << checked.error().Message();
  return MediaReader(settings).Read(messages);
}

std::string ErrorOf(Json::Array parts, const MediaSettings& settings = Settings()) {
  const auto content = Read(std::move(parts), settings);
  return content.ok() ? "ok" : content.error().Message();
}

TEST(MediaReader, ReadsPicturesInTheirBudget) {
  const std::string url = DataUri(kPicture);
  const auto content = Read({Picture(url), Picture(url, "low"), Picture(url, "high")});
  ASSERT_TRUE(content.ok()) << content.error().Message();
  ASSERT_EQ(content->parts.size(), 3U);
  constexpr int kMost[] = {280, 70, 1120};
  for (size_t i = 0; i < 3; ++i) {
    ASSERT_EQ(content->parts[i].items.size(), 1U);
    const MediaItem& item = *content->parts[i].items[0];
    EXPECT_EQ(item.kind, MediaKind::kImage);
    EXPECT_LE(item.n_tokens, kMost[i]);
    EXPECT_GT(item.n_tokens, kMost[i] * 3 / 4);
  }
  MediaSettings small = Settings();
  small.image_tokens = 70;
  EXPECT_EQ(Read({Picture(url)}, small)->parts[0].items[0]->hash, content->parts[1].items[0]->hash);
}

TEST(MediaReader, TellsOfPicturesThatWereShrunk) {
  // 1 x 1 pixel grows, and that is no news.
  EXPECT_TRUE(Read({Picture(DataUri("media/images/source/one_pixel.png"))})->notices.empty());
  const auto content = Read({Picture(DataUri("media/images/source/large_palette.png"), "low")});
  ASSERT_TRUE(content.ok()) << content.error().Message();
  const MediaItem& item = *content->parts[0].items[0];
  ASSERT_EQ(content->notices.size(), 1U);
  const std::string end = " pixels, seen as " + std::to_string(item.width) + "x" +
                          std::to_string(item.height) + " in " + std::to_string(item.n_tokens) +
                          " tokens";
  EXPECT_TRUE(content->notices[0].starts_with("messages[0].content[0]: "));
  EXPECT_TRUE(content->notices[0].ends_with(end)) << content->notices[0];
}

TEST(MediaReader, ReadsSoundWhateverItIsCalled) {
  const auto content = Read({Sound(Base64(ReadOrDie(TestdataPath(kSound))))});
  ASSERT_TRUE(content.ok()) << content.error().Message();
  EXPECT_EQ(content->parts[0].kind, MediaPartKind::kAudio);
  EXPECT_EQ(content->parts[0].items[0]->kind, MediaKind::kAudio);
  EXPECT_GT(content->parts[0].items[0]->n_tokens, 0);
}

TEST(MediaReader, ReadsFramesOneByOne) {
  const std::string url = DataUri(kPicture);
  const auto content = Read({Frames({url, url, url})});
  ASSERT_TRUE(content.ok()) << content.error().Message();
  const MediaPart& part = content->parts[0];
  EXPECT_EQ(part.kind, MediaPartKind::kVideo);
  EXPECT_EQ(part.seconds, (std::vector<double>{0, 0.5, 1}));
  ASSERT_EQ(part.items.size(), 3U);
  EXPECT_EQ(part.items[2]->kind, MediaKind::kVideoFrame);
  EXPECT_LE(part.items[2]->n_tokens, kVideoFrameTokens);
}

TEST(MediaReader, MakesTheItemsOfTheTinyModel) {
  MediaSettings settings = Settings();
  settings.image_tokens = 70;
  settings.open = [](const std::string& path) -> Result<std::string> {
    return ReadOrDie(TestdataPath("tiny-hf/media/" + path));
  };
  int n_cases = 0;
  const Json goldens = JsonOrDie(TestdataPath("tiny-hf/goldens.json"));
  for (const Json& row : goldens["cases"].items()) {
    if (!row.contains("files") || row["files"].items().size() != 1) {
      continue;
    }
    SCOPED_TRACE(row["name"].as_string());
    ++n_cases;
    Json part = row["messages"].items()[0]["content"].items()[0];
    part.Set("path", row["files"].items()[0]);
    const auto content = Read({part}, settings);
    ASSERT_TRUE(content.ok()) << content.error().Message();
    const int64_t soft = part["type"].as_string() == "image" ? 19 : 22;
    const Json::Array& ids = row["ids"].items();
    EXPECT_EQ(
        content->parts[0].items[0]->n_tokens,
        std::count_if(ids.begin(), ids.end(), [&](const Json& id) { return id.as_int() == soft; }));
    EXPECT_TRUE(content->notices.empty());
  }
  EXPECT_EQ(n_cases, 9);
}

TEST(MediaReader, SaysWhatAModelLacks) {
  constexpr std::string_view kEnd = " (this model has no encoder for ";
  MediaSettings deaf = Settings();
  deaf.traits.hears = false;
  EXPECT_EQ(ErrorOf({Picture(DataUri(kPicture)), Sound("QUJD")}, deaf),
            "messages[0].content[1].input_audio.data: sound, wanted none" + std::string(kEnd) +
                "sound; give its projector with --mmproj)");
  EXPECT_EQ(ErrorOf({Picture("data:,")}, MediaSettings()),
            "messages[0].content[0].image_url.url: a picture, wanted none" + std::string(kEnd) +
                "pictures; give its projector with --mmproj)");
  EXPECT_EQ(ErrorOf({Frames({"data:,"})}, MediaSettings()),
            "messages[0].content[0].frames[0]: a video, wanted none" + std::string(kEnd) +
                "pictures; give its projector with --mmproj)");
}

TEST(MediaReader, RefusesOtherPlaces) {
  const std::string where = "messages[0].content[0].image_url.url: ";
  EXPECT_EQ(ErrorOf({Picture("file:///etc/passwd")}),
            where + "a URL of another kind, wanted data:, http:// or https://");
  EXPECT_EQ(ErrorOf({Picture("/etc/passwd")}),
            where + "a URL of another kind, wanted data:, http:// or https://");
  EXPECT_EQ(ErrorOf({Picture("https://host/a.png")}),
            where + "a URL of the network, wanted a data URI (or --media-fetch)");
  EXPECT_EQ(ErrorOf({Picture("data:image/png,abc")}),
            where + "a data URI without base64, wanted data:TYPE;base64,DATA");
  EXPECT_EQ(ErrorOf({Picture("data:;base64,")}), where + "no bytes, wanted a file");
  EXPECT_EQ(ErrorOf({Json::MakeObject({{"type", "image"}, {"path", "/etc/passwd"}})}),
            "messages[0].content[0].path: a path, wanted a URL (files are not read here)");
  EXPECT_TRUE(ErrorOf({Picture("data:image/png;base64,QUJD")}).starts_with(where));
}

TEST(MediaReader, FetchesWhereItMay) {
  MediaSettings settings = Settings();
  std::string asked;
  size_t asked_bytes = 0;
  settings.fetch = [&](const std::string& url, const std::string& where,
                       size_t max_bytes) -> Result<std::string> {
    asked = url + " " + where;
    asked_bytes = max_bytes;
    return ReadOrDie(TestdataPath(kPicture));
  };
  EXPECT_EQ(ErrorOf({Picture("HTTPS://host/a.png")}, settings), "ok");
  EXPECT_EQ(asked, "HTTPS://host/a.png messages[0].content[0].image_url.url");
  settings.image_limits.max_bytes = 10;
  EXPECT_TRUE(ErrorOf({Picture("https://host/a.png")}, settings).ends_with("wanted at most 10"));
  EXPECT_EQ(asked_bytes, 10U);
}

TEST(MediaReader, NamesFilesByTheirPaths) {
  MediaSettings settings = Settings();
  settings.open = [](const std::string& path) -> Result<std::string> {
    return path == "a.jpg" ? Result<std::string>(ReadOrDie(TestdataPath(kPicture)))
                           : Result<std::string>(std::string("no picture"));
  };
  const auto part = [](const char* path) {
    return Json::MakeObject({{"type", "image"}, {"path", path}});
  };
  EXPECT_EQ(ErrorOf({part("a.jpg")}, settings), "ok");
  EXPECT_TRUE(ErrorOf({part("b.jpg")}, settings).starts_with("b.jpg: "));
}

TEST(MediaReader, HasLimits) {
  const std::string url = DataUri(kPicture);
  MediaSettings settings = Settings();
  settings.max_items = 2;
  EXPECT_EQ(ErrorOf({Picture(url), Picture(url)}, settings), "ok");
  constexpr std::string_view kItems =
      "messages: more than 2 pictures, frames and windows of sound, wanted fewer in one request";
  EXPECT_EQ(ErrorOf({Picture(url), Picture(url), Picture(url)}, settings), kItems);
  EXPECT_EQ(ErrorOf({Frames({url, url, url})}, settings), kItems);
  settings = Settings();
  settings.max_tokens = 300;
  EXPECT_EQ(ErrorOf({Picture(url), Picture(url)}, settings),
            "messages: media of more than 300 tokens, wanted fewer or smaller media");
  settings = Settings();
  settings.max_pixels = kPicturePixels * 2;
  EXPECT_EQ(ErrorOf({Picture(url), Picture(url)}, settings), "ok");
  const std::string pixels = fmt::format(
      "messages: pictures and frames of more than {} pixels, wanted fewer or smaller "
      "media",
      settings.max_pixels);
  EXPECT_EQ(ErrorOf({Picture(url), Picture(url), Picture(url)}, settings), pixels);
  EXPECT_EQ(ErrorOf({Frames({url, url, url})}, settings), pixels);
  const std::string sound = Base64(ReadOrDie(TestdataPath(kSound)));
  settings = Settings();
  settings.max_seconds = 0.75;
  EXPECT_EQ(ErrorOf({Sound(sound), Sound(sound)}, settings),
            "messages: more than 0.75 s of sound, wanted less in one request");
  settings.max_helper_s = 0;
  EXPECT_EQ(ErrorOf({Sound(Base64(ReadOrDie(TestdataPath(kMovingSound))))}, settings),
            "messages: media that take facet-media more than 0 s, wanted fewer or smaller media");
  settings = Settings();
  settings.max_bytes = 100;
  EXPECT_TRUE(ErrorOf({Picture(url)}, settings).ends_with("bytes, wanted at most 100"));
}

TEST(HasMedia, LooksAtParts) {
  EXPECT_TRUE(HasMedia(Messages({Picture("data:,")})));
  EXPECT_FALSE(HasMedia(Messages({Json::MakeObject({{"type", "text"}, {"text", "a"}})})));
  EXPECT_FALSE(HasMedia(Json("a")));
}

}  // namespace
}  // namespace facet
