// SPDX-License-Identifier: Apache-2.0
// `facet run --batch`: the same replies as one at a time, bad lines, resuming, Ctrl-C.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <sstream>

#include "base/file.h"
#include "base/json.h"
#include "cli/process.h"
#include "support/testing.h"

namespace facet::testing {
namespace {

constexpr std::string_view kEmbedded =
    "no model given: using the embedded tiny model (a toy; -m MODEL for a real one)\n";

std::string MakeFile(const std::string& text) {
  const std::string path = MakeTempDir() + "/in.jsonl";
  EXPECT_TRUE(WriteFile(path, text).ok());
  return path;
}

std::vector<Json> ParseLines(const std::string& text) {
  std::vector<Json> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    Result<Json> json = ParseJson(line, "line");
    EXPECT_TRUE(json.ok()) << line;
    lines.push_back(json.ok() ? *std::move(json) : Json());
  }
  return lines;
}

/// Results by id, whatever their order.
std::map<std::string, Json> ById(const std::string& text) {
  std::map<std::string, Json> results;
  for (Json& line : ParseLines(text)) {
    const Json id = line.contains("custom_id") ? line["custom_id"] : line["id"];
    EXPECT_FALSE(results.contains(id.Dump())) << id.Dump();
    results.emplace(id.Dump(), std::move(line));
  }
  return results;
}

/// A note without its time and rate.
std::string Summary(const std::string& err) {
  const size_t begin = err.find("answered ");
  return begin == std::string::npos ? err : err.substr(begin, err.find(" in ", begin) - begin);
}

struct Case {
  std::string line;  ///< without id
  std::vector<std::string> arguments;
};

const std::vector<Case> kCases = {
    {R"("prompt":"What is the capital of France?","temperature":0)",
     {"--temp", "0", "What is the capital of France?"}},
    {R"("prompt":"Tell me a story about a fox.","seed":7,"temperature":1,"max_tokens":60)",
     {"--seed", "7", "--temp", "1", "-n", "60", "Tell me a story about a fox."}},
    {R"("prompt":"Tell me a story about a fox.","seed":8,"top_k":5,"top_p":0.8,"max_tokens":60)",
     {"--seed", "8", "--top-k", "5", "--top-p", "0.8", "-n", "60", "Tell me a story about a fox."}},
    {R"("messages":[{"role":"user","content":"What is 3 + 9 + 20?"}],"think":true,"temperature":0)",
     {"--think", "--temp", "0", "What is 3 + 9 + 20?"}},
    {R"("prompt":"What is the capital of France?","stop":"France is","temperature":0)",
     {"--stop", "France is", "--temp", "0", "What is the capital of France?"}},
    {R"("prompt":"<|turn>user\nWhat is the capital of France?<turn|>\n<|turn>model\n","raw":true,)"
     R"("temperature":0)",
     {"--raw", "--temp", "0",
      "<|turn>user\nWhat is the capital of France?<turn|>\n<|turn>model\n"}},
    {R"("prompt":"Hello","system":"You are a pirate.","seed":3,"repetition_penalty":1.2,)"
     R"("max_tokens":40)",
     {"--system", "You are a pirate.", "--seed", "3", "--repeat-penalty", "1.2", "-n", "40",
      "Hello"}},
    {R"("prompt":"Count from 1 to 20.","logit_bias":{"7":-100},"seed":5,"max_tokens":80)",
     {"--logit-bias", "7=-100", "--seed", "5", "-n", "80", "Count from 1 to 20."}},
};

std::string CasesFile() {
  std::string text;
  for (size_t n = 0; n < kCases.size(); ++n) {
    text += "{\"id\":" + std::to_string(n) + "," + kCases[n].line + "}\n";
  }
  return MakeFile(text);
}

TEST(Batch, GivesWhatTheCommandAloneGives) {
  const Finished finished = RunFacet({"run", "--batch", CasesFile()});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_EQ(Summary(finished.err),
            "answered " + std::to_string(kCases.size()) + ", failed 0, skipped 0");
  const auto results = ById(finished.out);
  ASSERT_EQ(results.size(), kCases.size());
  for (size_t n = 0; n < kCases.size(); ++n) {
    std::vector<std::string> arguments = {"run", "--json"};
    arguments.insert(arguments.end(), kCases[n].arguments.begin(), kCases[n].arguments.end());
    std::string content;
    std::string thought;
    const std::vector<Json> lines = ParseLines(RunFacet(arguments).out);
    for (const Json& line : lines) {
      (line["kind"].as_string() == "thought" ? thought : content) += line["text"].as_string();
    }
    const Json& result = results.at(std::to_string(n));
    EXPECT_EQ(result["content"].as_string(), content) << n;
    EXPECT_EQ(result["thinking"].as_string(), thought) << n;
    EXPECT_EQ(result["finish_reason"], lines.back()["reason"]) << n;
    EXPECT_EQ(result["usage"], lines.back()["usage"]) << n;
    EXPECT_EQ(result["line"].as_int(), static_cast<int64_t>(n) + 1);
  }
}

TEST(Batch, GivesTheSameWithAnyNumberAtATime) {
  const std::string file = CasesFile();
  const auto expected = ById(RunFacet({"run", "--batch", file, "--seed", "1"}).out);
  for (const std::string number : {"1", "3", "256"}) {
    EXPECT_EQ(ById(RunFacet({"run", "--batch", file, "--seed", "1", "--parallel", number}).out),
              expected)
        << number;
  }
}

TEST(Batch, GivesEachLineASeedOfItsOwnAndTellsIt) {
  const std::string file =
      MakeFile("{\"prompt\":\"Hi\",\"max_tokens\":2}\n{\"prompt\":\"Hi\",\"max_tokens\":2}\n");
  const auto own = ById(RunFacet({"run", "--batch", file}).out);
  ASSERT_EQ(own.size(), 2U);
  EXPECT_NE(own.at("1")["seed"], own.at("2")["seed"]);
  const auto given = ById(RunFacet({"run", "--batch", file, "--seed", "5"}).out);
  EXPECT_EQ(given.at("1")["seed"].as_int(), 5);
  EXPECT_EQ(given.at("2")["seed"].as_int(), 5);
}

TEST(Batch, ReportsBadLinesAndDoesTheRest) {
  const std::string good = R"("prompt":"What is the capital of France?","temperature":0})";
  const std::string file =
      MakeFile("{\"id\":\"a\"," + good + "\nno json\n\n  \n{\"id\":\"b\"," +
               R"("prompt":"x","temperature":101})" + "\n{\"id\":\"a\"," + good +
               "\n{\"id\":\"c\"," + R"("messages":[{"role":"king"}]})" + "\n{\"id\":\"d\"," + good);
  const Finished finished = RunFacet({"run", "--batch", file});
  EXPECT_EQ(finished.exit_code, 1);
  EXPECT_EQ(Summary(finished.err), "answered 2, failed 4, skipped 0");
  std::map<int64_t, Json> by_line;
  for (const Json& line : ParseLines(finished.out)) {
    by_line.emplace(line["line"].as_int(), line);
  }
  ASSERT_EQ(by_line.size(), 6U);
  EXPECT_EQ(by_line[1]["content"].as_string(), "The capital of France is Paris.");
  EXPECT_TRUE(by_line[2]["id"].is_null());
  EXPECT_EQ(by_line[5]["error"]["message"].as_string(),
            "temperature: 101, wanted a number from 0 to 100");
  EXPECT_EQ(by_line[6]["error"]["message"].as_string(),
            "id: \"a\", which an earlier line has, wanted a new one");
  EXPECT_EQ(by_line[7]["id"].as_string(), "c");
  EXPECT_FALSE(by_line[7]["error"]["message"].as_string().empty());
  EXPECT_EQ(by_line[8]["content"].as_string(), "The capital of France is Paris.");
  EXPECT_NE(finished.err.find("facet: line 5: temperature: 101, wanted a number from 0 to 100\n"),
            std::string::npos)
      << finished.err;
}

TEST(Batch, SpeaksOpenAisForm) {
  const auto line = [](const std::string& id, const std::string& body) {
    return R"({"custom_id":")" + id + R"(","method":"POST","url":"/v1/chat/completions","body":)" +
           body + "}\n";
  };
  const std::string question =
      R"("messages":[{"role":"user","content":"What is the capital of France?"}])";
  const std::string media =
      R"({"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}]})";
  const Finished finished =
      RunFacet({"run", "--temp", "0", "--batch", "-"},
               {.input = line("a", "{\"model\":\"m\"," + question + "}") +
                         line("b", "{\"n\":2," + question + "}") + line("c", media),
                .environment = {}});
  EXPECT_EQ(finished.exit_code, 1);
  const auto results = ById(finished.out);
  ASSERT_EQ(results.size(), 3U);
  const Json& a = results.at("\"a\"")["response"];
  EXPECT_EQ(a["status_code"].as_int(), 200);
  EXPECT_EQ(a["body"]["model"].as_string(), "m");
  EXPECT_EQ(a["body"]["choices"].items().at(0)["message"]["content"].as_string(),
            "The capital of France is Paris.");
  EXPECT_EQ(a["body"]["choices"].items().at(0)["finish_reason"].as_string(), "stop");
  const Json& b = results.at("\"b\"")["response"];
  EXPECT_EQ(b["status_code"].as_int(), 400);
  EXPECT_EQ(b["body"]["error"]["message"].as_string(), "body.n: 2, wanted 1");
  EXPECT_EQ(results.at("\"c\"")["response"]["status_code"].as_int(), 400);
}

