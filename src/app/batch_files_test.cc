// SPDX-License-Identifier: Apache-2.0
#include "app/batch_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "support/testing.h"

namespace facet {
namespace {

using Kind = LineReader::Line::Kind;

std::string MakeFile(const std::string& text) {
  const std::string path = testing::MakeTempDir() + "/file";
  std::ofstream(path) << text;
  return path;
}

std::vector<LineReader::Line> ReadAll(const std::string& path) {
  Result<LineReader> reader = LineReader::Open(path);
  EXPECT_TRUE(reader.ok());
  std::vector<LineReader::Line> lines;
  while (true) {
    Result<LineReader::Line> line = reader->Next(-1);
    EXPECT_TRUE(line.ok());
    if (!line.ok() || line->kind == Kind::kEnd) {
      return lines;
    }
    lines.push_back(*std::move(line));
  }
}

TEST(LineReader, GivesLinesWithTheirNumbers) {
  const auto lines = ReadAll(MakeFile("a\n\nccc"));
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0].text, "a");
  EXPECT_EQ(lines[1].text, "");
  EXPECT_EQ(lines[2].text, "ccc");
  EXPECT_EQ(lines[2].number, 3);
  EXPECT_TRUE(lines[1].is_ended);
  EXPECT_FALSE(lines[2].is_ended);
  EXPECT_TRUE(ReadAll(MakeFile("")).empty());
}

TEST(LineReader, SkipsALineThatIsTooLong) {
  const std::string most(LineReader::kMaxLineBytes, 'x');
  const auto lines = ReadAll(MakeFile(most + "\n" + most + "x\nb\n" + most + most));
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(lines[0].kind, Kind::kText);
  EXPECT_EQ(lines[0].text.size(), most.size());
  EXPECT_EQ(lines[1].kind, Kind::kTooLong);
  EXPECT_EQ(lines[1].text, "");
  EXPECT_EQ(lines[2].text, "b");
  EXPECT_EQ(lines[2].number, 3);
  EXPECT_EQ(lines[3].kind, Kind::kTooLong);
}

TEST(LineReader, DoesNotWaitForASlowPipe) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  Result<LineReader> reader = LineReader::Open("/dev/fd/" + std::to_string(ends[0]));
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ(reader->Next(0)->kind, Kind::kWaiting);
  ASSERT_EQ(::write(ends[1], "a\nb", 3), 3);
  EXPECT_EQ(reader->Next(0)->text, "a");
  EXPECT_EQ(reader->Next(0)->kind, Kind::kWaiting);
  ASSERT_EQ(::write(ends[1], "c\n", 2), 2);
  EXPECT_EQ(reader->Next(0)->text, "bc");
  ::close(ends[1]);
  EXPECT_EQ(reader->Next(0)->kind, Kind::kEnd);
  ::close(ends[0]);
}

TEST(LineReader, TellsWhatItCannotRead) {
  EXPECT_EQ(LineReader::Open("/nothing/here").error().Message(),
            "/nothing/here: cannot open: No such file or directory");
  const std::string folder = testing::MakeTempDir();
  Result<LineReader> reader = LineReader::Open(folder);
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ(reader->Next(-1).error().Message(), folder + ": cannot read: Is a directory");
}

constexpr const char* kReply = R"({"id":1,"line":1,"content":"x"})";
constexpr const char* kError = R"({"id":2,"line":2,"error":{"message":"x"}})";

TEST(ResultFile, AppendsWholeLines) {
  const std::string path = testing::MakeTempDir() + "/out";
  {
    Result<ResultFile> results = ResultFile::Open(path, false);
    ASSERT_TRUE(results.ok());
    EXPECT_TRUE(results->Write(Json("a")).ok());
    EXPECT_TRUE(results->Write(Json("b")).ok());
  }
  EXPECT_EQ(testing::ReadOrDie(path), "\"a\"\n\"b\"\n");
  EXPECT_EQ(ResultFile::Open(path, false).error().Message(),
            path + ": 8 bytes are there already, wanted a new file, or --resume");
}

TEST(ResultFile, ResumesAfterTheLastWholeLine) {
  const std::string whole = std::string(kReply) + "\n" + kError + "\n";
  const std::string path = MakeFile(whole + R"({"id":3,"line":3,"content":"x"})");
  {
    Result<ResultFile> results = ResultFile::Open(path, true);
    ASSERT_TRUE(results.ok()) << results.error().Message();
    EXPECT_EQ(results->answered(), (std::unordered_set<std::string>{"1"}));
    EXPECT_EQ(testing::ReadOrDie(path), whole);
    EXPECT_TRUE(results->Write(Json("new")).ok());
  }
  EXPECT_EQ(testing::ReadOrDie(path), whole + "\"new\"\n");
}

TEST(ResultFile, RefusesToResumeAnythingElse) {
  const std::string path = MakeFile(std::string(kReply) + "\n{\"a\":1}\n");
  EXPECT_EQ(ResultFile::Open(path, true).error().Message(),
            path + ": line 2: an object, wanted a result of facet run --batch");
  const std::string text = MakeFile("no json\n");
  EXPECT_FALSE(ResultFile::Open(text, true).ok());
  EXPECT_EQ(testing::ReadOrDie(text), "no json\n");
  EXPECT_EQ(ResultFile::Open("/nothing/here", false).error().Message(),
            "/nothing/here: cannot create: No such file or directory");
}

}  // namespace
}  // namespace facet
