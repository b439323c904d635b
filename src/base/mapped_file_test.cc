// SPDX-License-Identifier: Apache-2.0
#include "base/mapped_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <utility>

#include "base/bytes.h"
#include "base/file.h"
#include "support/testing.h"

namespace facet {
namespace {

class MappedFileTest : public ::testing::Test {
 protected:
  [[nodiscard]] std::string Make(const std::string& name, std::string_view bytes) const {
    const std::string path = directory_ + "/" + name;
    EXPECT_TRUE(WriteFile(path, bytes).ok());
    return path;
  }

  std::string directory_ = testing::MakeTempDir();
};

TEST_F(MappedFileTest, ShowsTheBytes) {
  const std::string bytes(100001, 'z');
  const Result<MappedFile> file = MappedFile::Open(Make("a", bytes));
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(AsText(file->bytes()), bytes);
}

TEST_F(MappedFileTest, AnEmptyFileIsEmpty) {
  const Result<MappedFile> file = MappedFile::Open(Make("a", ""));
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE(file->bytes().empty());
}

TEST_F(MappedFileTest, MovesKeepTheAddress) {
  MappedFile first = *MappedFile::Open(Make("a", "first"));
  const std::byte* address = first.bytes().data();
  MappedFile second(std::move(first));
  EXPECT_EQ(second.bytes().data(), address);
  MappedFile third = *MappedFile::Open(Make("b", "third"));
  third = std::move(second);
  EXPECT_EQ(third.bytes().data(), address);
  EXPECT_EQ(AsText(third.bytes()), "first");
}

/// Kilobytes of the process in memory that belong to files.
int64_t FileMemoryKb() {
  const std::string status = *ReadFile("/proc/self/status", 1 << 20);
  return std::stoll(status.substr(status.find("RssFile:") + 8));
}

TEST_F(MappedFileTest, ReleasedBytesLeaveMemoryAndAreReadAgain) {
  constexpr size_t kSize = size_t{32} << 20;
  const std::string bytes(kSize + 123, 'y');
  const Result<MappedFile> file = MappedFile::Open(Make("a", bytes));
  ASSERT_TRUE(file.ok());
  ASSERT_EQ(AsText(file->bytes()), bytes);
  const int64_t before_kb = FileMemoryKb();
  file->Release(file->bytes().subspan(100, kSize));
  EXPECT_LE(FileMemoryKb(), before_kb - int64_t{kSize / 1024} * 9 / 10);
  EXPECT_EQ(AsText(file->bytes()), bytes);
  file->Release(file->bytes().first(10));  // less than a page
  file->Release({});
}

TEST_F(MappedFileTest, OutlivesTheName) {
  const std::string path = Make("a", "kept");
  const Result<MappedFile> file = MappedFile::Open(path);
  ASSERT_TRUE(file.ok());
  ASSERT_EQ(std::remove(path.c_str()), 0);
  EXPECT_EQ(AsText(file->bytes()), "kept");
}

TEST_F(MappedFileTest, RefusesWhatCannotBeMapped) {
  EXPECT_EQ(MappedFile::Open(directory_ + "/missing").error().Message(),
            directory_ + "/missing: cannot open: No such file or directory");
  EXPECT_EQ(MappedFile::Open(directory_).error().Message(),
            directory_ + ": not a regular file, wanted a file");
}

TEST_F(MappedFileTest, APipeIsRefusedAndNotWaitedFor) {
  const std::string path = directory_ + "/pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(MappedFile::Open(path).error().Message(), path + ": not a regular file, wanted a file");
}

}  // namespace
}  // namespace facet
