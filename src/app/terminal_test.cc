// SPDX-License-Identifier: Apache-2.0
// Modes and signals at a real terminal are tested in tests/cli.
#include "app/terminal.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

#include "base/file.h"
#include "support/testing.h"

namespace facet {
namespace {

TEST(WriteAll, TellsWhyItCannotWrite) {
  const int full = ::open("/dev/full", O_WRONLY);
  const Status status = WriteAll(full, "x", "standard output");
  ::close(full);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().Message(), "standard output: cannot write: No space left on device");
  EXPECT_TRUE(WriteAll(full, "", "nothing").ok());
}

TEST(StyleOf, AFileHasNoColours) {
  const int file = ::open("/dev/null", O_WRONLY);
  EXPECT_TRUE(StyleOf(file, false).dim.empty());
  EXPECT_FALSE(IsTerminal(file));
  EXPECT_EQ(SizeOfTerminal(file).columns, 80);
  ::close(file);
}

TEST(InterruptGuard, NotesTheFirstCtrlC) {
  InstallSignalHandlers();
  for (int round = 0; round < 2; ++round) {
    const InterruptGuard guard;
    EXPECT_FALSE(guard.is_interrupted());
    std::raise(SIGINT);
    EXPECT_TRUE(guard.is_interrupted());
  }
}

TEST(InstallSignalHandlers, CtrlCEndsWith130AndRemovesTheUnfinishedFile) {
  const std::string path = testing::MakeTempDir() + "/out.part";
  ASSERT_TRUE(WriteFile(path, "half").ok());
  EXPECT_EXIT(
      {
        InstallSignalHandlers();
        RemoveOnInterrupt(path);
        std::raise(SIGINT);
      },
      ::testing::ExitedWithCode(130), "");
  EXPECT_FALSE(FileExists(path));
}

TEST(InstallSignalHandlers, TheEndRemovesSeveralUnfinishedFiles) {
  const std::string folder = testing::MakeTempDir();
  const std::vector<std::string> paths = {folder + "/a.part", folder + "/b.part"};
  for (const std::string& path : {paths[0], paths[1], folder + "/c.part"}) {
    ASSERT_TRUE(WriteFile(path, "half").ok());
  }
  EXPECT_EXIT(
      {
        InstallSignalHandlers();
        RemoveOnInterrupt(folder + "/c.part");
        RemoveOnInterrupt(paths);
        std::raise(SIGTERM);
      },
      ::testing::KilledBySignal(SIGTERM), "");
  EXPECT_FALSE(FileExists(paths[0]) || FileExists(paths[1]));
  EXPECT_TRUE(FileExists(folder + "/c.part"));
}

TEST(InstallSignalHandlers, TheSecondCtrlCEndsAnyway) {
  EXPECT_EXIT(
      {
        InstallSignalHandlers();
        const InterruptGuard guard;
        std::raise(SIGINT);
        std::raise(SIGINT);
      },
      ::testing::ExitedWithCode(130), "");
}

TEST(TakeResize, IsToldOnce) {
  InstallSignalHandlers();
  TakeResize();
  std::raise(SIGWINCH);
  EXPECT_TRUE(TakeResize());
  EXPECT_FALSE(TakeResize());
}

}  // namespace
}  // namespace facet
