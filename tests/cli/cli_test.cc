// SPDX-License-Identifier: Apache-2.0
// `facet` as other programs use it: arguments, pipes, exit codes.
#include <gtest/gtest.h>
#include <signal.h>

#include <sstream>

#include "app/options.h"
#include "base/file.h"
#include "base/json.h"
#include "cli/process.h"
#include "support/testing.h"

namespace facet::testing {
namespace {

constexpr std::string_view kQuestion = "What is the capital of France?";
constexpr std::string_view kAnswer = "The capital of France is Paris.\n";
constexpr std::string_view kEmbedded =
    "no model given: using the embedded tiny model (a toy; -m MODEL for a real one)\n";

std::vector<Json> ParseLines(const std::string& text) {
  std::vector<Json> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    const Result<Json> json = ParseJson(line, "line");
    EXPECT_TRUE(json.ok()) << line;
    lines.push_back(json.ok() ? *json : Json());
  }
  return lines;
}

void ExpectFailure(const std::vector<std::string>& arguments, int exit_code,
                   const std::string& message, const RunOptions& options = {}) {
  const Finished finished = RunFacet(arguments, options);
  EXPECT_EQ(finished.exit_code, exit_code) << message;
  EXPECT_EQ(finished.out, "");
  EXPECT_EQ(finished.err, "facet: " + message + "\n");
}

TEST(Run, AnswersOnStandardOutputAndNotesOnStandardError) {
  const Finished finished = RunFacet({"run", "--temp", "0", std::string(kQuestion)});
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_EQ(finished.out, kAnswer);
  EXPECT_EQ(finished.err, kEmbedded);
}

TEST(Run, JoinsWordsAndReadsFilesAndStandardInput) {
  EXPECT_EQ(RunFacet({"run", "--temp", "0", "What", "is", "the", "capital", "of", "France?"}).out,
            kAnswer);
  EXPECT_EQ(RunFacet({"run", "--temp", "0", "-p", std::string(kQuestion)}).out, kAnswer);
  EXPECT_EQ(
      RunFacet({"run", "--temp", "0"}, {.input = std::string(kQuestion) + "\n", .environment = {}})
          .out,
      kAnswer);
  EXPECT_EQ(
      RunFacet({"run", "--temp", "0", "-"}, {.input = std::string(kQuestion), .environment = {}})
          .out,
      kAnswer);
  const std::string file = MakeTempDir() + "/question";
  ASSERT_TRUE(WriteFile(file, std::string(kQuestion) + "\n").ok());
  EXPECT_EQ(RunFacet({"run", "--temp", "0", "-f", file}).out, kAnswer);
}

TEST(Run, RunsAModelFile) {
  const Finished finished = RunFacet({"run", "-m", SourcePath("models/tiny/facet-tiny.gguf"),
                                      "--temp", "0", std::string(kQuestion)});
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_EQ(finished.out, kAnswer);
  EXPECT_EQ(finished.err, "");
}

TEST(Run, GivesTheSameWithAnyThreadsAndInstructionSet) {
  const std::vector<std::string> base = {"run",    "--temp", "1",
                                         "--seed", "7",      "Tell me a story about a fox."};
  const std::string expected = RunFacet(base).out;
  EXPECT_FALSE(expected.empty());
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{"-t", "1"}, {"-t", "2"}, {"--cpu-isa", "scalar"}}) {
    std::vector<std::string> arguments = base;
    arguments.insert(arguments.end(), more.begin(), more.end());
    EXPECT_EQ(RunFacet(arguments).out, expected) << more[0] << " " << more[1];
  }
}

TEST(Run, TellsWhyItStopped) {
  const Finished finished = RunFacet({"run", "--temp", "0", "-n", "3", std::string(kQuestion)});
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_TRUE(std::string(kAnswer).starts_with(finished.out.substr(0, finished.out.size() - 1)))
      << finished.out;
  EXPECT_EQ(finished.err, std::string(kEmbedded) + "[stopped: 3 tokens (-n)]\n");
  const Finished stopped =
      RunFacet({"run", "--temp", "0", "--stop", "France is", std::string(kQuestion)});
  EXPECT_EQ(stopped.out, "The capital of \n");
  EXPECT_EQ(stopped.err, kEmbedded);
}

TEST(Run, KeepsThoughtsOutOfAPipe) {
  const Finished finished = RunFacet({"run", "--temp", "0", "--think", "What is 3 + 9 + 20?"});
  EXPECT_EQ(finished.exit_code, 0);
  const std::vector<Json> lines =
      ParseLines(RunFacet({"run", "--json", "--temp", "0", "--think", "What is 3 + 9 + 20?"}).out);
  std::string content;
  std::string thought;
  for (const Json& line : lines) {
    (line["kind"].as_string() == "thought" ? thought : content) += line["text"].as_string();
  }
  EXPECT_FALSE(thought.empty());
  EXPECT_EQ(finished.out, content + "\n");
  EXPECT_EQ(finished.out.find(thought), std::string::npos);
}

