// SPDX-License-Identifier: Apache-2.0
#include "net/public_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>

namespace facet {
namespace {

/// Addresses of which the first `n_bits` are those of `start`; of IPv6 no block needs more bytes.
struct Block {
  std::array<uint8_t, 4> start;
  int n_bits;
};

// The special-purpose registry of IANA, and the address of a cloud that stands among public ones.
constexpr Block kClosed4[] = {
    {{0, 0, 0, 0}, 8},         // this network
    {{10, 0, 0, 0}, 8},        // private
    {{100, 64, 0, 0}, 10},     // shared by a provider's customers
    {{127, 0, 0, 0}, 8},       // loopback
    {{168, 63, 129, 16}, 32},  // a cloud host's own services
    {{169, 254, 0, 0}, 16},    // link-local, with the metadata of clouds
    {{172, 16, 0, 0}, 12},     // private
    {{192, 0, 0, 0}, 24},      // protocols
    {{192, 0, 2, 0}, 24},      // documentation
    {{192, 88, 99, 0}, 24},    // relays of 6to4
    {{192, 168, 0, 0}, 16},    // private
    {{198, 18, 0, 0}, 15},     // benchmarks
    {{198, 51, 100, 0}, 24},   // documentation
    {{203, 0, 113, 0}, 24},    // documentation
    {{224, 0, 0, 0}, 4},       // multicast
    {{240, 0, 0, 0}, 4},       // reserved, broadcast
};

// Within 2000::/3, which is all that is given out.
constexpr Block kClosed6[] = {
    {{0x20, 0x01, 0x00, 0x00}, 23},  // protocols, Teredo
    {{0x20, 0x01, 0x0d, 0xb8}, 32},  // documentation
    {{0x20, 0x02, 0x00, 0x00}, 16},  // 6to4: any IPv4 inside
    {{0x3f, 0xff, 0x00, 0x00}, 20},  // documentation
};

constexpr std::array<uint8_t, 12> kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
constexpr std::array<uint8_t, 12> kTranslated = {0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0};

uint32_t Number(const uint8_t* bytes) {
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | bytes[3];
}

/// `start`: the first four bytes of an address.
bool IsIn(std::span<const Block> blocks, uint32_t start) {
  return std::any_of(blocks.begin(), blocks.end(), [&](const Block& block) {
    return (start ^ Number(block.start.data())) >> (32 - block.n_bits) == 0;
  });
}

bool IsPublic4(const uint8_t* bytes) { return !IsIn(kClosed4, Number(bytes)); }

bool IsPublic6(const uint8_t* bytes) {
  if (std::equal(kMapped.begin(), kMapped.end(), bytes) ||
      std::equal(kTranslated.begin(), kTranslated.end(), bytes)) {
    return IsPublic4(bytes + kMapped.size());
  }
  return bytes[0] >> 5 == 1 && !IsIn(kClosed6, Number(bytes));
}

}  // namespace

bool IsPublicAddress(const sockaddr& address) {
  std::array<uint8_t, 16> bytes = {};
  if (address.sa_family == AF_INET) {
    sockaddr_in inet = {};
    std::memcpy(&inet, &address, sizeof inet);
    std::memcpy(bytes.data(), &inet.sin_addr, 4);
    return IsPublic4(bytes.data());
  }
  if (address.sa_family == AF_INET6) {
    sockaddr_in6 inet = {};
    std::memcpy(&inet, &address, sizeof inet);
    std::memcpy(bytes.data(), &inet.sin6_addr, bytes.size());
    return IsPublic6(bytes.data());
  }
  return false;
}

}  // namespace facet
