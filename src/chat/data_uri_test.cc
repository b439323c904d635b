// SPDX-License-Identifier: Apache-2.0
#include "chat/data_uri.h"

#include <gtest/gtest.h>

namespace facet {
namespace {

std::string Decoded(std::string_view uri) {
  const auto bytes = DecodeDataUri(uri, 5, "url");
  return bytes.ok() ? *bytes : "error: " + bytes.error().Message();
}

TEST(DecodeDataUri, ReadsBase64OfAnyType) {
  EXPECT_TRUE(IsDataUri("data:,"));
  EXPECT_TRUE(IsDataUri("Data:image/png;base64,"));
  EXPECT_FALSE(IsDataUri("dat"));
  EXPECT_FALSE(IsDataUri("https://host/data:"));
  EXPECT_EQ(Decoded("data:image/png;base64,Zm9v"), "foo");
  EXPECT_EQ(Decoded("DATA:;BASE64,Zm9v"), "foo");
  EXPECT_EQ(Decoded("data:text/plain;charset=utf-8;base64,Zg=="), "f");
}

TEST(DecodeDataUri, RefusesWhatIsNone) {
  constexpr std::string_view kError =
      "error: url: a data URI without base64, wanted data:TYPE;base64,DATA";
  for (const char* uri : {"data:", "data:,foo", "data:image/png,foo", "data:;base64",
                          "data:;base64;x,Zm9v", "data:base64,Zm9v"}) {
    EXPECT_EQ(Decoded(uri), kError) << uri;
  }
  EXPECT_EQ(Decoded("data:" + std::string(300, 'a') + ";base64,Zm9v"), kError);
  EXPECT_EQ(Decoded("data:;base64,Zm9vYmFy"), "error: url: 6 bytes, wanted at most 5");
  EXPECT_EQ(Decoded("data:;base64,Zm9"),
            "error: url: base64 of 3 characters, wanted a multiple of 4, with = at the end where "
            "it takes them");
}

}  // namespace
}  // namespace facet
