// SPDX-License-Identifier: Apache-2.0
#include "tiny/driver.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <tuple>
#include <utility>

#include "base/check.h"

namespace facet::testing {
namespace {

constexpr int kSequences = 9;

template <typename T>
T ValueOrDie(Result<T> result) {
  if (!result.ok()) {
    std::fprintf(stderr, "%s\n", result.error().Message().c_str());
    std::abort();
  }
  return *std::move(result);
}

/// Of an image or a video frame, whose rows see one another.
bool IsPicture(int span_type) { return span_type == 1 || span_type == 2; }

/// The pictures' positions around `pos`, or {-1, -1}.
std::pair<int, int> SpanAround(const std::vector<int>& types, int pos) {
  const auto is_picture = [&types](int p) {
    return p >= 0 && p < static_cast<int>(types.size()) && IsPicture(types[static_cast<size_t>(p)]);
  };
  if (!is_picture(pos)) {
    return {-1, -1};
  }
  int begin = pos;
  int end = pos;
  while (is_picture(begin - 1)) {
    --begin;
  }
  while (is_picture(end)) {
    ++end;
  }
  return {begin, end};
}

RunnerOptions ToRunnerOptions(const DriverOptions& options) {
  RunnerOptions r;
  r.n_context = options.n_context;
  r.n_sequences = kSequences;
  r.kv_type = options.kv_type;
  r.media = options.media;
  return r;
}

}  // namespace

Driver::Driver(const Checkpoint& checkpoint, const DriverOptions& options)
    : n_embd_(checkpoint.config().n_embd), pool_(options.n_threads) {
  model_ = ValueOrDie(
      MakeTextModel(checkpoint, ToRunnerOptions(options), {&KernelsFor(options.isa), &pool_}));
  sliding_pool_ = std::make_unique<BlockPool>(model_->info().n_sliding_blocks);
  full_pool_ = std::make_unique<BlockPool>(model_->info().n_full_blocks);
}

int Driver::Add(std::vector<int32_t> tokens, std::vector<int> span_type, std::vector<float> soft) {
  span_type.resize(tokens.size(), 0);
  sequences_.push_back({std::move(tokens), std::move(span_type), std::move(soft), 0,
                        BlockTable(sliding_pool_.get()), BlockTable(full_pool_.get())});
  return static_cast<int>(sequences_.size()) - 1;
}

void Driver::Append(int sequence, int32_t token) {
  Sequence& s = sequences_[static_cast<size_t>(sequence)];
  s.tokens.push_back(token);
  s.span_type.push_back(0);
}

int Driver::n_left(int sequence) const {
  const Sequence& s = sequences_[static_cast<size_t>(sequence)];
  return static_cast<int>(s.tokens.size()) - s.n_done;
}

int Driver::ChunkEnd(int sequence, int n) const {
  const Sequence& s = sequences_[static_cast<size_t>(sequence)];
  int end = std::min(s.n_done + n, static_cast<int>(s.tokens.size()));
  while (end < static_cast<int>(s.tokens.size()) && end > 0 &&
         IsPicture(s.span_type[static_cast<size_t>(end)]) &&
         IsPicture(s.span_type[static_cast<size_t>(end - 1)])) {
    ++end;
  }
  return end - s.n_done;
}

std::vector<std::vector<float>> Driver::Run(const std::vector<Part>& parts) {
  Batch batch;
  size_t n_logits = 0;
  for (const Part& part : parts) {
    Sequence& s = sequences_[static_cast<size_t>(part.sequence)];
    FACET_CHECK(s.sliding.Grow(s.n_done + part.n_rows));
    FACET_CHECK(s.full.Grow(s.n_done + part.n_rows));
    batch.sequences.push_back({s.sliding.blocks(), s.full.blocks()});
    const auto n_soft_before = static_cast<int>(std::count_if(
        s.span_type.begin(), s.span_type.begin() + s.n_done, [](int t) { return t != 0; }));
    int soft_index = n_soft_before;
    for (int i = 0; i < part.n_rows; ++i) {
      Row row;
      row.sequence = static_cast<int>(batch.sequences.size()) - 1;
      row.pos = s.n_done + i;
      row.token = s.tokens[static_cast<size_t>(row.pos)];
      std::tie(row.span_begin, row.span_end) = SpanAround(s.span_type, row.pos);
      if (s.span_type[static_cast<size_t>(row.pos)] != 0) {
        row.soft_row = static_cast<int>(batch.soft.size()) / n_embd_;
        const auto begin = s.soft.begin() + static_cast<ptrdiff_t>(soft_index) * n_embd_;
        batch.soft.insert(batch.soft.end(), begin, begin + n_embd_);
        ++soft_index;
      }
      row.wants_logits = part.wants_all_logits || i + 1 == part.n_rows;
      n_logits += row.wants_logits ? 1 : 0;
      batch.rows.push_back(row);
    }
    s.n_done += part.n_rows;
  }
  const auto logits = ValueOrDie(model_->Run(batch));
  const auto n_vocab_size = static_cast<size_t>(n_vocab());
  FACET_CHECK(logits.size() == n_logits * n_vocab_size);
  std::vector<std::vector<float>> rows;
  for (size_t i = 0; i < n_logits; ++i) {
    const auto row = logits.subspan(i * n_vocab_size, n_vocab_size);
    rows.emplace_back(row.begin(), row.end());
  }
  return rows;
}

void Driver::Collect(std::map<std::string, std::vector<float>>* taps) {
  model_->SetTap([taps](std::string_view name, std::span<const float> values, int64_t) {
    (*taps)[std::string(name)].assign(values.begin(), values.end());
  });
}

int ArgMax(const std::vector<float>& values) {
  return static_cast<int>(std::max_element(values.begin(), values.end()) - values.begin());
}

Checkpoint OpenOrDie(const std::string& path) { return ValueOrDie(Checkpoint::Open(path)); }

std::vector<std::string> TinyHfNames() {
  return {"etype-sharing", "etype-plain", "dense-keqv", "moe-keqv", "dense-k256"};
}

std::vector<std::string> TinyGgufNames() {
  return {"etype-sharing-Q4_0", "dense-keqv-Q4_0", "moe-keqv-Q4_0", "dense-k256-Q4_K_M",
          "dense-k256-IQ4_XS"};
}

}  // namespace facet::testing