TEST(Batch, ResumesWhereItWasCut) {
  const std::string folder = MakeTempDir();
  const std::string out = folder + "/out.jsonl";
  std::string input;
  for (int n = 0; n < 6; ++n) {
    input += "{\"id\":\"r" + std::to_string(n) +
             R"(","prompt":"Hello","temperature":0,"max_tokens":)" + (n == 4 ? "0" : "5") + "}\n";
  }
  const std::string file = MakeFile(input);
  const Finished first = RunFacet({"run", "--batch", file, "-o", out});
  EXPECT_EQ(first.exit_code, 1);
  EXPECT_EQ(first.out, "");
  EXPECT_EQ(Summary(first.err), "answered 5, failed 1, skipped 0");

  const std::string whole = ReadOrDie(out);
  ASSERT_TRUE(WriteFile(out, whole.substr(0, whole.size() - 3)).ok());
  const Finished refused = RunFacet({"run", "--batch", file, "-o", out});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_EQ(refused.err, std::string(kEmbedded) + "facet: " + out + ": " +
                             std::to_string(whole.size() - 3) +
                             " bytes are there already, wanted a new file, or --resume\n");

  const Finished second = RunFacet({"run", "--batch", file, "-o", out, "--resume"});
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_EQ(Summary(second.err), "answered 1, failed 1, skipped 4");
  int n_answered = 0;
  std::map<std::string, int> n_of_id;
  for (const Json& line : ParseLines(ReadOrDie(out))) {
    n_answered += line.contains("error") ? 0 : 1;
    n_of_id[line["id"].as_string()] += line.contains("error") ? 0 : 1;
  }
  EXPECT_EQ(n_answered, 5);
  EXPECT_EQ(n_of_id["r4"], 0);
  const Finished third = RunFacet(
      {"run", "--batch", MakeFile(input.substr(0, 60)), "-o", folder + "/new.jsonl", "--resume"});
  EXPECT_NE(third.exit_code, 2) << third.err;
}

