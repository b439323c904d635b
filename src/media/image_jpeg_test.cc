// SPDX-License-Identifier: Apache-2.0
// What the samples of image_test.cc do not show: damage, bombs, and markers.
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "media/image_testing.h"

namespace facet {
namespace {

using testing::DecodeOk;
using testing::ErrorOf;
using testing::LargestDifference;
using testing::ReadSample;

TEST(Jpeg, TruncatedFilesAreRefused) {
  const std::string wanted = ", wanted a whole file";
  for (const std::string_view file : {"baseline_420.jpg", "progressive_420.jpg", "cmyk.jpg"}) {
    SCOPED_TRACE(file);
    const std::string whole = ReadSample(file);
    EXPECT_EQ(ErrorOf(whole.substr(0, whole.size() / 2)),
              "picture: damaged JPEG data (Premature end of JPEG file)" + wanted);
    EXPECT_EQ(ErrorOf(whole.substr(0, whole.size() - 2)),
              "picture: damaged JPEG data (Premature end of JPEG file)" + wanted);
  }
}

TEST(Jpeg, BytesBetweenMarkersAreHarmless) {
  const std::string whole = ReadSample("baseline_444.jpg");
  std::string padded = whole;
  padded.insert(padded.size() - 2, "padding");
  EXPECT_EQ(LargestDifference(DecodeOk(padded), DecodeOk(whole)), 0);
  EXPECT_EQ(LargestDifference(DecodeOk(whole + "what comes behind"), DecodeOk(whole)), 0);
}

// The first scan of a progressive file again and again: each costs a walk through the picture.
TEST(Jpeg, ScansAreLimited) {
  const std::string whole = ReadSample("progressive_420.jpg");
  const size_t begin = whole.find("\xFF\xDA");
  const size_t end = whole.find("\xFF\xC4", begin);  // tables of the next scan
  ASSERT_NE(end, std::string::npos);
  const auto repeated = [&](int n) {
    std::string file = whole.substr(0, end);
    for (int i = 0; i < n; ++i) {
      file += whole.substr(begin, end - begin);
    }
    return file + whole.substr(end);
  };
  EXPECT_EQ(ErrorOf(repeated(50)), "decoded");
  EXPECT_EQ(ErrorOf(repeated(200)),
            "picture: damaged JPEG data (too many scans), wanted a whole file");
}

TEST(Jpeg, TheSidesOfTheHeaderAreRefusedBeforeMemoryIsTaken) {
  std::string huge = ReadSample("baseline_444.jpg");
  const size_t frame = huge.find("\xFF\xC0");
  ASSERT_NE(frame, std::string::npos);
  huge.replace(frame + 5, 4, "\xF0\x00\xF0\x00", 4);
  EXPECT_EQ(ErrorOf(huge), "picture: 61440 x 61440 pixels, wanted at most 100000000 pixels");
  huge.replace(frame + 5, 4, std::string(4, '\0'));
  EXPECT_EQ(ErrorOf(huge),
            "picture: damaged JPEG data (Empty JPEG image (DNL not supported)), wanted a whole "
            "file");
}

TEST(Jpeg, ABrokenOrientationIsNone) {
  std::string file = ReadSample("exif_orientation_6.jpg");
  const Image turned = DecodeOk(file);
  const size_t exif = file.find("Exif");
  ASSERT_NE(exif, std::string::npos);
  file[exif + 6] = 'X';
  const Image stored = DecodeOk(file);
  EXPECT_EQ(stored.width, turned.height);
  EXPECT_EQ(stored.height, turned.width);
}

}  // namespace
}  // namespace facet
