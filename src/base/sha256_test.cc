// SPDX-License-Identifier: Apache-2.0
#include "base/sha256.h"

#include <gtest/gtest.h>

#include "base/bytes.h"

namespace facet {
namespace {

// The examples of FIPS 180-4 and of its validation programme.
TEST(Sha256, IsThatOfTheStandard) {
  EXPECT_EQ(Sha256Hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Sha256Hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(Sha256Hex(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, DoesNotDependOnThePieces) {
  Sha256 hash;
  EXPECT_EQ(hash.Hex(), Sha256Hex(""));
  hash.Add(AsBytes("a"));
  EXPECT_EQ(hash.Hex(), Sha256Hex("a"));
  hash.Add(AsBytes(""));
  hash.Add(AsBytes("bc"));
  EXPECT_EQ(hash.Hex(), Sha256Hex("abc"));
}

TEST(IsSha256Hex, WantsLowerCaseDigitsAndAllOfThem) {
  EXPECT_TRUE(IsSha256Hex(Sha256Hex("")));
  EXPECT_FALSE(IsSha256Hex(""));
  EXPECT_FALSE(IsSha256Hex(Sha256Hex("").substr(1)));
  EXPECT_FALSE(IsSha256Hex(Sha256Hex("").substr(1) + "G"));
  EXPECT_FALSE(IsSha256Hex(Sha256Hex("").substr(1) + "A"));
}

}  // namespace
}  // namespace facet
