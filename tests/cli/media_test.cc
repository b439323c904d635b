// SPDX-License-Identifier: Apache-2.0
// Pictures, sound and video through the program, from the bytes of files to the answer: the goldens
// of the tiny model (testdata/tiny-hf/goldens.json), where media stand in a prompt, what is
// refused, and hundreds of hostile files.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <sstream>

#include "base/bytes.h"
#include "base/file.h"
#include "base/json.h"
#include "cli/process.h"
#include "support/testing.h"

namespace facet::testing {
namespace {

std::string TinyMedia(const std::string& name) { return TestdataPath("tiny-hf/media/" + name); }

bool HasHelper() {
  return FileExists(std::filesystem::path(FACET_PROGRAM).parent_path() / "facet-media");
}

struct Golden {
  std::string name;
  std::vector<std::string> arguments;  ///< files and the question
  std::string output;
};

/// A folder with the frames of a golden, by name.
std::string FramesFolder(const Json& files) {
  const std::string folder = MakeTempDir();
  for (const Json& file : files.items()) {
    std::filesystem::copy(TinyMedia(file.as_string()), folder);
  }
  return folder;
}

std::vector<Golden> Goldens() {
  constexpr std::string_view kTurnEnd = "<turn|>";
  std::vector<Golden> goldens;
  const Json all = JsonOrDie(TestdataPath("tiny-hf/goldens.json"));
  for (const Json& one : all["cases"].items()) {
    if (one["files"].items().empty()) {
      continue;
    }
    Golden golden;
    golden.name = one["name"].as_string();
    const Json::Array& parts = one["messages"].items().back()["content"].items();
    const std::string& kind = parts.front()["type"].as_string();
    if (kind == "video") {
      golden.arguments = {"--video", FramesFolder(one["files"])};
    } else {
      for (const Json& file : one["files"].items()) {
        golden.arguments.insert(golden.arguments.end(), {"--" + kind, TinyMedia(file.as_string())});
      }
    }
    golden.arguments.push_back(parts.back()["text"].as_string());
    golden.output = one["output"].as_string();
    golden.output.resize(golden.output.size() - kTurnEnd.size());
    goldens.push_back(std::move(golden));
  }
  return goldens;
}

Finished Ask(std::vector<std::string> arguments, const std::vector<std::string>& model = {}) {
  arguments.insert(arguments.begin(), {"run", "--temp", "0"});
  arguments.insert(arguments.begin() + 3, model.begin(), model.end());
  return RunFacet(arguments);
}

TEST(Media, TheTinyModelSeesAndHearsAsTheReference) {
  const std::vector<Golden> goldens = Goldens();
  ASSERT_EQ(goldens.size(), 10U);
  for (const Golden& golden : goldens) {
    const Finished run = Ask(golden.arguments);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_EQ(run.out, golden.output + "\n") << golden.name;
  }
}

TEST(Media, EncodersComeFromADirectoryOrAFileBesideTheModel) {
  const std::vector<std::vector<std::string>> models = {
      {"-m", TestdataPath("tiny-hf")},
      {"-m", SourcePath("models/tiny/facet-tiny.gguf"), "--image-tokens", "70"},
      {"-m", TestdataPath("tiny-gguf/facet-tiny-q8_0.gguf"), "--image-tokens", "70", "--mmproj",
       SourcePath("models/tiny/mmproj-facet-tiny.gguf")}};
  for (const Golden& golden : Goldens()) {
    if (golden.name != "image2" && golden.name != "audio0") {
      continue;
    }
    for (const auto& model : models) {
      const Finished run = Ask(golden.arguments, model);
      EXPECT_EQ(run.exit_code, 0) << run.err;
      EXPECT_EQ(run.out, golden.output + "\n") << golden.name << " " << model[1];
    }
  }
}

TEST(Media, PlaceholdersSayWhereFilesStand) {
  const auto tokens = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"tokenize", "--ids"});
    const Finished run = RunFacet(arguments);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    std::vector<int> ids;
    std::istringstream stream(run.out);
    for (int id = 0; stream >> id;) {
      if (ids.empty() || ids.back() != id) {  // runs of soft tokens as one
        ids.push_back(id);
      }
    }
    return ids;
  };
  const std::vector<std::string> files = {"--image", TinyMedia("image0_0.png"), "--audio",
                                          TinyMedia("audio1.wav")};
  const auto with = [&files](const std::string& text) {
    std::vector<std::string> arguments = files;
    arguments.push_back(text);
    return arguments;
  };
  EXPECT_EQ(tokens(with("<|image|><|audio|>a")), tokens(with("a"))) << "in the order given";
  const std::vector<int> turned = tokens(with("<|audio|>a<|image|>"));
  const auto place = [&turned](int id) {
    return std::find(turned.begin(), turned.end(), id) - turned.begin();
  };
  EXPECT_LT(place(22), place(19));  // <|audio|> before <|image|>
  const Finished missing = Ask(with("only <|image|>"));
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_EQ(missing.out, "");
  EXPECT_NE(missing.err.find("<|audio|>"), std::string::npos) << missing.err;
}

