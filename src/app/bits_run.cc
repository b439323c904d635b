// SPDX-License-Identifier: Apache-2.0
#include "app/bits_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <utility>

#include "base/check.h"
#include "base/random.h"
#include "kv/block_pool.h"
#include "kv/plan.h"

namespace facet::bits {
namespace {

/// The blocks of one sequence in one group; other than those of kv/block_table.h they can be
/// shared. A pool without blocks needs none.
class Blocks {
 public:
  explicit Blocks(BlockPool* pool) : pool_(pool) {}
  ~Blocks() { Truncate(0); }
  Blocks(Blocks&& other) noexcept : pool_(other.pool_), ids_(std::exchange(other.ids_, {})) {}
  Blocks(const Blocks&) = delete;
  Blocks& operator=(const Blocks&) = delete;
  Blocks& operator=(Blocks&&) = delete;

  [[nodiscard]] std::span<const BlockId> ids() const { return ids_; }

  void Grow(int n_positions) {
    while (pool_->n_blocks() > 0 && static_cast<int>(ids_.size()) < BlocksFor(n_positions)) {
      const std::optional<BlockId> id = pool_->Allocate();
      FACET_CHECK(id.has_value());
      ids_.push_back(*id);
    }
  }
  void Truncate(int n_positions) {
    while (static_cast<int>(ids_.size()) > BlocksFor(n_positions)) {
      Release(&ids_.back());
      ids_.pop_back();
    }
  }
  void DropBelow(int position) {
    for (int b = 0; b < std::min(position / kBlockPositions, static_cast<int>(ids_.size())); ++b) {
      Release(&ids_[static_cast<size_t>(b)]);
    }
  }
  /// The first positions become those of `donor`; n_positions is a multiple of 32.
  void Share(const Blocks& donor, int n_positions) {
    FACET_CHECK(ids_.empty());
    const auto n = std::min(static_cast<size_t>(n_positions / kBlockPositions), donor.ids_.size());
    ids_.assign(donor.ids_.begin(), donor.ids_.begin() + static_cast<ptrdiff_t>(n));
    for (const BlockId id : ids_) {
      if (id != kNoBlock) {
        pool_->AddRef(id);
      }
    }
  }
  /// Whether all blocks of positions [begin, end) are there.
  [[nodiscard]] bool Has(int begin, int end) const {
    for (int b = begin / kBlockPositions; pool_->n_blocks() > 0 && b < BlocksFor(end); ++b) {
      if (b >= static_cast<int>(ids_.size()) || ids_[static_cast<size_t>(b)] == kNoBlock) {
        return false;
      }
    }
    return true;
  }
  /// One past the last position whose block another sequence has too.
  [[nodiscard]] int SharedEnd() const {
    for (size_t b = ids_.size(); b > 0; --b) {
      if (ids_[b - 1] != kNoBlock && pool_->refs(ids_[b - 1]) > 1) {
        return static_cast<int>(b) * kBlockPositions;
      }
    }
    return 0;
  }

 private:
  void Release(BlockId* id) {
    if (*id != kNoBlock) {
      pool_->Release(*id);
      *id = kNoBlock;
    }
  }

