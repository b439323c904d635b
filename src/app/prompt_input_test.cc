// SPDX-License-Identifier: Apache-2.0
#include "app/prompt_input.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/file.h"
#include "support/testing.h"

namespace facet {
namespace {

/// Standard input from a file for as long as it lives.
class StandardInput {
 public:
  explicit StandardInput(std::string_view text) : saved_(::dup(STDIN_FILENO)) {
    const std::string path = testing::MakeTempDir() + "/input";
    EXPECT_TRUE(WriteFile(path, text).ok());
    const int file = ::open(path.c_str(), O_RDONLY);
    ::dup2(file, STDIN_FILENO);
    ::close(file);
  }
  ~StandardInput() {
    ::dup2(saved_, STDIN_FILENO);
    ::close(saved_);
  }
  StandardInput(const StandardInput&) = delete;
  StandardInput& operator=(const StandardInput&) = delete;

 private:
  int saved_;
};

std::string TextOf(const Options& options, bool is_exact) {
  const auto text = ReadPromptText(options, is_exact);
  return !text.ok() ? text.error().Message() : text->value_or("none");
}

TEST(ReadPromptText, JoinsWords) {
  const StandardInput input("not read");
  Options options;
  options.words = {"What", "is", "this?"};
  EXPECT_EQ(TextOf(options, false), "What is this?");
}

TEST(ReadPromptText, ReadsStandardInputWhenThereIsNothingElse) {
  const StandardInput input("from a pipe\n");
  EXPECT_EQ(TextOf(Options{}, false), "from a pipe");
}

TEST(ReadPromptText, PutsThePartsInOrder) {
  const StandardInput input("piped\r\n");
  const std::string file = testing::MakeTempDir() + "/prompt";
  ASSERT_TRUE(WriteFile(file, "file\n\n").ok());
  Options options;
  options.prompt = "prompt";
  options.words = {"two", "-", "words"};
  options.file = file;
  EXPECT_EQ(TextOf(options, false), "prompt\n\ntwo words\n\nfile\n\n\npiped");
}

TEST(ReadPromptText, CanKeepTheTextExact) {
  const StandardInput input("line\n");
  Options options;
  options.file = "-";
  EXPECT_EQ(TextOf(options, true), "line\n");
}

TEST(ReadPromptText, RefusesWhatItCannotRead) {
  const StandardInput input("\xff");
  Options options;
  EXPECT_EQ(TextOf(options, false), "standard input: bytes that are not UTF-8, wanted UTF-8 text");
  options.file = "/nothing/here";
  EXPECT_EQ(TextOf(options, false), "/nothing/here: cannot open: No such file or directory");
}

}  // namespace
}  // namespace facet
