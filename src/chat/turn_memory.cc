// SPDX-License-Identifier: Apache-2.0
#include "chat/turn_memory.h"

#include <algorithm>
#include <array>
#include <list>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace facet {
namespace {

constexpr char kIdFollows = '\xFF';
constexpr size_t kEntryBytes = 160;  // of an entry, besides its tokens

/// What a token adds to the text that entries are found by: its bytes, or, where it is more than
/// text, a byte that no UTF-8 has and its id.
class Spelling {
 public:
  Spelling(const Vocab& vocab, int32_t token) : bytes_(vocab.bytes(token)) {
    const TokenKind kind = vocab.kind(token);
    const bool is_text = kind == TokenKind::kNormal || kind == TokenKind::kByte;
    has_id_ = !is_text || bytes_ == std::string_view(&kIdFollows, 1);
    const auto id = static_cast<uint32_t>(token);
    id_ = {kIdFollows, static_cast<char>(id), static_cast<char>(id >> 8),
           static_cast<char>(id >> 16), static_cast<char>(id >> 24)};
  }

  /// Lives as long as this and the vocabulary.
  [[nodiscard]] std::string_view text() const {
    return has_id_ ? std::string_view(id_.data(), id_.size()) : bytes_;
  }

 private:
  std::string_view bytes_;
  bool has_id_;
  std::array<char, 5> id_;
};

/// Grows with the text, however that is divided.
class TextHash {
 public:
  explicit TextHash(std::string_view salt) {
    Add(salt);
    Add(std::string_view(&kIdFollows, 1));
  }
  void Add(std::string_view text) {
    for (const char c : text) {
      value_ = (value_ ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
    }
  }
  [[nodiscard]] uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0xCBF29CE484222325u;
};

bool SpellTheSame(const Vocab& vocab, std::span<const int32_t> a, std::span<const int32_t> b) {
  Spelling spelling_a(vocab, a.front());
  Spelling spelling_b(vocab, b.front());
  std::string_view rest_a = spelling_a.text();
  std::string_view rest_b = spelling_b.text();
  size_t n_a = 1;
  size_t n_b = 1;
  while (true) {
    const size_t n_bytes = std::min(rest_a.size(), rest_b.size());
    if (rest_a.substr(0, n_bytes) != rest_b.substr(0, n_bytes)) {
      return false;
    }
    rest_a.remove_prefix(n_bytes);
    rest_b.remove_prefix(n_bytes);
    if (rest_a.empty() && n_a < a.size()) {
      spelling_a = Spelling(vocab, a[n_a++]);
      rest_a = spelling_a.text();
    } else if (rest_b.empty() && n_b < b.size()) {
      spelling_b = Spelling(vocab, b[n_b++]);
      rest_b = spelling_b.text();
    } else {
      return rest_a.empty() && rest_b.empty() && n_a == a.size() && n_b == b.size();
    }
  }
}

}  // namespace

struct TurnMemory::State {
  struct Entry {
    uint64_t hash;  // of salt and text
    std::string salt;
    std::vector<int32_t> tokens;

    [[nodiscard]] size_t bytes() const {
      return kEntryBytes + salt.size() + tokens.size() * sizeof(int32_t);
    }
  };
  using Entries = std::list<Entry>;

  const Vocab* vocab;
  size_t max_bytes;
  std::mutex mutex;
  Entries entries;  // the one used last comes first
  std::unordered_map<uint64_t, Entries::iterator> by_hash;
  size_t n_bytes = 0;

  void Drop(Entries::iterator entry) {
    n_bytes -= entry->bytes();
    by_hash.erase(entry->hash);
    entries.erase(entry);
  }
};

TurnMemory::TurnMemory(const Vocab* vocab, size_t max_bytes) : state_(std::make_unique<State>()) {
  state_->vocab = vocab;
  state_->max_bytes = max_bytes;
}

TurnMemory::~TurnMemory() = default;

void TurnMemory::Remember(std::span<const int32_t> prompt, std::span<const int32_t> reply,
                          std::string_view salt) {
  State::Entry entry;
  entry.salt = salt;
  entry.tokens.reserve(prompt.size() + reply.size());
  entry.tokens.insert(entry.tokens.end(), prompt.begin(), prompt.end());
  entry.tokens.insert(entry.tokens.end(), reply.begin(), reply.end());
  if (reply.empty() || entry.bytes() > state_->max_bytes) {
    return;
  }
  TextHash hash(salt);
  for (const int32_t token : entry.tokens) {
    hash.Add(Spelling(*state_->vocab, token).text());
  }
  entry.hash = hash.value();
  const std::lock_guard lock(state_->mutex);
  if (const auto same = state_->by_hash.find(entry.hash); same != state_->by_hash.end()) {
    state_->Drop(same->second);
  }
  state_->n_bytes += entry.bytes();
  state_->entries.push_front(std::move(entry));
  state_->by_hash.emplace(state_->entries.front().hash, state_->entries.begin());
  while (state_->n_bytes > state_->max_bytes) {
    state_->Drop(std::prev(state_->entries.end()));
  }
}

std::vector<int32_t> TurnMemory::Restore(std::vector<int32_t> prompt, std::string_view salt) const {
  std::vector<uint64_t> hashes;  // of the text up to and with each token
  hashes.reserve(prompt.size());
  TextHash hash(salt);
  for (const int32_t token : prompt) {
    hash.Add(Spelling(*state_->vocab, token).text());
    hashes.push_back(hash.value());
  }
  const std::lock_guard lock(state_->mutex);
  for (size_t n = prompt.size(); n > 0; --n) {
    const auto found = state_->by_hash.find(hashes[n - 1]);
    if (found == state_->by_hash.end()) {
      continue;
    }
    const auto& [known_hash, known_salt, tokens] = *found->second;
    if (known_salt == salt && SpellTheSame(*state_->vocab, tokens, std::span(prompt).first(n))) {
      std::vector<int32_t> restored = tokens;
      restored.insert(restored.end(), prompt.begin() + static_cast<ptrdiff_t>(n), prompt.end());
      state_->entries.splice(state_->entries.begin(), state_->entries, found->second);
      return restored;
    }
  }
  return prompt;
}

}  // namespace facet