TEST(Media, TokenizeShowsTheExpansion) {
  const Finished run = RunFacet({"tokenize", "--image", TinyMedia("image0_0.png"), "hi"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_NE(run.out.find("\"<|image|>\" x 64  (image of 384 x 384, 64 tokens)"), std::string::npos)
      << run.out;
}

/// Exit code 1, one line of error with `text`, and nothing on standard output.
void ExpectRefused(const std::vector<std::string>& arguments, const std::string& text) {
  const Finished run = Ask(arguments);
  EXPECT_EQ(run.out, "") << text;
  EXPECT_NE(run.exit_code, 0) << text;
  EXPECT_NE(run.err.find(text), std::string::npos) << run.err;
  EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'),
            run.err.find("no model given") == std::string::npos ? 1 : 2)
      << run.err;
}

TEST(Media, BadFilesAndOptionsAreOneClearError) {
  const std::string folder = MakeTempDir();
  ASSERT_TRUE(WriteFile(folder + "/empty.png", "").ok());
  ASSERT_TRUE(WriteFile(folder + "/text.wav", "hello").ok());
  ExpectRefused({"--image", folder + "/missing.png", "x"}, "missing.png");
  ExpectRefused({"--image", folder + "/empty.png", "x"}, "empty.png: no bytes, wanted a file");
  ExpectRefused({"--image", folder, "x"}, folder);
  ExpectRefused({"--image", TinyMedia("audio0.wav"), "x"}, "wanted a JPEG, PNG, WebP, GIF or BMP");
  ExpectRefused({"--audio", folder + "/text.wav", "x"}, "wanted WAV, FLAC, OGG or MP3");
  ExpectRefused({"--no-mmproj", "--image", TinyMedia("image0_0.png"), "x"}, "encoder");
  ExpectRefused({"--image-tokens", "100", "--image", TinyMedia("image0_0.png"), "x"},
                "--image-tokens: \"100\", wanted one of 70, 140, 280, 560, 1120");
  const std::string other = TestdataPath("media/gguf/mmproj-mm-etype-f16.gguf");
  const Finished unfit = Ask({"--mmproj", other, "--image", TinyMedia("image0_0.png"), "x"});
  EXPECT_EQ(unfit.exit_code, 2) << unfit.err;
  EXPECT_NE(unfit.err.find("64"), std::string::npos) << unfit.err;
  EXPECT_NE(unfit.err.find("128"), std::string::npos) << "both widths: " << unfit.err;
}

TEST(Media, InspectShowsEncoders) {
  const std::string projector = SourcePath("models/tiny/mmproj-facet-tiny.gguf");
  const Finished alone = RunFacet({"inspect", projector});
  EXPECT_EQ(alone.exit_code, 0) << alone.err;
  EXPECT_NE(alone.out.find("pictures      tower, width 64, 3 layers, 2 heads, ff 128"),
            std::string::npos)
      << alone.out;
  EXPECT_NE(alone.out.find("sound         conformer, width 64, 2 layers"), std::string::npos)
      << alone.out;
  const Finished embedded = RunFacet({"inspect", "--json"});
  const auto json = ParseJson(embedded.out, "inspection");
  ASSERT_TRUE(json.ok());
  EXPECT_EQ((*json)["encoders"]["width"].as_int(), 128);
  EXPECT_TRUE((*json)["encoders"]["refused"].is_null());
  const Finished unfit =
      RunFacet({"inspect", "--mmproj", TestdataPath("media/gguf/mmproj-mm-large-f16.gguf")});
  EXPECT_EQ(unfit.exit_code, 0) << unfit.err;
  EXPECT_NE(unfit.out.find("not used"), std::string::npos) << unfit.out;
}

TEST(Media, VideoNeedsTheHelper) {
  const std::string clip = TestdataPath("media/video/clip.mp4");
  ExpectRefused({"--media-helper", "/nonexistent", "--video", clip, "What moves?"}, "clip.mp4");
  if (!HasHelper()) {
    GTEST_SKIP() << "facet-media was not built";
  }
  const Finished run = Ask({"--video", clip, "--video-frames", "3", "What moves?"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_FALSE(run.out.empty());
  const Finished tokens =
      RunFacet({"tokenize", "--video", clip, "--video-frames", "3", "What moves?"});
  EXPECT_EQ(tokens.exit_code, 0) << tokens.err;
  EXPECT_NE(tokens.out.find("\"<|video|>\" x 63"), std::string::npos) << tokens.out;
  const Finished sound =
      Ask({"--audio", TestdataPath("media/audio/files/aac_44k_stereo.m4a"), "x"});
  EXPECT_EQ(sound.exit_code, 0) << sound.err;
}

/// A WAV file of 16-bit silence with a tick, at 16 kHz.
std::string WriteWav(int seconds) {
  constexpr uint32_t kRate = 16000;
  const uint32_t n_bytes = 2 * kRate * static_cast<uint32_t>(seconds);
  std::string wav = "RIFF";
  Append(wav, n_bytes + 36);
  wav += "WAVEfmt ";
  Append(wav, uint32_t{16});
  Append(wav, uint16_t{1});
  Append(wav, uint16_t{1});
  Append(wav, kRate);
  Append(wav, 2 * kRate);
  Append(wav, uint16_t{2});
  Append(wav, uint16_t{16});
  wav += "data";
  Append(wav, n_bytes);
  wav.resize(wav.size() + n_bytes);
  wav[1000] = 9;
  std::string path = MakeTempDir() + "/long.wav";
  EXPECT_TRUE(WriteFile(path, wav).ok());
  return path;
}

TEST(Media, WhatIsCutOrShrunkIsTold) {
  const std::string wav = WriteWav(65);
  const auto soft_tokens = [&wav](const std::string& rule, std::string* err) {
    const Finished run = RunFacet({"tokenize", "--ids", "--audio", wav, "--long-audio", rule, "x"});
    EXPECT_EQ(run.exit_code, 0) << run.err;
    *err = run.err;
    std::istringstream stream(run.out);
    int n = 0;
    for (int id = 0; stream >> id;) {
      n += id == 22 ? 1 : 0;
    }
    return n;
  };
  std::string err;
  EXPECT_EQ(soft_tokens("cut", &err), 750);
  EXPECT_NE(err.find("65.0 s of sound, of which the first 30.0 s are heard"), std::string::npos)
      << err;
  EXPECT_EQ(soft_tokens("split", &err), 750 + 750 + 125);
  EXPECT_EQ(err.find("are heard"), std::string::npos) << err;
  ExpectRefused({"--long-audio", "refuse", "--audio", wav, "x"}, "65.0 s");
  const Finished shrunk =
      RunFacet({"tokenize", "--image", TestdataPath("media/images/source/large_palette.png"), "x"});
  EXPECT_EQ(shrunk.exit_code, 0) << shrunk.err;
  EXPECT_NE(shrunk.err.find(" pixels, seen as "), std::string::npos) << shrunk.err;
}

TEST(Media, HostileFilesEachGiveAnAnswerOrOneError) {
#ifdef __SANITIZE_ADDRESS__
  constexpr size_t kStep = 7;  // each of them takes several times as long
#else
  constexpr size_t kStep = 1;
#endif
  const std::string folder = MakeTempDir();
  const std::string command = "python3 " + SourcePath("tools/make_hostile_media.py") + " " +
                              folder + " " + TestdataPath("media");
  ASSERT_EQ(std::system(command.c_str()), 0);
  const Json list = JsonOrDie(folder + "/list.json");
  ASSERT_GE(list.items().size(), 300U);
  for (const std::string kind : {"image", "audio", "video"}) {
    std::string lines;
    std::map<std::string, bool> may_decode;
    for (size_t n = 0; n < list.items().size(); n += kStep) {
      const Json& one = list.items()[n];
      if (one["kind"].as_string() == kind) {
        const std::string& file = one["file"].as_string();
        may_decode[file] = one["may_decode"].as_bool();
        lines += R"({"id":")" + file + R"(","messages":[{"role":"user","content":[{"type":")" +
                 kind + R"(","path":")" + file + "\"}]}],\"max_tokens\":1}\n";
      }
    }
    ASSERT_TRUE(WriteFile(folder + "/in.jsonl", lines).ok());
    const Finished run =
        RunFacet({"run", "--batch", folder + "/in.jsonl", "--video-frames", "1", "-c", "2048"});
    EXPECT_EQ(run.exit_code, 1) << "some are refused";
    size_t n_results = 0;
    std::istringstream stream(run.out);
    for (std::string line; std::getline(stream, line); ++n_results) {
      const auto parsed = ParseJson(line, "line");
      ASSERT_TRUE(parsed.ok()) << line;
      const Json& result = *parsed;
      const std::string file = result["id"].as_string();
      const bool is_refused = !result["error"].is_null();
      EXPECT_TRUE(is_refused || may_decode.at(file)) << file;
      EXPECT_TRUE(!is_refused || result["error"].Dump().find(file) != std::string::npos) << line;
    }
    EXPECT_EQ(n_results, may_decode.size()) << kind;
  }
}

}  // namespace
}  // namespace facet::testing
