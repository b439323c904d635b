// SPDX-License-Identifier: Apache-2.0
#include "app/model_folder.h"

#include <gtest/gtest.h>

#include <filesystem>

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
  std::string ErrorText() {
    std::string text = LookInFolder(folder_).error().Message();
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
  const Result<ModelFolder> found = LookInFolder(folder_);
  ASSERT_TRUE(found.ok()) << found.error().Message();
  EXPECT_EQ(found->model, folder_ + "/b.gguf");
  EXPECT_EQ(found->drafter, folder_ + "/a.gguf");
  EXPECT_EQ(found->projector, folder_ + "/c.gguf");
}

TEST_F(FolderTest, LaterPartsAreNoModelsOfTheirOwn) {
  Link(testing::SourcePath("models/tiny/facet-tiny.gguf"), "m.gguf");
  Link("/nowhere", "x-00002-of-00003.gguf");
  ASSERT_TRUE(LookInFolder(folder_).ok());
}

TEST_F(FolderTest, RefusesNoneAndSeveral) {
  EXPECT_FALSE(IsModelFolder(folder_));
  Write("p.gguf", "clip");
  EXPECT_TRUE(IsModelFolder(folder_));
  EXPECT_EQ(ErrorText(), "DIR: no Gemma 4 model among its .gguf files, wanted a folder with one");
  Write("a.gguf", "gemma4");
  Write("b.gguf", "gemma4");
  EXPECT_EQ(ErrorText(),
            "DIR: two models, DIR/a.gguf and DIR/b.gguf, wanted one of them named with -m");
}

TEST_F(FolderTest, ADirectoryOfHuggingFaceIsNone) {
  EXPECT_FALSE(IsModelFolder(testing::TestdataPath("tiny-hf")));
  EXPECT_FALSE(IsModelFolder(testing::SourcePath("models/tiny/facet-tiny.gguf")));
}

}  // namespace
}  // namespace facet