  BlockPool* pool_;
  std::vector<BlockId> ids_;
};

/// Puts the blocks of a pool into drawn order.
void Scatter(Dice* dice, BlockPool* pool) {
  std::vector<BlockId> ids;
  ids.reserve(static_cast<size_t>(pool->n_blocks()));
  while (const std::optional<BlockId> id = pool->Allocate()) {
    ids.push_back(*id);
  }
  for (size_t i = ids.size(); i > 1; --i) {
    std::swap(ids[i - 1], ids[static_cast<size_t>(dice->Between(0, static_cast<int>(i) - 1))]);
  }
  for (const BlockId id : ids) {
    pool->Release(id);
  }
}

/// Positions that both prompts begin with.
int CommonBeginning(const Prompt& a, const Prompt& b) {
  if (&a == &b) {
    return a.n_positions();
  }
  const int n = std::min(a.n_positions(), b.n_positions());
  int pos = 0;
  while (pos < n && a.tokens[static_cast<size_t>(pos)] == b.tokens[static_cast<size_t>(pos)] &&
         a.span_end[static_cast<size_t>(pos)] < 0 && b.span_end[static_cast<size_t>(pos)] < 0) {
    ++pos;
  }
  return pos;
}

/// A row whose logits come out of a batch.
struct Place {
  size_t batch;
  int sequence;
  int prompt;
  int pos;
  int n_rows;
};

/// Told of each row of logits of a prompt's own tokens; false ends the program.
using OnLogits = std::function<bool(const Place& place, std::span<const float> logits)>;

/// One run of one program.
class Player {
 public:
  Player(Runner* runner, std::span<const Prompt> prompts, const Program& program,
         OnLogits on_logits)
      : runner_(*runner),
        prompts_(prompts),
        program_(program),
        on_logits_(std::move(on_logits)),
        dice_(program.seed),
        sliding_pool_(runner->info().n_sliding_blocks),
        full_pool_(runner->info().n_full_blocks) {
    if (program.is_scattered) {
      Scatter(&dice_, &sliding_pool_);
      Scatter(&dice_, &full_pool_);
    }
    sequences_.reserve(program.prompts.size());
    for (size_t s = 0; s < program.prompts.size(); ++s) {
      const auto number = static_cast<int>(s);
      const bool gives = std::count(program.donors.begin(), program.donors.end(), number) > 0;
      sequences_.push_back({&prompts[static_cast<size_t>(program.prompts[s])], number, 0, gives,
                            Blocks(&sliding_pool_), Blocks(&full_pool_)});
    }
  }

  Status Run() {
    for (size_t b = 0; b < program_.batches.size() && !is_over_; ++b) {
      FACET_RETURN_IF_ERROR(RunBatch(b));
    }
    return {};
  }

  [[nodiscard]] int64_t n_taken() const { return n_taken_; }

 private:
  struct Sequence {
    const Prompt* prompt;
    int number;
    int n_done;
    bool gives;
    Blocks sliding;
    Blocks full;
  };
  /// Rows of a sequence in the running batch.
  struct Rows {
    Sequence* sequence;
    int n_kept;
  };

  [[nodiscard]] int FirstSeen(int pos) const {
    return FirstVisible(pos, runner_.info().sliding_window);
  }

  Status RunBatch(size_t index) {
    Batch batch;
    std::vector<Place> places;
    std::vector<Rows> running;
    for (const Part& part : program_.batches[index]) {
      Sequence& s = sequences_[static_cast<size_t>(part.sequence)];
      const bool is_new = std::none_of(running.begin(), running.end(),
                                       [&s](const Rows& rows) { return rows.sequence == &s; });
      if (is_new && s.n_done < s.prompt->n_positions()) {
        running.push_back({&s, AddPart(part, &s, &batch)});
      }
    }
    if (batch.rows.empty()) {
      return {};
    }
    for (const Row& row : batch.rows) {
      if (row.wants_logits) {
        const Sequence& s = *running[static_cast<size_t>(row.sequence)].sequence;
        places.push_back({index, s.number, program_.prompts[static_cast<size_t>(s.number)], row.pos,
                          static_cast<int>(batch.rows.size())});
      }
    }
    FACET_ASSIGN(const std::span<const float> logits, runner_.Run(batch));
    for (const Rows& rows : running) {
      Finish(rows);
    }
    return Tell(places, logits);
  }

  /// Adds the rows of a part and returns how many are to be kept.
  int AddPart(const Part& part, Sequence* s, Batch* batch) {
    GoBack(part.n_back, s);
    if (s->n_done == 0) {
      TakeBeginning(s);
    }
    const bool is_text = s->prompt->span_end[static_cast<size_t>(s->n_done)] < 0;
    const bool is_draft = part.is_draft && is_text;
    const int end = is_draft ? s->n_done + std::min(part.n_rows, kMaxDraft) : End(part.n_rows, *s);
    const int kept_end = is_draft ? s->n_done + 1 : end;
    s->sliding.Grow(end);
    s->full.Grow(end);
    FACET_CHECK(std::max(s->sliding.SharedEnd(), s->full.SharedEnd()) <= s->n_done);
    const auto index = static_cast<int32_t>(batch->sequences.size());
    batch->sequences.push_back({s->sliding.ids(), s->full.ids()});
    for (int pos = s->n_done; pos < end; ++pos) {
      Row row = pos < kept_end ? OwnRow(*s, pos, batch) : DraftRow(pos);
      row.sequence = index;
      const int last = is_draft ? kept_end - 1 : end - 1;
      row.wants_logits =
          part.wanted == WantedLogits::kAll || (part.wanted == WantedLogits::kLast && pos == last);
      batch->rows.push_back(row);
    }
    return kept_end - s->n_done;
  }

