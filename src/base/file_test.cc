// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <cstdio>
#include <optional>
#include <utility>

#include "support/testing.h"

namespace facet {
namespace {

constexpr uint64_t kLimit = 1 << 20;

class FileTest : public ::testing::Test {
 protected:
  [[nodiscard]] std::string PathOf(const std::string& name) const {
    return directory_ + "/" + name;
  }
  static std::string TextOf(const std::string& path) { return *ReadFile(path, kLimit); }

  std::string directory_ = testing::MakeTempDir();
};

TEST_F(FileTest, ReadsWhatWasWritten) {
  std::string bytes(200000, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<char>(i * 7);
  }
  ASSERT_TRUE(WriteFile(PathOf("a"), bytes).ok());
  EXPECT_EQ(TextOf(PathOf("a")), bytes);
  EXPECT_TRUE(FileExists(PathOf("a")));
  EXPECT_FALSE(FileExists(PathOf("a.part")));
}

TEST_F(FileTest, WritesAndReadsEmptyFiles) {
  ASSERT_TRUE(WriteFile(PathOf("empty"), "").ok());
  EXPECT_EQ(TextOf(PathOf("empty")), "");
}

TEST_F(FileTest, LimitIsInclusive) {
  ASSERT_TRUE(WriteFile(PathOf("a"), "12345").ok());
  EXPECT_EQ(*ReadFile(PathOf("a"), 5), "12345");
  EXPECT_EQ(ReadFile(PathOf("a"), 4).error().Message(),
            PathOf("a") + ": more bytes than the limit, wanted at most 4");
}

TEST_F(FileTest, RefusesWhatIsNotAFile) {
  EXPECT_EQ(ReadFile(directory_, kLimit).error().Message(),
            directory_ + ": a directory, wanted a file");
  EXPECT_EQ(ReadFile(PathOf("missing"), kLimit).error().Message(),
            PathOf("missing") + ": cannot open: No such file or directory");
}

TEST_F(FileTest, TellsFilesFromDirectories) {
  EXPECT_TRUE(FileExists(directory_));
  EXPECT_TRUE(IsDirectory(directory_));
  ASSERT_TRUE(WriteFile(PathOf("a"), "x").ok());
  EXPECT_FALSE(IsDirectory(PathOf("a")));
  EXPECT_FALSE(FileExists(PathOf("missing")));
  EXPECT_FALSE(IsDirectory(PathOf("missing")));
}

TEST_F(FileTest, NothingIsSeenUnderTheNameBeforeCommit) {
  ASSERT_TRUE(WriteFile(PathOf("a"), "old").ok());
  Result<AtomicFile> file = AtomicFile::Create(PathOf("a"));
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->Write("new ").ok());
  ASSERT_TRUE(file->Write("text").ok());
  EXPECT_EQ(TextOf(PathOf("a")), "old");
  ASSERT_TRUE(file->Commit().ok());
  EXPECT_EQ(TextOf(PathOf("a")), "new text");
  EXPECT_FALSE(FileExists(PathOf("a.part")));
}

TEST_F(FileTest, APrivateFileIsTheOwnersAlone) {
  ASSERT_TRUE(WriteFile(PathOf("a.part"), "left by another").ok());
  Result<AtomicFile> file = AtomicFile::CreatePrivate(PathOf("a"));
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->Write("secret").ok());
  ASSERT_TRUE(file->Commit().ok());
  struct stat info {};
  ASSERT_EQ(::stat(PathOf("a").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
  EXPECT_EQ(TextOf(PathOf("a")), "secret");
}

TEST_F(FileTest, WithoutCommitNothingIsLeft) {
  {
    Result<AtomicFile> file = AtomicFile::Create(PathOf("a"));
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE(file->Write("half").ok());
    EXPECT_TRUE(FileExists(PathOf("a.part")));
  }
  EXPECT_FALSE(FileExists(PathOf("a")));
  EXPECT_FALSE(FileExists(PathOf("a.part")));
}

TEST_F(FileTest, AMovedFromFileOwnsNothing) {
  std::optional<AtomicFile> file(*AtomicFile::Create(PathOf("a")));
  AtomicFile taken(*std::move(file));
  file.reset();
  EXPECT_TRUE(FileExists(PathOf("a.part")));
  ASSERT_TRUE(taken.Write("x").ok());
  ASSERT_TRUE(taken.Commit().ok());
  EXPECT_EQ(TextOf(PathOf("a")), "x");
}

TEST_F(FileTest, CreateSaysWhyNot) {
  EXPECT_EQ(WriteFile(PathOf("no/such/folder"), "x").error().Message(),
            PathOf("no/such/folder") + ": cannot create: No such file or directory");
}

TEST_F(FileTest, WhatIsFinishedWaitsForCommit) {
  {
    Result<AtomicFile> given_up = AtomicFile::Create(PathOf("b"));
    ASSERT_TRUE(given_up.ok() && given_up->Write("y").ok() && given_up->Finish().ok());
    EXPECT_EQ(TextOf(PathOf("b.part")), "y");
  }
  EXPECT_FALSE(FileExists(PathOf("b.part")));
  EXPECT_FALSE(FileExists(PathOf("b")));
  Result<AtomicFile> file = AtomicFile::Create(PathOf("a"));
  ASSERT_TRUE(file.ok() && file->Write("x").ok() && file->Finish().ok());
  EXPECT_FALSE(FileExists(PathOf("a")));
  ASSERT_TRUE(file->Commit().ok());
  EXPECT_EQ(TextOf(PathOf("a")), "x");
  EXPECT_FALSE(FileExists(PathOf("a.part")));
}

TEST_F(FileTest, AFailedRenameLeavesNoPart) {
  EXPECT_EQ(WriteFile(directory_, "x").error().Message(),
            directory_ + ": cannot rename: Is a directory");
  EXPECT_FALSE(FileExists(directory_ + ".part"));
}

/// Makes writing more than `bytes` into any file fail, as a full disk does, while it lives.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : old_handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    (void)::getrlimit(RLIMIT_FSIZE, &old_limit_);
    const rlimit limit{bytes, old_limit_.rlim_max};
    (void)::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    (void)::setrlimit(RLIMIT_FSIZE, &old_limit_);
    (void)std::signal(SIGXFSZ, old_handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  void (*old_handler_)(int);
  rlimit old_limit_{};
};

TEST_F(FileTest, AFullDiskKeepsTheOldFile) {
  ASSERT_TRUE(WriteFile(PathOf("a"), "old").ok());
  const std::string wanted_message = PathOf("a") + ": cannot write: File too large";
  for (const size_t size : {size_t{1000}, size_t{1} << 20}) {  // fails in Commit, fails in Write
    const FileSizeLimit limit(100);
    const Status written = WriteFile(PathOf("a"), std::string(size, 'x'));
    ASSERT_FALSE(written.ok()) << size;
    EXPECT_EQ(written.error().Message(), wanted_message);
  }
  EXPECT_EQ(TextOf(PathOf("a")), "old");
  EXPECT_FALSE(FileExists(PathOf("a.part")));
}

using FileDeathTest = FileTest;

TEST_F(FileDeathTest, WritingAfterCommitAborts) {
  Result<AtomicFile> file = AtomicFile::Create(PathOf("a"));
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->Commit().ok());
  EXPECT_DEATH((void)file->Write("x"), "CHECK failed: file_ != nullptr");
  EXPECT_DEATH((void)file->Finish(), "CHECK failed: file_ != nullptr");
  EXPECT_DEATH((void)file->Commit(), "CHECK failed: !path_.empty");
}

}  // namespace
}  // namespace facet
