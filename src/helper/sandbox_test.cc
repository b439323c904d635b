// SPDX-License-Identifier: Apache-2.0
// The program confines itself and then tries to get out.
#include "helper/sandbox.h"

#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>

#include <array>
#include <csignal>
#include <string>

#include "helper/helper_testing.h"

namespace facet::helper {
namespace {

/// The status that waitpid gives of `facet-media --self-test HOW`.
int StatusOf(const std::string& how) {
  std::array<std::string, 3> words = {FACET_MEDIA_PROGRAM, "--self-test", how};
  std::array<char*, 4> arguments = {words[0].data(), words[1].data(), words[2].data(), nullptr};
  std::array<char*, 1> environment = {nullptr};
  pid_t child = -1;
  int status = -1;
  EXPECT_EQ(::posix_spawn(&child, words[0].c_str(), nullptr, nullptr, arguments.data(),
                          environment.data()),
            0);
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

TEST(Sandbox, KillsForWhatIsNotOnItsList) {
  if (!CanBeConfined()) {
    GTEST_SKIP() << "sanitizers cannot be confined";
  }
  for (const char* how : {"file", "socket", "process", "code", "signal", "abort"}) {
    const int status = StatusOf(how);
    ASSERT_TRUE(WIFSIGNALED(status)) << how << ", exit code " << WEXITSTATUS(status);
    EXPECT_EQ(WTERMSIG(status), SIGSYS) << how;
  }
}

TEST(Sandbox, LetsPassWhatIsOnItsList) {
  if (!CanBeConfined()) {
    GTEST_SKIP() << "sanitizers cannot be confined";
  }
  const int status = StatusOf("nothing");
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 1);
}

}  // namespace
}  // namespace facet::helper