  /// One past the last row of a part of `n_rows` rows.
  static int End(int n_rows, const Sequence& s) {
    const int end = std::min(s.n_done + n_rows, s.prompt->n_positions());
    return std::max(end, s.prompt->span_end[static_cast<size_t>(end - 1)]);
  }

  static Row OwnRow(const Sequence& s, int pos, Batch* batch) {
    const Prompt& prompt = *s.prompt;
    const auto at = static_cast<size_t>(pos);
    Row row;
    row.pos = pos;
    row.token = prompt.tokens[at];
    row.span_end = prompt.span_end[at];
    if (row.span_end >= 0) {
      const auto own = std::find(prompt.span_end.begin(), prompt.span_end.end(), row.span_end);
      row.span_begin = static_cast<int32_t>(own - prompt.span_end.begin());
      const auto is_soft = [](int32_t end) { return end >= 0; };
      const auto first = prompt.span_end.begin();
      const auto from =
          prompt.soft.begin() + prompt.n_embd * std::count_if(first, first + pos, is_soft);
      row.soft_row = static_cast<int32_t>(batch->soft.size()) / prompt.n_embd;
      batch->soft.insert(batch->soft.end(), from, from + prompt.n_embd);
    }
    return row;
  }

  Row DraftRow(int pos) {
    Row row;
    row.pos = pos;
    row.token = dice_.Between(0, runner_.info().n_vocab - 1);
    return row;
  }

  /// To the beginning, where what is between cannot be computed again.
  void GoBack(int n_back, Sequence* s) {
    if (n_back == 0) {
      return;
    }
    int target = std::max(s->n_done - n_back, 0);
    while (s->prompt->IsInsideSpan(target)) {
      --target;
    }
    const bool is_own = target >= std::max(s->sliding.SharedEnd(), s->full.SharedEnd());
    const bool is_there = s->sliding.Has(FirstSeen(target), target);
    s->n_done = is_own && is_there ? target : 0;
    s->sliding.Truncate(s->n_done);
    s->full.Truncate(s->n_done);
  }

  /// Takes the donor's blocks for whole blocks of what both begin with, one row at least left over.
  void TakeBeginning(Sequence* s) {
    const int number = program_.donors[static_cast<size_t>(s->number)];
    if (number < 0) {
      return;
    }
    const Sequence& donor = sequences_[static_cast<size_t>(number)];
    int n = std::min(
        {CommonBeginning(*s->prompt, *donor.prompt), donor.n_done, s->prompt->n_positions() - 1});
    n -= n % kBlockPositions;
    while (n > 0 && s->prompt->IsInsideSpan(n)) {
      n -= kBlockPositions;
    }
    if (donor.sliding.Has(0, n)) {
      s->sliding.Share(donor.sliding, n);
      s->full.Share(donor.full, n);
      s->n_done = n;
      n_taken_ += n;
    }
  }

  /// Forgets drafts, and gives back blocks that nobody needs.
  void Finish(const Rows& rows) {
    Sequence& s = *rows.sequence;
    s.n_done += rows.n_kept;
    s.sliding.Truncate(s.n_done);
    s.full.Truncate(s.n_done);
    if (s.gives) {
      return;
    }
    if (s.n_done == s.prompt->n_positions()) {
      s.sliding.Truncate(0);
      s.full.Truncate(0);
    } else {
      s.sliding.DropBelow(FirstSeen(s.n_done));
    }
  }

  Status Tell(const std::vector<Place>& places, std::span<const float> logits) {
    const auto n_vocab = static_cast<size_t>(runner_.info().n_vocab);
    FACET_CHECK(logits.size() == places.size() * n_vocab);
    for (size_t i = 0; i < places.size() && !is_over_; ++i) {
      const Prompt& prompt = prompts_[static_cast<size_t>(places[i].prompt)];
      const bool is_draft =
          places[i].pos >= sequences_[static_cast<size_t>(places[i].sequence)].n_done;
      if (!prompt.is_noise && !is_draft) {
        is_over_ = !on_logits_(places[i], logits.subspan(i * n_vocab, n_vocab));
      }
    }
    return {};
  }

