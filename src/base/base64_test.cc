// SPDX-License-Identifier: Apache-2.0
#include "base/base64.h"

#include <gtest/gtest.h>

namespace facet {
namespace {

std::string Decoded(std::string_view text, size_t max_bytes = 100) {
  const auto bytes = DecodeBase64(text, max_bytes, "data");
  return bytes.ok() ? *bytes : "error: " + bytes.error().Message();
}

TEST(DecodeBase64, ReadsTheVectorsOfTheStandard) {
  EXPECT_EQ(Decoded(""), "");
  EXPECT_EQ(Decoded("Zg=="), "f");
  EXPECT_EQ(Decoded("Zm8="), "fo");
  EXPECT_EQ(Decoded("Zm9v"), "foo");
  EXPECT_EQ(Decoded("Zm9vYg=="), "foob");
  EXPECT_EQ(Decoded("Zm9vYmE="), "fooba");
  EXPECT_EQ(Decoded("Zm9vYmFy"), "foobar");
  EXPECT_EQ(Decoded("AP/+"), std::string("\0\xff\xfe", 3));
}

TEST(DecodeBase64, IsStrict) {
  constexpr std::string_view kLength =
      ", wanted a multiple of 4, with = at the end where it takes them";
  constexpr std::string_view kSigns = ", wanted A-Z, a-z, 0-9, + and /";
  const auto at = [&](int n) {
    return "error: data: a character that is no base64 at " + std::to_string(n) +
           std::string(kSigns);
  };
  EXPECT_EQ(Decoded("Zg"), "error: data: base64 of 2 characters" + std::string(kLength));
  EXPECT_EQ(Decoded("Zm9v\n"), "error: data: base64 of 5 characters" + std::string(kLength));
  EXPECT_EQ(Decoded("Zm9v Zm9"), at(4));
  EXPECT_EQ(Decoded("Zm-_"), at(2));
  EXPECT_EQ(Decoded("Z==="), at(1));
  EXPECT_EQ(Decoded("===="), at(0));
  EXPECT_EQ(Decoded("Zg==Zg=="), at(2));
  EXPECT_EQ(Decoded("Zm9\xc3"), at(3));
  EXPECT_EQ(Decoded("Zh=="), "error: data: base64 with bits behind its last byte, wanted none");
  EXPECT_EQ(Decoded("Zm9="), "error: data: base64 with bits behind its last byte, wanted none");
}

TEST(DecodeBase64, HasALimit) {
  EXPECT_EQ(Decoded("Zm9vYg==", 4), "foob");
  EXPECT_EQ(Decoded("Zm9vYmE=", 4), "error: data: 5 bytes, wanted at most 4");
}

}  // namespace
}  // namespace facet
