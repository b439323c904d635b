// SPDX-License-Identifier: Apache-2.0
// `facet convert` as a user runs it: what it prints, its exit codes, and what is left when it
// fails.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "cli/process.h"
#include "format/gguf.h"
#include "support/testing.h"

namespace facet::testing {
namespace {

constexpr std::string_view kQuestion = "What is the capital of France?";
constexpr std::string_view kAnswer = "The capital of France is Paris.\n";
constexpr std::string_view kLeftOut = "258 tensors of the vision and audio parts are left out\n";

void ExpectFailure(const std::vector<std::string>& arguments, int exit_code,
                   const std::string& message) {
  const Finished finished = RunFacet(arguments);
  EXPECT_EQ(finished.exit_code, exit_code) << message;
  EXPECT_EQ(finished.out, "");
  EXPECT_EQ(finished.err, "facet: " + message + "\n");
}

std::string Answer(const std::string& model) {
  return RunFacet({"run", "-m", model, "--temp", "0", std::string(kQuestion)}).out;
}

TEST(ConvertCommand, MakesAFileThatRuns) {
  const std::string out = MakeTempDir() + "/tiny.gguf";
  const Finished converted =
      RunFacet({"convert", "--name", "My tiny", TestdataPath("tiny-hf"), out});
  EXPECT_EQ(converted.exit_code, 0);
  EXPECT_EQ(converted.out, "");
  EXPECT_EQ(converted.err, kLeftOut);
  EXPECT_EQ(Answer(out), kAnswer);
  const auto file = gguf::File::Open(out);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(*file->metadata().Find("general.name")->AsString(), "My tiny");
}

TEST(ConvertCommand, MakesSeveralFilesThatRun) {
  const std::string folder = MakeTempDir();
  const Finished converted = RunFacet({"convert", "--outtype", "q8_0", "--split-max-size", "900K",
                                       TestdataPath("tiny-hf"), folder + "/tiny.gguf"});
  EXPECT_EQ(converted.exit_code, 0);
  const std::string first = folder + "/tiny-00001-of-00005.gguf";
  EXPECT_EQ(converted.err,
            std::string(kLeftOut) + "5 files, to be opened by the first: " + first + "\n");
  EXPECT_EQ(Answer(first), kAnswer);
  EXPECT_FALSE(FileExists(folder + "/tiny.gguf"));
}

TEST(ConvertCommand, RefusesWrongUsage) {
  const std::string folder = MakeTempDir();
  ExpectFailure({"convert", folder + "/a", folder + "/b.gguf"}, 1,
                folder + "/a: nothing there, wanted a Hugging Face directory");
  ExpectFailure({"convert", folder, folder + "/b"}, 1,
                "facet convert: \"" + folder + "/b\", wanted a name that ends in .gguf");
  for (const std::string size : {"0", "2T", "M", "-1", "1.5G", "18446744073709551615K"}) {
    ExpectFailure({"convert", "--split-max-size=" + size, folder, folder + "/b.gguf"}, 1,
                  "--split-max-size: \"" + size + "\", wanted a size such as 300M or 2G");
  }
  const std::string directory = folder + "/d.gguf";
  std::filesystem::create_directory(directory);
  ExpectFailure({"convert", TestdataPath("tiny-hf"), directory}, 1,
                directory + ": a directory, wanted the name of a file");
  const std::string nowhere = folder + "/no/out.gguf";
  ExpectFailure({"convert", TestdataPath("tiny-hf"), nowhere}, 1,
                nowhere + ": cannot create: No such file or directory");
}

TEST(ConvertCommand, RefusesAModelWithCode2) {
  const std::string folder = MakeTempDir();
  ExpectFailure({"convert", folder, folder + "/b.gguf"}, 2,
                folder + "/config.json: cannot open: No such file or directory");
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

TEST(ConvertCommand, MakesADrafter) {
  const std::string folder = MakeTempDir();
  const std::string out = folder + "/drafter.gguf";
  const Finished plain = RunFacet({"convert", "--outtype", "q8_0", "--name", "Facet Tiny Drafter",
                                   TestdataPath("tiny-assistant"), out});
  EXPECT_EQ(plain.exit_code, 0);
  EXPECT_EQ(plain.err,
            "without a tokenizer, which Facet does not need and llama.cpp does: --tokenizer lends "
            "one\n");
  const Finished shown = RunFacet({"inspect", "--draft", out});
  EXPECT_NE(shown.out.find("  head          64 centroids, the best 8 are scored\n"),
            std::string::npos);
  EXPECT_EQ(shown.out.find("not used"), std::string::npos);
  const std::string dense = folder + "/dense.gguf";
  const Finished lent = RunFacet({"convert", "--no-centroids", "--tokenizer",
                                  TestdataPath("tiny-hf"), TestdataPath("tiny-assistant"), dense});
  EXPECT_EQ(lent.exit_code, 0);
  EXPECT_EQ(lent.err, "");
  const auto file = gguf::File::Open(dense);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->Find("masked_embd_centroids.weight"), nullptr);
  EXPECT_NE(file->metadata().Find("tokenizer.ggml.tokens"), nullptr);
}

/// Runs a line of shell in a fresh folder with $FACET and $IN set; what is left there afterwards,
/// but for the file `err`.
class Shell {
 public:
  int Run(const std::string& line) {
    const std::string command = "cd " + folder_ +
                                " && FACET=" FACET_PROGRAM " IN=" + TestdataPath("tiny-hf") +
                                " && { " + line + "; } 2> err";
    return WEXITSTATUS(std::system(command.c_str()));
  }
  [[nodiscard]] std::string Errors() const { return ReadOrDie(folder_ + "/err"); }
  [[nodiscard]] std::vector<std::string> Left() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      if (entry.path().filename() != "err") {
        names.push_back(entry.path().filename());
      }
    }
    return names;
  }
  [[nodiscard]] std::string PathOf(const std::string& name) const { return folder_ + "/" + name; }

