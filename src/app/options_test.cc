// SPDX-License-Identifier: Apache-2.0
#include "app/options.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "base/file.h"
#include "support/testing.h"

namespace facet {
namespace {

using Variables = std::map<std::string, std::string>;

Result<Options> Read(const std::vector<std::string>& arguments, const Variables& variables = {}) {
  return ReadOptions(
      arguments, [&variables](const std::string& name) -> std::optional<std::string> {
        const auto found = variables.find(name);
        return found == variables.end() ? std::nullopt : std::optional(found->second);
      });
}

std::string ErrorOf(const std::vector<std::string>& arguments, const Variables& variables = {}) {
  const Result<Options> options = Read(arguments, variables);
  return options.ok() ? "no error" : options.error().Message();
}

TEST(ReadOptions, SetsEveryKindOfField) {
  const auto options = Read({"run",          "-m",         "a.gguf", "--temp",
                             "0.5",          "--top-k=40", "--seed", "18446744073709551615",
                             "--stop",       "a",          "--stop", "[b,c]",
                             "--logit-bias", "5=-1.5",     "-n",     "-1",
                             "--think",      "--kv-type",  "q8_0",   "tell",
                             "me",           "--",         "-5"});
  ASSERT_TRUE(options.ok()) << options.error().Message();
  EXPECT_EQ(options->model, "a.gguf");
  EXPECT_FLOAT_EQ(options->temperature.value_or(-1), 0.5F);
  EXPECT_EQ(options->top_k.value_or(-1), 40);
  EXPECT_EQ(options->top_p.has_value(), false);
  EXPECT_EQ(options->seed.value_or(0), 18446744073709551615U);
  EXPECT_EQ(options->stop, (std::vector<std::string>{"a", "[b,c]"}));
  EXPECT_EQ(options->logit_bias, (LogitBias{{5, -1.5F}}));
  EXPECT_EQ(options->max_tokens, -1);
  EXPECT_TRUE(options->think);
  EXPECT_EQ(options->kv_type, "q8_0");
  EXPECT_EQ(options->words, (std::vector<std::string>{"tell", "me", "-5"}));
}

TEST(ReadOptions, TakesTheNamesThatUsersOfOtherProgramsKnow) {
  const auto options = Read({"run", "--n-predict", "7", "--temperature", "1",
                             "--repetition-penalty", "1.5", "-c", "99", "-t", "2", "-p", "hi",
                             "--presence-penalty", "-0.5", "--frequency-penalty", "0.25"});
  ASSERT_TRUE(options.ok()) << options.error().Message();
  EXPECT_EQ(options->max_tokens, 7);
  EXPECT_FLOAT_EQ(options->repeat_penalty, 1.5F);
  EXPECT_EQ(options->ctx_size.value_or(0), 99);
  EXPECT_EQ(options->threads, 2);
  EXPECT_EQ(options->prompt, "hi");
  EXPECT_FLOAT_EQ(options->presence_penalty, -0.5F);
  EXPECT_FLOAT_EQ(options->frequency_penalty, 0.25F);
}

TEST(ReadOptions, KeepsTheOrderOfMedia) {
  const auto options =
      Read({"run", "--image", "a.png", "what", "--video=b.mp4", "--audio", "c.wav", "is it",
            "--image", "d.png", "-mm", "m.gguf", "--image-tokens", "140", "--", "-mm"});
  ASSERT_TRUE(options.ok()) << options.error().Message();
  const std::vector<MediaFile> wanted = {{MediaPartKind::kImage, "a.png"},
                                         {MediaPartKind::kVideo, "b.mp4"},
                                         {MediaPartKind::kAudio, "c.wav"},
                                         {MediaPartKind::kImage, "d.png"}};
  EXPECT_EQ(options->media, wanted);
  EXPECT_EQ(options->mmproj, "m.gguf");
  EXPECT_EQ(options->image_tokens.value_or(-1), 140);
  EXPECT_EQ(options->words, (std::vector<std::string>{"what", "is it", "-mm"}));
}

TEST(ReadOptions, ReadsDrafting) {
  const auto otherwise = Read({"run"});
  ASSERT_TRUE(otherwise.ok());
  EXPECT_EQ(otherwise->draft, "");
  EXPECT_EQ(otherwise->spec, SpecMode::kAuto);
  EXPECT_EQ(otherwise->spec_max, 8);
  for (const std::string name : {"--draft", "-md", "--model-draft", "--spec-draft-model"}) {
    const auto options = Read({"serve", name, "d.gguf", "--spec", "mtp", "--draft-max", "16"});
    ASSERT_TRUE(options.ok()) << options.error().Message();
    EXPECT_EQ(options->draft, "d.gguf");
    EXPECT_EQ(options->spec, SpecMode::kMtp);
    EXPECT_EQ(options->spec_max, 16);
  }
  EXPECT_EQ(Read({"run"}, {{"FACET_SPEC", "ngram"}})->spec, SpecMode::kNgram);
  EXPECT_EQ(ErrorOf({"run", "--spec", "on"}),
            "--spec: \"on\", wanted one of auto, mtp, ngram, off");
  EXPECT_EQ(ErrorOf({"run", "--spec-max", "17"}),
            "--spec-max: \"17\", wanted a whole number from 1 to 16");
  EXPECT_EQ(ErrorOf({"run", "--spec-max", "0"}),
            "--spec-max: \"0\", wanted a whole number from 1 to 16");
}

TEST(ReadOptions, TellsWhatIsWrongWithAValue) {
  EXPECT_EQ(ErrorOf({"run", "--temp", "hot"}), "--temp: \"hot\", wanted a number from 0 to 100");
  EXPECT_EQ(ErrorOf({"run", "--temp", "nan"}), "--temp: \"nan\", wanted a number from 0 to 100");
  EXPECT_EQ(ErrorOf({"run", "--top-p", "0"}), "--top-p: \"0\", wanted a number above 0, at most 1");
  EXPECT_EQ(ErrorOf({"run", "-n", "0"}),
            "--max-tokens: \"0\", wanted a whole number, at least 1, or -1");
  EXPECT_EQ(ErrorOf({"run", "-n", "1.5"}),
            "--max-tokens: \"1.5\", wanted a whole number, at least 1, or -1");
  EXPECT_EQ(ErrorOf({"run", "-n", "99999999999"}),
            "--max-tokens: \"99999999999\", wanted a whole number, at least 1, or -1");
  EXPECT_EQ(ErrorOf({"run", "--seed", "-1"}),
            "--seed: \"-1\", wanted a whole number from 0 to 18446744073709551615");
  EXPECT_EQ(ErrorOf({"run", "--kv-type", "q4"}),
            "--kv-type: \"q4\", wanted one of f32, f16, bf16, q8_0");
  EXPECT_EQ(ErrorOf({"run", "--image-tokens", "100"}),
            "--image-tokens: \"100\", wanted one of 70, 140, 280, 560, 1120");
  EXPECT_EQ(ErrorOf({"run", "--image="}), "--image=: nothing after it, wanted a value");
  EXPECT_EQ(ErrorOf({"run", "--logit-bias", "5"}),
            "--logit-bias: \"5\", wanted ID=X: a token's id and a number from -100 to 100");
  EXPECT_EQ(ErrorOf({"run", "--logit-bias", "-5=1"}),
            "--logit-bias: \"-5=1\", wanted ID=X: a token's id and a number from -100 to 100");
  EXPECT_EQ(ErrorOf({"run", "--think=maybe"}), "--think: \"maybe\", wanted true or false");
  EXPECT_EQ(ErrorOf({"run", "--system", "\xff"}),
            "--system: bytes that are not UTF-8, wanted UTF-8 text");
}

TEST(ReadOptions, CountsWords) {
  EXPECT_EQ(ErrorOf({"convert", "a"}), "facet convert: \"a\", wanted HFDIR OUT.gguf");
  EXPECT_EQ(ErrorOf({"convert"}), "facet convert: nothing, wanted HFDIR OUT.gguf");
  EXPECT_EQ(ErrorOf({"inspect", "a", "b"}), "facet inspect: \"a b\", wanted one model");
  EXPECT_EQ(ErrorOf({"convert", "--help"}), "no error");
}

TEST(ReadOptions, CommandLineBeatsEnvironmentBeatsFileBeatsDefault) {
  const std::string folder = testing::MakeTempDir();
  const std::string file = folder + "/c.toml";
  ASSERT_TRUE(
      WriteFile(file, "temperature = 0.1\ntop_k = 1\nmax_tokens = 11\nstop = [\"x\", \"y\"]\n")
          .ok());
  const Variables variables = {{"FACET_TOP_K", "2"}, {"FACET_MAX_TOKENS", "22"}};
  const auto options = Read({"run", "--config", file, "-n", "33"}, variables);
  ASSERT_TRUE(options.ok()) << options.error().Message();
  EXPECT_FLOAT_EQ(options->temperature.value_or(-1), 0.1F);
  EXPECT_EQ(options->top_k.value_or(-1), 2);
  EXPECT_EQ(options->max_tokens, 33);
  EXPECT_FLOAT_EQ(options->min_p, 0.0F);
  EXPECT_EQ(options->stop, (std::vector<std::string>{"x", "y"}));
}

TEST(ReadOptions, FindsTheFileBelowTheHome) {
  const std::string home = testing::MakeTempDir();
  EXPECT_EQ(ErrorOf({"run"}, {{"HOME", home}}), "no error");  // none there
  const auto history = home + "/facet";
  ASSERT_EQ(std::system(("mkdir -p " + home + "/.config/facet " + history).c_str()), 0);
  ASSERT_TRUE(WriteFile(home + "/.config/facet/config.toml", "top_k = 3\n").ok());
  ASSERT_TRUE(WriteFile(home + "/facet/config.toml", "top_k = 4\n").ok());
  EXPECT_EQ(Read({"run"}, {{"HOME", home}})->top_k.value_or(0), 3);
  EXPECT_EQ(Read({"run"}, {{"HOME", home}, {"XDG_CONFIG_HOME", home}})->top_k.value_or(0), 4);
}

TEST(ReadOptions, NamesTheSourceOfABadValue) {
  const std::string file = testing::MakeTempDir() + "/c.toml";
  ASSERT_TRUE(WriteFile(file, "# mine\n\ntop_p = 2\n").ok());
  EXPECT_EQ(ErrorOf({"run", "--config", file}),
            file + ":3: top_p: \"2\", wanted a number above 0, at most 1");
  EXPECT_EQ(ErrorOf({"run"}, {{"FACET_TOP_P", "2"}}),
            "FACET_TOP_P: \"2\", wanted a number above 0, at most 1");
  EXPECT_EQ(ErrorOf({"run", "--config", "/nothing/here"}),
            "/nothing/here: cannot open: No such file or directory");
}

TEST(ShowOption, ShowsEveryKindOfField) {
  Options options;
  EXPECT_EQ(ShowOption(*FindOptionByKey("temperature"), options), "default");
  EXPECT_EQ(ShowOption(*FindOptionByKey("stop"), options), "none");
  options.temperature = 0.5F;
  options.stop = {"a", "b c"};
  options.think = true;
  EXPECT_EQ(ShowOption(*FindOptionByKey("temperature"), options), "0.5");
  EXPECT_EQ(ShowOption(*FindOptionByKey("stop"), options), "\"a\" \"b c\"");
  EXPECT_EQ(ShowOption(*FindOptionByKey("think"), options), "true");
  EXPECT_EQ(ShowOption(*FindOptionByKey("max_tokens"), options), "-1");
  EXPECT_EQ(ShowOption(*FindOptionByKey("spec"), options), "auto");
}

}  // namespace
}  // namespace facet
