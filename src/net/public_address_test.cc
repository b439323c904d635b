// SPDX-License-Identifier: Apache-2.0
#include "net/public_address.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>
#include <string>

namespace facet {
namespace {

bool IsPublic(const std::string& text) {
  sockaddr_storage storage = {};
  if (text.find(':') == std::string::npos) {
    sockaddr_in inet = {};
    inet.sin_family = AF_INET;
    EXPECT_EQ(::inet_pton(AF_INET, text.c_str(), &inet.sin_addr), 1) << text;
    std::memcpy(&storage, &inet, sizeof inet);
  } else {
    sockaddr_in6 inet = {};
    inet.sin6_family = AF_INET6;
    EXPECT_EQ(::inet_pton(AF_INET6, text.c_str(), &inet.sin6_addr), 1) << text;
    std::memcpy(&storage, &inet, sizeof inet);
  }
  return IsPublicAddress(reinterpret_cast<const sockaddr&>(storage));
}

TEST(IsPublicAddress, KnowsThePublicNetwork) {
  for (const char* address :
       {"1.1.1.1",         "8.8.8.8",         "9.255.255.255",   "11.0.0.0",
        "100.63.255.255",  "100.128.0.0",     "126.255.255.255", "128.0.0.0",
        "168.63.129.15",   "169.253.255.255", "172.15.255.255",  "172.32.0.0",
        "192.0.1.0",       "192.167.255.255", "198.17.255.255",  "198.20.0.0",
        "223.255.255.255", "2001:200::1",     "2606:4700::1111", "2a00:1450::1",
        "3ffe::1",         "::ffff:8.8.8.8",  "64:ff9b::808:808"}) {
    EXPECT_TRUE(IsPublic(address)) << address;
  }
}

TEST(IsPublicAddress, RefusesTheRest) {
  for (const char* address :
       {"0.0.0.0",       "0.1.2.3",         "10.0.0.0",     "10.255.255.255",
        "100.64.0.0",    "100.100.100.200", "127.0.0.1",    "127.255.255.255",
        "168.63.129.16", "169.254.169.254", "172.16.0.0",   "172.31.255.255",
        "192.0.0.192",   "192.0.2.1",       "192.88.99.1",  "192.168.1.1",
        "198.18.0.1",    "198.19.255.255",  "198.51.100.1", "203.0.113.1",
        "224.0.0.1",     "239.255.255.255", "240.0.0.1",    "255.255.255.255"}) {
    EXPECT_FALSE(IsPublic(address)) << address;
    EXPECT_FALSE(IsPublic(std::string("::ffff:") + address)) << address;
  }
  for (const char* address :
       {"::", "::1", "::7f00:1", "64:ff9b::7f00:1", "64:ff9b:1::808:808", "100::1", "2001::1",
        "2001:1ff::1", "2001:db8::1", "2002:808:808::1", "3fff::1", "fc00::1", "fd00:ec2::254",
        "fe80::1", "fec0::1", "ff02::1"}) {
    EXPECT_FALSE(IsPublic(address)) << address;
  }
  sockaddr local = {};
  local.sa_family = AF_UNIX;
  EXPECT_FALSE(IsPublicAddress(local));
}

}  // namespace
}  // namespace facet