 private:
  std::string folder_ = MakeTempDir();
};

/// A limit of file sizes stands in for a disk that is full: writing fails in the same way.
TEST(ConvertCommand, AFullDiskLeavesNothing) {
  for (const std::string options : {"", "--split-max-size 2M"}) {
    Shell shell;
    EXPECT_EQ(
        shell.Run("trap '' XFSZ; ulimit -f 1000; $FACET convert " + options + " $IN out.gguf"), 1);
    EXPECT_TRUE(shell.Errors().starts_with("facet: out")) << shell.Errors();
    EXPECT_TRUE(shell.Errors().ends_with(": cannot write: File too large\n")) << shell.Errors();
    EXPECT_EQ(shell.Left(), std::vector<std::string>());
  }
}

/// The file that is written is a pipe that nobody empties, so that the signal finds the program at
/// work.
TEST(ConvertCommand, CtrlCLeavesNothing) {
  Shell shell;
  ASSERT_EQ(::mkfifo(shell.PathOf("out.gguf.part").c_str(), 0600), 0);
  EXPECT_EQ(shell.Run("$FACET convert $IN out.gguf & exec 3< out.gguf.part; "
                      "head -c 1000 <&3 > /dev/null; kill -INT $!; wait $!"),
            130);
  EXPECT_EQ(shell.Left(), std::vector<std::string>());
}

TEST(ConvertCommand, CtrlCLeavesNoPart) {
  Shell shell;
  ASSERT_EQ(::mkfifo(shell.PathOf("out-00002-of-00004.gguf.part").c_str(), 0600), 0);
  EXPECT_EQ(shell.Run("$FACET convert --split-max-size 2M $IN out.gguf & "
                      "exec 3< out-00002-of-00004.gguf.part; head -c 1000 <&3 > /dev/null; "
                      "ls out-00001-of-00004.gguf.part > seen; kill -INT $!; wait $!"),
            130);
  EXPECT_EQ(shell.Left(), std::vector<std::string>{"seen"});
  EXPECT_EQ(ReadOrDie(shell.PathOf("seen")), "out-00001-of-00004.gguf.part\n");
}

}  // namespace
}  // namespace facet::testing
