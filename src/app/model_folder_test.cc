// SPDX-License-Identifier: Apache-2.0
#include "app/model_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <utility>

#include "base/file.h"
#include "format/gguf.h"
#include "support/testing.h"

namespace facet {
namespace {

class FolderTest : public ::testing::Test {
 protected:
  void Link(const std::string& file, const std::string& name) {
    std::filesystem::create_symlink(file, folder_ + "/" + name);
  }
  void Write(const std::string& name, const std::string& architecture) {
    gguf::Metadata metadata;
    metadata.Set("general.architecture", gguf::Value::String(architecture));
    ASSERT_TRUE(gguf::Write(folder_ + "/" + name, metadata, {}, {}).ok());
  }
  ModelFolder Look() {
    Result<ModelFolder> found = LookInFolder(folder_);
    EXPECT_TRUE(found.ok());
    return *std::move(found);
  }
  std::string TextOf(const Error& error) {
    std::string text = error.Message();
    for (size_t at = text.find(folder_); at != std::string::npos; at = text.find(folder_)) {
      text.replace(at, folder_.size(), "DIR");
    }
    return text;
  }

  std::string folder_ = testing::MakeTempDir();
};

TEST_F(FolderTest, TellsModelProjectorAndDrafterApart) {
  Link(testing::SourcePath("models/tiny/facet-tiny.gguf"), "b.gguf");
  Link(testing::TestdataPath("text/gguf/dense-keqv-assistant-Q8_0.gguf"), "a.gguf");
  Write("c.gguf", "clip");
  Write("note.txt", "gemma4");
  EXPECT_TRUE(IsModelFolder(folder_));
  const ModelFolder found = Look();
  EXPECT_EQ(*found.Model(), folder_ + "/b.gguf");
  EXPECT_EQ(*found.Drafter(), folder_ + "/a.gguf");
  EXPECT_EQ(*found.ProjectorOrNone(), folder_ + "/c.gguf");
}

TEST_F(FolderTest, KnowsDraftersByEachSpelling) {
  for (const char* architecture : {"gemma4-assistant", "gemma4_assistant", "gemma4_mtp"}) {
    Write("d.gguf", architecture);
    EXPECT_EQ(*Look().Drafter(), folder_ + "/d.gguf") << architecture;
  }
}

TEST_F(FolderTest, LaterPartsAreNoModelsOfTheirOwn) {
  Link(testing::SourcePath("models/tiny/facet-tiny.gguf"), "m.gguf");
  Link("/nowhere", "x-00002-of-00003.gguf");
  EXPECT_EQ(*Look().Model(), folder_ + "/m.gguf");
  EXPECT_TRUE(Look().unreadable.empty());
}

TEST_F(FolderTest, RefusesNoneAndSeveral) {
  EXPECT_FALSE(IsModelFolder(folder_));
  Write("p.gguf", "clip");
  EXPECT_TRUE(IsModelFolder(folder_));
  EXPECT_EQ(TextOf(Look().Model().error()),
            "DIR: no Gemma 4 model among its .gguf files, wanted a folder with one");
  EXPECT_EQ(TextOf(Look().Drafter().error()),
            "DIR: no drafter among its .gguf files, wanted a folder with one");
  Write("a.gguf", "gemma4");
  Write("b.gguf", "gemma4");
  EXPECT_EQ(TextOf(Look().Model().error()),
            "DIR: two models, DIR/a.gguf and DIR/b.gguf, wanted one of them named with -m");
}

TEST_F(FolderTest, RefusesSeveralCompanionsOnlyWhereOneIsAskedFor) {
  Write("m.gguf", "gemma4");
  EXPECT_EQ(*Look().DrafterOrNone(), "");
  for (const char* name : {"d1.gguf", "d2.gguf"}) {
    Write(name, "gemma4-assistant");
    Write(std::string("p") + name, "clip");
  }
  const ModelFolder found = Look();
  EXPECT_TRUE(found.Model().ok());
  EXPECT_EQ(TextOf(found.DrafterOrNone().error()),
            "DIR: two drafters, DIR/d1.gguf and DIR/d2.gguf, wanted one of them named with "
            "--draft");
  EXPECT_EQ(TextOf(found.ProjectorOrNone().error()),
            "DIR: two projectors, DIR/pd1.gguf and DIR/pd2.gguf, wanted one of them named with "
            "--mmproj");
}

TEST_F(FolderTest, AFileThatCannotBeReadIsInTheWayOfNoOther) {
  ASSERT_TRUE(WriteFile(folder_ + "/d.gguf", "GGUF").ok());
  EXPECT_EQ(Look().Model().error().where, folder_ + "/d.gguf, byte 4");
  EXPECT_EQ(Look().Drafter().error().where, folder_ + "/d.gguf, byte 4");
  Write("m.gguf", "gemma4");
  EXPECT_EQ(*Look().Model(), folder_ + "/m.gguf");
  EXPECT_EQ(Look().unreadable.size(), 1U);
}

TEST_F(FolderTest, ADirectoryOfHuggingFaceIsNone) {
  EXPECT_FALSE(IsModelFolder(testing::TestdataPath("tiny-hf")));
  EXPECT_FALSE(IsModelFolder(testing::SourcePath("models/tiny/facet-tiny.gguf")));
}

}  // namespace
}  // namespace facet
