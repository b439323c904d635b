// SPDX-License-Identifier: Apache-2.0
// With programs that are shell scripts.
#include "media/helper_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <thread>
#include <vector>

#include "base/bytes.h"
#include "base/file.h"
#include "support/testing.h"

namespace facet {
namespace {

std::string Script(const std::string& body) {
  const std::string path = testing::MakeTempDir() + "/program";
  EXPECT_TRUE(WriteFile(path, "#!/bin/sh\nPATH=/usr/bin:/bin\n" + body + "\n").ok());
  EXPECT_EQ(::chmod(path.c_str(), 0700), 0);
  return path;
}

Result<std::unique_ptr<HelperProcess>> Run(const std::string& body, const std::string& input = "",
                                           int timeout_s = 20) {
  return HelperProcess::Start(Script(body), AsBytes("head "), AsBytes(input), timeout_s);
}

/// What the program's first `size` bytes are, or the error.
std::string Output(const std::string& body, size_t size, const std::string& input = "",
                   int timeout_s = 20) {
  const auto process = Run(body, input, timeout_s);
  EXPECT_TRUE(process.ok()) << process.error().Message();
  std::string out(size, ' ');
  const Status status = (*process)->Read(std::as_writable_bytes(std::span(out)));
  return status.ok() ? out : status.error().Message();
}

TEST(HelperProcess, GivesHeadAndBodyAndReadsTheAnswer) {
  EXPECT_EQ(Output("cat", 9, "body"), "head body");
}

TEST(HelperProcess, TakesMuchBothWays) {
  const std::string input(8 << 20, 'x');
  const std::string out = Output("cat; cat /dev/zero", input.size() + 5, input);
  EXPECT_TRUE(out == "head " + input);
}

TEST(HelperProcess, AnEarlyEndTellsHowAndWhy) {
  EXPECT_EQ(Output("echo abc", 5),
            "the decoder stopped (exit code 0), wanted a file that it can decode");
  EXPECT_EQ(Output("echo 'no memory' >&2; echo more >&2; exit 3", 1),
            "the decoder stopped (exit code 3): no memory, wanted a file that it can decode");
  EXPECT_EQ(Output("kill -SYS $$", 1),
            "the decoder stopped (signal SYS), wanted a file that it can decode");
  EXPECT_EQ(Output("printf 'a\\033b\\n' >&2", 1),
            "the decoder stopped (exit code 0): a?b, wanted a file that it can decode");
}

TEST(HelperProcess, AFloodOfComplaintsHoldsNothingUp) {
  EXPECT_EQ(Output("head -c 3000000 /dev/zero | tr '\\0' x >&2; echo ok", 2), "ok");
  EXPECT_EQ(Output("head -c 3000000 /dev/zero | tr '\\0' x >&2", 2),
            "the decoder stopped (exit code 0): " + std::string(200, 'x') +
                ", wanted a file that it can decode");
}

TEST(HelperProcess, AHangIsEndedInTime) {
  EXPECT_EQ(Output("sleep 1000", 1, "", 1),
            "not decoded within 1 s, wanted a file that takes less time");
  // Its output is closed, what it started holds the other pipe.
  EXPECT_EQ(Output("sleep 1000 >/dev/null & exit 0", 1, "", 1),
            "not decoded within 1 s, wanted a file that takes less time");
}

TEST(HelperProcess, LeavesNoProcessBehind) {
  (void)Output("sleep 1000", 1, "", 0);
  (void)Output("exit 1", 1);
  (void)Output("cat", 3);
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST(HelperProcess, InheritsNothing) {
  const int open_file = ::open("/dev/null", O_RDONLY);  // without close on exec
  const std::string wanted = "0 1 2 ";
  EXPECT_EQ(Output("for f in 0 1 2 3 4 5 6 7 8 9; do"
                   " [ -e /proc/$$/fd/$f ] && printf '%s ' $f; done",
                   wanted.size()),
            wanted);
  ::close(open_file);
  EXPECT_EQ(Output("printf '%s.' \"$HOME$USER$TERM\"", 1), ".");
}

TEST(HelperProcess, AProgramThatIsNotThereIsNamed) {
  const auto process = HelperProcess::Start("/nowhere/facet-media", {}, {}, 1);
  ASSERT_FALSE(process.ok());
  EXPECT_EQ(process.error().Message(),
            "/nowhere/facet-media: cannot be started: No such file or directory, "
            "wanted the program facet-media");
}

TEST(HelperProcess, ManyThreadsRunTheirOwn) {
  std::vector<std::thread> threads;
  std::vector<std::string> outputs(8);
  const std::string program = Script("cat");
  for (size_t i = 0; i < outputs.size(); ++i) {
    threads.emplace_back([&, i] {
      const std::string input(1000, static_cast<char>('a' + i));
      const auto process = HelperProcess::Start(program, {}, AsBytes(input), 20);
      outputs[i].resize(input.size());
      if (!process.ok() || !(*process)->Read(std::as_writable_bytes(std::span(outputs[i]))).ok()) {
        outputs[i].clear();
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    EXPECT_EQ(outputs[i], std::string(1000, static_cast<char>('a' + i)));
  }
}

}  // namespace
}  // namespace facet