TEST(Run, PrintsEventsAsJsonLines) {
  const Finished finished =
      RunFacet({"run", "--json", "--temp", "0", "--seed", "5", std::string(kQuestion)});
  EXPECT_EQ(finished.exit_code, 0);
  const std::vector<Json> lines = ParseLines(finished.out);
  ASSERT_GE(lines.size(), 3U);
  EXPECT_EQ(lines.front()["event"].as_string(), "start");
  EXPECT_EQ(lines.front()["seed"].as_int(), 5);
  EXPECT_EQ(lines.front()["temperature"].as_double(), 0.0);
  std::string content;
  for (const Json& line : lines) {
    content += line["text"].as_string();
  }
  EXPECT_EQ(content + "\n", kAnswer);
  const Json& finish = lines.back();
  EXPECT_EQ(finish["event"].as_string(), "finish");
  EXPECT_EQ(finish["reason"].as_string(), "stop");
  EXPECT_EQ(finish["usage"]["prompt_tokens"].as_int(), lines.front()["prompt_tokens"].as_int());
  EXPECT_EQ(
      finish["usage"]["total_tokens"].as_int(),
      finish["usage"]["prompt_tokens"].as_int() + finish["usage"]["completion_tokens"].as_int());
  EXPECT_GE(finish["timings"]["load_s"].as_double(), 0.0);
}

TEST(Run, RawContinuesTheText) {
  const Finished raw =
      RunFacet({"run", "--raw", "--temp", "0", "-f", "-"},
               {.input = "<|turn>user\nWhat is the capital of France?<turn|>\n<|turn>model\n",
                .environment = {}});
  EXPECT_EQ(raw.exit_code, 0);
  EXPECT_EQ(raw.out, kAnswer);
}

TEST(Run, VerboseAndTraceTellTheWholeStory) {
  const std::string trace = MakeTempDir() + "/trace.jsonl";
  const Finished finished = RunFacet(
      {"run", "--verbose", "--trace", trace, "--temp", "0", "--seed", "9", std::string(kQuestion)});
  EXPECT_EQ(finished.out, kAnswer);
  for (const std::string_view wanted :
       {"model     ", "context   4096 positions", "seed 9", "prompt    ", "reply     ",
        "/s of weights", "memory    "}) {
    EXPECT_NE(finished.err.find(wanted), std::string::npos) << wanted << " in " << finished.err;
  }
  const std::vector<Json> lines = JsonLinesOrDie(trace);
  ASSERT_GE(lines.size(), 3U);
  EXPECT_EQ(lines.front()["trace"].as_string(), "prompt");
  EXPECT_EQ(lines.front()["tokens"].items().at(0).as_int(), 2);
  EXPECT_EQ(lines[1]["trace"].as_string(), "token");
  EXPECT_EQ(lines.back()["reason"].as_string(), "stop");
}

TEST(Run, ReadsEnvironmentAndConfigurationFile) {
  const std::string file = MakeTempDir() + "/c.toml";
  ASSERT_TRUE(WriteFile(file, "temperature = 0\nmax_tokens = 1\n").ok());
  const Finished finished = RunFacet({"run", "--config", file, std::string(kQuestion)},
                                     {.input = "", .environment = {"FACET_MAX_TOKENS=100"}});
  EXPECT_EQ(finished.out, kAnswer);
}

TEST(Run, RefusesWrongUsage) {
  ExpectFailure({"run", "--topk", "5", "x"}, 1, "unknown option --topk, did you mean --top-k");
  ExpectFailure({"run", "--temp", "hot", "x"}, 1, "--temp: \"hot\", wanted a number from 0 to 100");
  ExpectFailure({"run"}, 1,
                "facet run: no prompt, wanted words, -f FILE or text on standard input");
  ExpectFailure({"run", "--raw", "--think", "x"}, 1,
                "--raw: given with --think, wanted no chat template, or one");
  ExpectFailure({"run", "-f", "/nothing/here"}, 1,
                "/nothing/here: cannot open: No such file or directory");
  ExpectFailure({"run", "--trace", "/nothing/here", "x"}, 1,
                "/nothing/here: cannot create: No such file or directory");
  ExpectFailure({"rnu"}, 1, "unknown command rnu, did you mean run");
  ExpectFailure({}, 1, "no command, wanted facet COMMAND [OPTIONS] (facet --help lists them)");
  ExpectFailure({"run", "-"}, 1, "standard input: bytes that are not UTF-8, wanted UTF-8 text",
                {.input = "\xff", .environment = {}});
}

TEST(Run, RefusesAModelInOneLineWithCode2) {
  const std::string folder = MakeTempDir();
  ASSERT_TRUE(WriteFile(folder + "/a.gguf", "GGML and more bytes than a header").ok());
  for (const std::string& path :
       {folder + "/a.gguf", folder + "/missing.gguf", folder, std::string("/dev/null")}) {
    const Finished finished = RunFacet({"run", "-m", path, "x"});
    EXPECT_EQ(finished.exit_code, 2) << path;
    EXPECT_EQ(finished.out, "");
    EXPECT_TRUE(finished.err.starts_with("facet: " + path)) << finished.err;
    EXPECT_EQ(finished.err.find('\n'), finished.err.size() - 1) << finished.err;
  }
}

