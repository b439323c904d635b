// SPDX-License-Identifier: Apache-2.0
#include "app/history.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "support/testing.h"

namespace facet {
namespace {

using Entries = std::vector<std::string>;

TEST(History, ComesBackFromItsFile) {
  const std::string path = testing::MakeTempDir() + "/state/facet/history";
  {
    auto history = History::Open(path);
    ASSERT_TRUE(history.ok()) << history.error().Message();
    EXPECT_TRUE(history->Add("one\ntwo \\n").ok());
    EXPECT_TRUE(history->Add("one\ntwo \\n").ok());
    EXPECT_TRUE(history->Add("  \n").ok());
    EXPECT_TRUE(history->Add("日本").ok());
  }
  const auto history = History::Open(path);
  ASSERT_TRUE(history.ok());
  EXPECT_EQ(history->entries(), (Entries{"one\ntwo \\n", "日本"}));
}

TEST(History, OnlyItsOwnerMayReadIt) {
  const std::string path = testing::MakeTempDir() + "/state/history";
  auto history = History::Open(path);
  ASSERT_TRUE(history->Add("secret").ok());
  struct stat info {};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
  ASSERT_EQ(::stat(path.substr(0, path.rfind('/')).c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0700U);
}

TEST(History, IsLimited) {
  const std::string path = testing::MakeTempDir() + "/history";
  auto history = History::Open(path);
  for (size_t i = 0; i < History::kMaxEntries + 5; ++i) {
    ASSERT_TRUE(history->Add("entry " + std::to_string(i)).ok());
  }
  ASSERT_TRUE(history->Add(std::string(History::kMaxEntryBytes + 1, 'x')).ok());
  for (int round = 0; round < 2; ++round) {  // The second time from the shortened file.
    const auto again = History::Open(path);
    ASSERT_EQ(again->entries().size(), History::kMaxEntries);
    EXPECT_EQ(again->entries().front(), "entry 5");
    EXPECT_EQ(again->entries().back(), "entry 1004");
  }
}

TEST(History, TellsWhenItCannotBeKept) {
  const std::string folder = testing::MakeTempDir();
  const auto history = History::Open(folder);
  ASSERT_FALSE(history.ok());
  EXPECT_EQ(history.error().Message(), folder + ": a directory, wanted a file");
}

}  // namespace
}  // namespace facet
