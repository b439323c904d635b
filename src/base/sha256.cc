// SPDX-License-Identifier: Apache-2.0
#include "base/sha256.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>

#include "base/bytes.h"
#include "base/check.h"

namespace facet {

struct Sha256::State {
  using Context = std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)>;
  Context context{EVP_MD_CTX_new(), EVP_MD_CTX_free};
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  FACET_CHECK(state_->context != nullptr);
  FACET_CHECK(EVP_DigestInit_ex(state_->context.get(), EVP_sha256(), nullptr) == 1);
}

Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;
Sha256::~Sha256() = default;

void Sha256::Add(std::span<const std::byte> bytes) {
  FACET_CHECK(EVP_DigestUpdate(state_->context.get(), bytes.data(), bytes.size()) == 1);
}

std::string Sha256::Hex() const {
  constexpr std::string_view kDigits = "0123456789abcdef";
  // Of a copy: finishing ends a context.
  const State::Context copy(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  FACET_CHECK(copy != nullptr && EVP_MD_CTX_copy_ex(copy.get(), state_->context.get()) == 1);
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  FACET_CHECK(EVP_DigestFinal_ex(copy.get(), digest.data(), &size) == 1 && size == 32);
  std::string hex;
  hex.reserve(size_t{2} * size);
  for (unsigned int i = 0; i < size; ++i) {
    hex += kDigits[digest[i] >> 4];
    hex += kDigits[digest[i] & 15];
  }
  return hex;
}

std::string Sha256Hex(std::string_view text) {
  Sha256 hash;
  hash.Add(AsBytes(text));
  return hash.Hex();
}

bool IsSha256Hex(std::string_view text) {
  return text.size() == 64 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

}  // namespace facet