TEST(Run, RefusesAPromptThatDoesNotFit) {
  std::string prompt;
  for (int i = 0; i < 200; ++i) {
    prompt += "word ";
  }
  const Finished finished = RunFacet({"run", "-c", "64", prompt});
  EXPECT_EQ(finished.exit_code, 1);
  EXPECT_EQ(finished.out, "");
  EXPECT_NE(finished.err.find("64"), std::string::npos) << finished.err;
}

TEST(Run, TellsWhenTheOutputIsFull) {
  const Finished finished = RunFacet({"run", "--temp", "0", std::string(kQuestion)});
  ASSERT_EQ(finished.exit_code, 0);
  const std::string folder = MakeTempDir();
  const std::string command =
      "exec > /dev/full; exec 2> " + folder + "/err; " FACET_PROGRAM " version";
  EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 1);
  EXPECT_EQ(ReadOrDie(folder + "/err"),
            "facet: standard output: cannot write: No space left on device\n");
}

TEST(Run, EndsSilentlyWhenThePipeIsClosed) {
  const std::string folder = MakeTempDir();
  const std::string command = "(" FACET_PROGRAM " help run; echo $? > " + folder + "/code) 2> " +
                              folder + "/err | true; sleep 0.1; cat " + folder + "/err";
  EXPECT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(ReadOrDie(folder + "/err"), "");
}

TEST(Help, OfEveryCommandListsEveryOption) {
  for (const CommandSpec& command : CommandTable()) {
    const std::string name(command.name);
    const Finished finished = RunFacet({name, "--help"});
    EXPECT_EQ(finished.exit_code, 0);
    EXPECT_EQ(finished.err, "");
    for (const OptionSpec& spec : OptionTable()) {
      if (spec.IsFor(command.id) && !spec.is_hidden) {
        EXPECT_NE(finished.out.find(std::string(spec.name)), std::string::npos)
            << name << " " << spec.name;
      }
    }
    if (command.id != Command::kHelp) {
      EXPECT_EQ(RunFacet({"help", name}).out, finished.out);
    }
  }
  EXPECT_EQ(RunFacet({"--help"}).out, RunFacet({"help"}).out);
  EXPECT_TRUE(RunFacet({"--version"}).out.starts_with("facet "));
  ExpectFailure({"help", "me"}, 1, "facet help: unknown command \"me\", wanted facet help");
}

TEST(Tokenize, ShowsIdsAndTexts) {
  const Finished ids = RunFacet({"tokenize", "--ids", "Hello <|turn> <eos>"});
  EXPECT_EQ(ids.exit_code, 0);
  EXPECT_NE((" " + ids.out).find(" 15 "), std::string::npos) << ids.out;
  const Finished plain = RunFacet({"tokenize", "--ids", "--no-special", "Hello <|turn> <eos>"});
  EXPECT_EQ((" " + plain.out).find(" 15 "), std::string::npos) << plain.out;
  EXPECT_EQ(RunFacet({"tokenize", "--decode", plain.out}).out, "Hello <|turn> <eos>\n");
  const Result<Json> json = ParseJson(RunFacet({"tokenize", "--json", "Hi\n"}).out, "json");
  ASSERT_TRUE(json.ok());
  std::string text;
  for (const Json& token : json->items()) {
    text += token["text"].as_string();
  }
  EXPECT_EQ(text, "Hi\n");
  const Finished table = RunFacet({"tokenize", "<eos>"});
  EXPECT_EQ(table.out, "      1  \"<eos>\"\n");
}

TEST(Tokenize, RefusesWrongUsage) {
  const Finished ids = RunFacet({"tokenize", "--decode", "1", "99999"});
  EXPECT_EQ(ids.exit_code, 1);
  EXPECT_EQ(ids.err, std::string(kEmbedded) +
                         "facet: --decode: \"99999\", wanted token ids from 0 to 2047\n");
  ExpectFailure({"tokenize", "--json", "--ids", "x"}, 1,
                "facet tokenize: several of --json, --ids and --decode, wanted one of them");
}

TEST(Inspect, ShowsTheModel) {
  const std::string path = SourcePath("models/tiny/facet-tiny.gguf");
  const Finished text = RunFacet({"inspect", path});
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_EQ(text.err,
            "using the projector " + SourcePath("models/tiny/mmproj-facet-tiny.gguf") + "\n");
  EXPECT_NE(text.out.find("2,964,490"), std::string::npos) << text.out;
  const Result<Json> json = ParseJson(RunFacet({"inspect", "--json", path}).out, "json");
  ASSERT_TRUE(json.ok());
  EXPECT_EQ((*json)["layers"].items().size(), 10U);
  EXPECT_EQ((*json)["model"]["path"].as_string(), path);
  EXPECT_EQ(RunFacet({"inspect", "/nothing/here.gguf"}).exit_code, 2);
}

}  // namespace
}  // namespace facet::testing