  Runner& runner_;
  std::span<const Prompt> prompts_;
  const Program& program_;
  OnLogits on_logits_;
  Dice dice_;
  BlockPool sliding_pool_;
  BlockPool full_pool_;
  std::vector<Sequence> sequences_;
  int64_t n_taken_ = 0;
  bool is_over_ = false;
};

bool SameBits(float a, float b) { return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b); }

std::optional<Difference> Compare(const Place& place, std::span<const float> found,
                                  const std::vector<float>& wanted) {
  FACET_CHECK(found.size() == wanted.size());
  if (std::memcmp(found.data(), wanted.data(), found.size_bytes()) == 0) {
    return std::nullopt;
  }
  Difference difference = {
      .batch = place.batch, .sequence = place.sequence, .pos = place.pos, .n_rows = place.n_rows};
  for (size_t token = found.size(); token-- > 0;) {
    if (!SameBits(found[token], wanted[token])) {
      difference.token = static_cast<int>(token);
      difference.found = found[token];
      difference.wanted = wanted[token];
      ++difference.n_tokens;
    }
  }
  return difference;
}

}  // namespace

std::string ToText(const Settings& settings) {
  return fmt::format("{}, {} thread{}, {}, KV {}", NameOf(settings.isa), settings.n_threads,
                     settings.n_threads == 1 ? "" : "s", settings.is_packed ? "packed" : "unpacked",
                     NameOf(settings.kv_type));
}

std::string ToText(const Difference& d) {
  return fmt::format(
      "batch {} of {} rows, sequence {}, position {}: logit of token {} is {} (0x{:08x}), wanted "
      "{} "
      "(0x{:08x}); {} of the row's logits differ",
      d.batch, d.n_rows, d.sequence, d.pos, d.token, d.found, std::bit_cast<uint32_t>(d.found),
      d.wanted, std::bit_cast<uint32_t>(d.wanted), d.n_tokens);
}

RunnerOptions ToRunnerOptions(const Settings& settings) {
  RunnerOptions options;
  options.n_context = kMaxPositions + kMaxDraft;
  // Sequences that give their blocks keep them behind the window too, where the plan counts none.
  options.n_sequences = 2 * kMaxSequences;
  options.max_rows = kMaxSequences * kMaxPositions;
  options.kv_type = settings.kv_type;
  options.n_threads = settings.n_threads;
  options.isa = settings.isa;
  options.pack = settings.is_packed;
  return options;
}

Result<PromptLogits> RunAlone(Runner* runner, const Prompt& prompt, int end) {
  Program program = {.prompts = {0}, .donors = {-1}};
  const int n = std::min(end, prompt.n_positions());
  for (int pos = 0; pos < n;) {
    const int next = std::max(pos + 1, prompt.span_end[static_cast<size_t>(pos)]);
    program.batches.push_back({{.n_rows = next - pos, .wanted = WantedLogits::kAll}});
    pos = next;
  }
  PromptLogits logits;
  Player player(runner, std::span(&prompt, 1), program, [&logits](const Place&, auto row) {
    logits.emplace_back(row.begin(), row.end());
    return true;
  });
  FACET_RETURN_IF_ERROR(player.Run());
  return logits;
}

Result<Outcome> RunAndCompare(Runner* runner, std::span<const Prompt> prompts,
                              const std::vector<PromptLogits>& alone, const Program& program) {
  Outcome outcome;
  Player player(runner, prompts, program, [&](const Place& place, std::span<const float> logits) {
    const PromptLogits& wanted = alone[static_cast<size_t>(place.prompt)];
    ++outcome.n_compared;
    outcome.difference = Compare(place, logits, wanted[static_cast<size_t>(place.pos)]);
    return !outcome.difference.has_value();
  });
  FACET_RETURN_IF_ERROR(player.Run());
  outcome.n_taken = player.n_taken();
  return outcome;
}

}  // namespace facet::bits