TEST(Batch, EndsAtCtrlCWithWhatIsFinished) {
  const std::string folder = MakeTempDir();
  const std::string out = folder + "/out.jsonl";
  // A short reply, then one that would go on for long; the reader of the pipe never sees its end.
  const std::string fifo = folder + "/in";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const int log = ::open((folder + "/err").c_str(), O_WRONLY | O_CREAT, 0600);
    ::dup2(log, STDERR_FILENO);
    ::execl(FACET_PROGRAM, "facet", "run", "--batch", fifo.c_str(), "-o", out.c_str(), nullptr);
    ::_exit(127);
  }
  const int end = ::open(fifo.c_str(), O_WRONLY);
  const std::string input = R"({"id":"short","prompt":"Hi","max_tokens":2})"
                            "\n";
  ASSERT_EQ(::write(end, input.data(), input.size()), static_cast<ssize_t>(input.size()));
  while (!FileExists(out) || ReadOrDie(out).empty()) {
    ::usleep(5000);
    ASSERT_EQ(::waitpid(child, nullptr, WNOHANG), 0);
  }
  ::kill(child, SIGINT);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ::close(end);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 130);
  const auto results = ById(ReadOrDie(out));
  ASSERT_EQ(results.size(), 1U);
  EXPECT_EQ(results.at("\"short\"")["usage"]["completion_tokens"].as_int(), 2);
  EXPECT_EQ(Summary(ReadOrDie(folder + "/err")), "answered 1, failed 0, skipped 0");
}

TEST(Batch, RefusesWhatDoesNotGoTogether) {
  const auto error_of = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "run");
    const Finished finished = RunFacet(arguments);
    EXPECT_EQ(finished.exit_code, 1);
    EXPECT_EQ(finished.out, "");
    return finished.err;
  };
  EXPECT_EQ(error_of({"--batch", "x", "Hello"}),
            "facet: --batch: given with a prompt, wanted one of them\n");
  EXPECT_EQ(error_of({"--batch", "x", "-f", "y"}),
            "facet: --batch: given with a prompt, wanted one of them\n");
  EXPECT_EQ(error_of({"--batch", "x", "--raw"}),
            "facet: --batch: given with --raw, wanted one of them\n");
  EXPECT_EQ(error_of({"--batch", "x", "--trace", "y"}),
            "facet: --batch: given with --trace, wanted one of them\n");
  EXPECT_EQ(error_of({"--batch", "x", "--resume"}),
            "facet: --resume: given without --output, wanted the file of results to go on with\n");
  EXPECT_EQ(error_of({"--output", "x", "Hello"}),
            "facet: --output: given without --batch, wanted a file of requests\n");
  EXPECT_EQ(error_of({"--batch", "/nothing/here"}),
            "facet: /nothing/here: cannot open: No such file or directory\n");
}

}  // namespace
}  // namespace facet::testing
