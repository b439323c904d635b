// SPDX-License-Identifier: Apache-2.0
#include "chat/media_part.h"

#include <gtest/gtest.h>

namespace facet {
namespace {

Json Parse(std::string_view text) {
  auto parsed = ParseJson(text, "test");
  EXPECT_TRUE(parsed.ok()) << text;
  return parsed.ok() ? *std::move(parsed) : Json();
}

std::string ErrorOf(std::string_view part) {
  const Json json = Parse(part);
  EXPECT_TRUE(IsMediaPart(json)) << part;
  const auto media = ReadMediaPart(json, "p");
  return media.ok() ? "ok" : media.error().Message();
}

struct Case {
  std::string_view part;
  std::string_view error;
};

void ExpectErrors(std::initializer_list<Case> cases) {
  for (const Case& c : cases) {
    EXPECT_EQ(ErrorOf(c.part), c.error) << c.part;
  }
}

TEST(ReadMediaPart, TakesTheFormsOfPictures) {
  const Json part =
      Parse(R"({"type":"image_url","image_url":{"url":"data:,","detail":"high"},"x":1})");
  const auto media = ReadMediaPart(part, "messages[0].content[1]");
  ASSERT_TRUE(media.ok()) << media.error().Message();
  EXPECT_EQ(media->kind, MediaPartKind::kImage);
  EXPECT_EQ(media->detail, ImageDetail::kHigh);
  ASSERT_EQ(media->files.size(), 1U);
  EXPECT_EQ(media->files[0].form, GivenFile::Form::kUrl);
  EXPECT_EQ(media->files[0].text, "data:,");
  EXPECT_EQ(media->files[0].where, "messages[0].content[1].image_url.url");

  const Json bare = Parse(R"({"type":"image_url","image_url":"data:,"})");
  EXPECT_EQ(ReadMediaPart(bare, "p")->files[0].where, "p.image_url");
  const Json path = Parse(R"({"type":"image","path":"a.png"})");
  EXPECT_EQ(ReadMediaPart(path, "p")->files[0].form, GivenFile::Form::kPath);
  EXPECT_EQ(ReadMediaPart(path, "p")->files[0].where, "p.path");
}

TEST(ReadMediaPart, RefusesOtherPictures) {
  ExpectErrors({
      {R"({"type":"image_url"})", "p.image_url: nothing, wanted an object with url"},
      {R"({"type":"image_url","image_url":""})", "p.image_url: \"\", wanted an object with url"},
      {R"({"type":"image_url","image_url":["a"]})",
       "p.image_url: an array, wanted an object with url"},
      {R"({"type":"image_url","image_url":{}})", "p.image_url.url: nothing, wanted a URL"},
      {R"({"type":"image_url","image_url":{"url":7}})",
       "p.image_url.url: an integer, wanted a URL"},
      {R"({"type":"image_url","image_url":{"url":"a","detail":"hi"}})",
       "p.image_url.detail: \"hi\", wanted low, auto or high"},
      {R"({"type":"image_url","image_url":{"url":"a","detail":1}})",
       "p.image_url.detail: an integer, wanted low, auto or high"},
      {R"({"type":"image_url","image_url":{"url":"a","detail":null}})", "ok"},
      {R"({"type":"image"})", "p.path: nothing, wanted a path"},
      {R"({"type":"image","path":""})", "p.path: \"\", wanted a path"},
  });
}

TEST(ReadMediaPart, ReadsSound) {
  const Json part = Parse(R"({"type":"input_audio","input_audio":{"data":"QUJD","format":"wav"}})");
  const auto media = ReadMediaPart(part, "p");
  ASSERT_TRUE(media.ok()) << media.error().Message();
  EXPECT_EQ(media->kind, MediaPartKind::kAudio);
  EXPECT_EQ(media->files[0].form, GivenFile::Form::kBase64);
  EXPECT_EQ(media->files[0].where, "p.input_audio.data");
  ExpectErrors({
      {R"({"type":"audio_url","audio_url":"data:,"})", "ok"},
      {R"({"type":"audio","path":"a.wav"})", "ok"},
      {R"({"type":"audio_url"})", "p.audio_url: nothing, wanted an object with url"},
      {R"({"type":"audio"})", "p.path: nothing, wanted a path"},
      {R"({"type":"input_audio","input_audio":"QUJD"})",
       "p.input_audio: \"QUJD\", wanted an object with data and format"},
      {R"({"type":"input_audio","input_audio":{"format":"wav"}})",
       "p.input_audio.data: nothing, wanted base64"},
      {R"({"type":"input_audio","input_audio":{"data":"QUJD"}})",
       "p.input_audio.format: nothing, wanted wav, mp3, flac, ogg, opus, m4a or aac"},
      {R"({"type":"input_audio","input_audio":{"data":"QUJD","format":"midi"}})",
       "p.input_audio.format: \"midi\", wanted wav, mp3, flac, ogg, opus, m4a or aac"},
  });
}

TEST(ReadMediaPart, ReadsVideoFiles) {
  const Json part =
      Parse(R"({"type":"video_url","video_url":{"url":"data:,"},"fps":2.5,"frames":8})");
  const auto media = ReadMediaPart(part, "p");
  ASSERT_TRUE(media.ok()) << media.error().Message();
  EXPECT_EQ(media->kind, MediaPartKind::kVideo);
  EXPECT_FALSE(media->has_frames);
  EXPECT_EQ(media->fps, 2.5);
  EXPECT_EQ(media->n_frames, 8);
  const Json path = Parse(R"({"type":"video","path":"a.mp4","n_frames":4})");
  EXPECT_EQ(ReadMediaPart(path, "p")->n_frames, 4);
  ExpectErrors({
      {R"({"type":"video_url","video_url":"data:,","fps":0})",
       "p.fps: 0, wanted a number above 0, at most 1000"},
      {R"({"type":"video_url","video_url":"data:,","fps":"2"})",
       "p.fps: \"2\", wanted a number above 0, at most 1000"},
      {R"({"type":"video_url","video_url":"data:,","n_frames":0})",
       "p.n_frames: 0, wanted a whole number from 1 to 1024"},
      {R"({"type":"video_url","video_url":"data:,","frames":1025})",
       "p.frames: 1025, wanted a whole number from 1 to 1024"},
      {R"({"type":"video_url","video_url":"data:,","frames":["data:,"]})",
       "p.frames: an array, wanted a whole number from 1 to 1024"},
      {R"({"type":"video"})", "p.frames: nothing, wanted an array of URLs, or path"},
  });
}

TEST(ReadMediaPart, ReadsFramesOneByOne) {
  const Json part = Parse(R"({"type":"video","frames":["data:,a","data:,b","data:,c"],"fps":2})");
  const auto media = ReadMediaPart(part, "p");
  ASSERT_TRUE(media.ok()) << media.error().Message();
  EXPECT_TRUE(media->has_frames);
  EXPECT_EQ(media->seconds, (std::vector<double>{0, 0.5, 1}));
  ASSERT_EQ(media->files.size(), 3U);
  EXPECT_EQ(media->files[2].where, "p.frames[2]");
  EXPECT_FALSE(media->fps.has_value());
  const Json timed = Parse(R"({"type":"video","frames":["data:,a","data:,b"],"seconds":[0,61.5]})");
  EXPECT_EQ(ReadMediaPart(timed, "p")->seconds, (std::vector<double>{0, 61.5}));
  ExpectErrors({
      {R"({"type":"video","frames":[],"fps":1})", "p.frames: 0 items, wanted 1 to 1024"},
      {R"({"type":"video","frames":["a",""],"fps":1})",
       "p.frames[1]: \"\", wanted a URL, or an object with path"},
      {R"({"type":"video","frames":["a"]})",
       "p.fps: nothing, wanted fps, or seconds for each frame"},
      {R"({"type":"video","frames":["a"],"seconds":3})", "p.seconds: an integer, wanted an array"},
      {R"({"type":"video","frames":["a"],"seconds":[0,1]})",
       "p.seconds: 2 items, wanted one for each of 1 frames"},
      {R"({"type":"video","frames":["a","b"],"seconds":[2,1]})",
       "p.seconds[1]: 1, wanted a number from 2 to 1000000"},
      {R"({"type":"video","frames":["a"],"seconds":[1e300]})",
       "p.seconds[0]: 1e+300, wanted a number from 0 to 1000000"},
      {R"({"type":"video","frames":["a"],"seconds":["1"]})",
       "p.seconds[0]: \"1\", wanted a number from 0 to 1000000"},
  });
}

TEST(MediaBytes, CountsWhatNoTemplateSees) {
  EXPECT_EQ(MediaBytes(Parse(R"([{"content":[{"type":"text","text":"abc","image_url":"abc"},
      {"type":"image_url","image_url":{"url":"abc","x":"abcdef"}},
      {"type":"image_url","image_url":"ab"}, {"type":"input_audio","input_audio":{"data":"abcd"}},
      {"type":"video","frames":["a","bc"]}]}, {"content":"abc"}])")),
            3 + 2 + 4 + 3);
  EXPECT_EQ(MediaBytes(Parse("\"Hi\"")), 0U);
}

}  // namespace
}  // namespace facet
