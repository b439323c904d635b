// SPDX-License-Identifier: Apache-2.0
#include "app/bits_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <set>
#include <utility>

#include "base/random.h"

namespace facet::bits {
namespace {

constexpr int kComparedPrompts = 3;
constexpr int kLongPrompts = 2;  // the first ones, which begin alike
constexpr int kMaxBatches = 40;
constexpr int kUsefulDonor = 34;  // positions: a whole block, and a row beside it

// --- prompts -------------------------------------------------------------------------------------

void AddToken(int32_t token, Prompt* prompt) {
  prompt->tokens.push_back(token);
  prompt->span_end.push_back(-1);
}

/// `value` draws the numbers of the rows.
void AddSpan(int n_rows, const PromptChoice& choice, Dice* dice,
             const std::function<float()>& value, Prompt* prompt) {
  const int end = prompt->n_positions() + n_rows;
  const auto token = static_cast<int32_t>(dice->Between(0, choice.n_vocab - 1));
  prompt->n_embd = choice.n_embd;
  prompt->tokens.insert(prompt->tokens.end(), static_cast<size_t>(n_rows), token);
  prompt->span_end.insert(prompt->span_end.end(), static_cast<size_t>(n_rows), end);
  std::generate_n(std::back_inserter(prompt->soft), n_rows * choice.n_embd, value);
}

void AddDrawn(int n_positions, const PromptChoice& choice, Dice* dice, Prompt* prompt) {
  const auto value = [dice] { return static_cast<float>(dice->Between(-2000, 2000)) / 1000.0F; };
  while (prompt->n_positions() < n_positions) {
    const int n_left = n_positions - prompt->n_positions();
    if (choice.has_soft && n_left > 2 && dice->OneIn(30)) {
      AddSpan(dice->Between(2, std::min(n_left - 1, 25)), choice, dice, value, prompt);
    }
    AddToken(dice->Between(0, choice.n_vocab - 1), prompt);
  }
}

/// Rows whose keys and values are far out, or no numbers at all.
Prompt DrawWildRows(const PromptChoice& choice, Dice* dice) {
  constexpr float kWild[] = {std::numeric_limits<float>::quiet_NaN(),
                             std::numeric_limits<float>::infinity(), 1e30F, -1e30F, 0.0F};
  Prompt prompt;
  AddToken(dice->Between(0, choice.n_vocab - 1), &prompt);
  for (const float wild : kWild) {
    AddSpan(
        dice->Between(1, 9), choice, dice, [wild] { return wild; }, &prompt);
  }
  prompt.is_noise = true;
  return prompt;
}

/// One token again and again, the last of the vocabulary among the choices.
Prompt DrawRepetition(const PromptChoice& choice, Dice* dice) {
  const int32_t token =
      dice->OneIn(2) ? choice.n_vocab - 1 : dice->Between(0, std::min(choice.n_vocab - 1, 300));
  Prompt prompt;
  const int n_positions = dice->Between(1, choice.n_positions);
  for (int i = 0; i < n_positions; ++i) {
    AddToken(token, &prompt);
  }
  prompt.is_noise = true;
  return prompt;
}

/// The beginning of `prompt`, at most n positions; no span is cut.
Prompt BeginningOf(const Prompt& prompt, int n) {
  while (n > 0 && n < prompt.n_positions() && prompt.IsInsideSpan(n)) {
    --n;
  }
  Prompt beginning;
  beginning.n_embd = prompt.n_embd;
  beginning.tokens.assign(prompt.tokens.begin(), prompt.tokens.begin() + n);
  beginning.span_end.assign(prompt.span_end.begin(), prompt.span_end.begin() + n);
  const auto n_soft = std::count_if(beginning.span_end.begin(), beginning.span_end.end(),
                                    [](int32_t end) { return end >= 0; });
  beginning.soft.assign(prompt.soft.begin(), prompt.soft.begin() + n_soft * prompt.n_embd);
  return beginning;
}

// --- programs ------------------------------------------------------------------------------------

/// Kernels treat 1, a few, 16 and many rows differently.
int DrawRows(Dice* dice) {
  constexpr std::pair<int, int> kSizes[] = {
      {1, 1}, {1, 1}, {2, 3}, {4, 9}, {10, 18}, {19, 40}, {41, kMaxPositions}};
  const auto& [low, high] = kSizes[dice->Between(0, static_cast<int>(std::size(kSizes)) - 1)];
  return dice->Between(low, high);
}

Part DrawPart(int sequence, Dice* dice) {
  Part part;
  part.sequence = sequence;
  part.n_rows = DrawRows(dice);
  part.wanted = static_cast<WantedLogits>(dice->Between(0, 2));
  if (dice->OneIn(10)) {
    part.n_back = dice->OneIn(3) ? kMaxPositions : dice->Between(1, 40);
  } else if (dice->OneIn(6)) {
    part.is_draft = true;
    part.n_rows = dice->Between(1, kMaxDraft);
  }
  return part;
}

/// The first sequence is compared; one with a donor begins like it for a while.
void DrawSequences(std::span<const Prompt> prompts, Dice* dice, Program* program) {
  const int n_sequences = dice->Between(1, kMaxSequences);
  const int n_prompts = static_cast<int>(prompts.size());
  for (int s = 0; s < n_sequences; ++s) {
    const int donor = s > 0 && dice->OneIn(2) ? dice->Between(0, s - 1) : -1;
    if (donor >= 0 && program->prompts[static_cast<size_t>(donor)] < kLongPrompts) {
      program->donors.push_back(donor);
      program->prompts.push_back(dice->Between(0, kLongPrompts - 1));
      continue;
    }
    program->donors.push_back(-1);
    program->prompts.push_back(s > 0 && dice->OneIn(3)
                                   ? dice->Between(kComparedPrompts, n_prompts - 1)
                                   : dice->Between(0, kComparedPrompts - 1));
  }
}

/// How far each sequence of a program is, about: what will be cut is not known here.
class Progress {
 public:
  Progress(std::span<const Prompt> prompts, const Program& program)
      : donors_(program.donors), n_done_(program.prompts.size(), 0) {
    for (const int prompt : program.prompts) {
      n_left_.push_back(prompts[static_cast<size_t>(prompt)].n_positions());
    }
  }
  [[nodiscard]] bool IsDone() const {
    return std::all_of(n_left_.begin(), n_left_.end(), [](int n) { return n <= 0; });
  }
  [[nodiscard]] bool IsDone(size_t s) const { return n_left_[s] <= 0; }
  /// Whether the sequence's donor has nothing yet to give.
  [[nodiscard]] bool IsTooEarly(size_t s) const {
    const int donor = donors_[s];
    return donor >= 0 && n_done_[s] == 0 && n_done_[static_cast<size_t>(donor)] < kUsefulDonor &&
           !IsDone(static_cast<size_t>(donor));
  }
  void Add(const Part& part) {
    const auto s = static_cast<size_t>(part.sequence);
    const int n_back = std::min(part.n_back, n_done_[s]);
    const int n_forward = (part.is_draft ? 1 : part.n_rows) - n_back;
    n_done_[s] += n_forward;
    n_left_[s] -= n_forward;
  }

 private:
  std::vector<int> donors_;
  std::vector<int> n_done_;
  std::vector<int> n_left_;
};

void DrawBatches(std::span<const Prompt> prompts, Dice* dice, Program* program) {
  Progress progress(prompts, *program);
  const size_t n_sequences = program->prompts.size();
  for (int b = 0; b < kMaxBatches && !progress.IsDone(); ++b) {
    std::vector<Part> parts;
    for (size_t s = 0; s < n_sequences; ++s) {
      const bool waits = progress.IsTooEarly(s) ? !dice->OneIn(30) : dice->OneIn(4);
      if (!progress.IsDone(s) && !waits) {
        parts.push_back(DrawPart(static_cast<int>(s), dice));
        progress.Add(parts.back());
      }
    }
    for (size_t i = parts.size(); i > 1; --i) {
      std::swap(parts[i - 1],
                parts[static_cast<size_t>(dice->Between(0, static_cast<int>(i) - 1))]);
    }
    if (!parts.empty()) {
      program->batches.push_back(std::move(parts));
    }
  }
  std::vector<Part> rest;
  for (size_t s = 0; s < n_sequences; ++s) {
    rest.push_back({.sequence = static_cast<int>(s), .n_rows = kMaxPositions});
  }
  program->batches.push_back(std::move(rest));
}

// --- shrinking -----------------------------------------------------------------------------------

/// Tries changes of a failing program and keeps those after which it still fails.
class Shrinker {
 public:
  Shrinker(Program program, int max_tries, const std::function<bool(const Program&)>& fails)
      : program_(std::move(program)), n_left_(max_tries), fails_(fails) {}

  Program Run() {
    while (n_left_ > 0) {
      const Program before = program_;
      DropBatches();
      DropParts();
      SimplifyParts();
      SimplifyPlacement();
      if (program_ == before) {
        break;
      }
    }
    return program_;
  }

 private:
  bool Keep(Program changed) {
    if (n_left_ <= 0 || changed == program_) {
      return false;
    }
    --n_left_;
    if (!fails_(changed)) {
      return false;
    }
    program_ = std::move(changed);
    return true;
  }

  /// Long runs first, so that a long program needs few tries.
  void DropBatches() {
    for (size_t n = program_.batches.size(); n > 0; n /= 2) {
      for (size_t end = program_.batches.size(); end > 0; end -= std::min(end, n)) {
        Program changed = program_;
        const size_t begin = end - std::min(end, n);
        changed.batches.erase(changed.batches.begin() + static_cast<ptrdiff_t>(begin),
                              changed.batches.begin() + static_cast<ptrdiff_t>(end));
        Keep(std::move(changed));
      }
    }
  }

  void DropParts() {
    for (size_t b = 0; b < program_.batches.size(); ++b) {
      for (size_t p = program_.batches[b].size(); p > 0; --p) {
        Program changed = program_;
        std::vector<Part>& parts = changed.batches[b];
        parts.erase(parts.begin() + static_cast<ptrdiff_t>(p - 1));
        Keep(std::move(changed));
      }
    }
  }

  void SimplifyParts() {
    for (size_t b = 0; b < program_.batches.size(); ++b) {
      for (size_t p = 0; p < program_.batches[b].size(); ++p) {
        Change(b, p, [](Part* part) { part->is_draft = false; });
        Change(b, p, [](Part* part) { part->n_back = 0; });
        Change(b, p, [](Part* part) { part->wanted = WantedLogits::kLast; });
        Change(b, p, [](Part* part) { part->n_rows = 1; });
        while (Change(b, p, [](Part* part) { part->n_rows = std::max(part->n_rows / 2, 1); })) {
        }
        while (Change(b, p, [](Part* part) { part->n_rows = std::max(part->n_rows - 1, 1); })) {
        }
      }
    }
  }

  void SimplifyPlacement() {
    Program changed = program_;
    changed.is_scattered = false;
    Keep(std::move(changed));
    for (size_t s = 0; s < program_.donors.size(); ++s) {
      changed = program_;
      changed.donors[s] = -1;
      Keep(std::move(changed));
    }
  }

  bool Change(size_t batch, size_t part, const std::function<void(Part*)>& change) {
    Program changed = program_;
    change(&changed.batches[batch][part]);
    return Keep(std::move(changed));
  }

  Program program_;
  int n_left_;
  const std::function<bool(const Program&)>& fails_;
};

std::string ToText(const Part& part) {
  std::string text = fmt::format("{} x {}", part.sequence, part.n_rows);
  if (part.is_draft) {
    text += " draft";
  }
  if (part.n_back > 0) {
    text += fmt::format(" after {} back", part.n_back);
  }
  if (part.wanted != WantedLogits::kLast) {
    text += part.wanted == WantedLogits::kAll ? " all logits" : " no logits";
  }
  return text;
}

}  // namespace

uint64_t Dice::Bits() { return RandomBits(seed_, n_drawn_++); }

int Dice::Between(int low, int high) {
  return low + static_cast<int>(Bits() % static_cast<uint64_t>(high - low + 1));
}

bool Prompt::IsInsideSpan(int pos) const {
  const auto at = static_cast<size_t>(pos);
  return pos > 0 && pos < n_positions() && span_end[at] >= 0 && span_end[at] == span_end[at - 1];
}

std::vector<Prompt> DrawPrompts(const PromptChoice& choice, Dice* dice) {
  const int n = choice.n_positions;
  std::vector<Prompt> prompts(kComparedPrompts);
  AddDrawn(dice->Between((n + 1) / 2, n), choice, dice, &prompts[0]);
  prompts[1] = BeginningOf(
      prompts[0], dice->Between(prompts[0].n_positions() / 2, prompts[0].n_positions() - 1));
  AddDrawn(dice->Between(prompts[1].n_positions() + 1, n), choice, dice, &prompts[1]);
  AddDrawn(dice->Between(1, std::min(n, 12)), choice, dice, &prompts[2]);

  prompts.push_back(DrawRepetition(choice, dice));
  Prompt any;
  AddDrawn(dice->Between(1, n), choice, dice, &any);
  any.is_noise = true;
  prompts.push_back(std::move(any));
  if (choice.has_soft) {
    prompts.push_back(DrawWildRows(choice, dice));
  }
  return prompts;
}

Program DrawProgram(std::span<const Prompt> prompts, Dice* dice) {
  Program program;
  program.seed = dice->Bits();
  program.is_scattered = !dice->OneIn(4);
  DrawSequences(prompts, dice, &program);
  DrawBatches(prompts, dice, &program);
  return program;
}

Program Shrink(Program program, int max_tries, const std::function<bool(const Program&)>& fails) {
  return Shrinker(std::move(program), max_tries, fails).Run();
}

std::string ToText(const Program& program) {
  std::set<int> used;
  for (const std::vector<Part>& parts : program.batches) {
    for (const Part& part : parts) {
      used.insert(part.sequence);
    }
  }
  std::string text = program.is_scattered ? "blocks in drawn order\n" : "blocks in order\n";
  for (const int s : used) {
    const int donor = program.donors[static_cast<size_t>(s)];
    text += fmt::format("sequence {}: prompt {}", s, program.prompts[static_cast<size_t>(s)]);
    text += donor >= 0 ? fmt::format(", begins with blocks of {}\n", donor) : "\n";
  }
  for (size_t b = 0; b < program.batches.size(); ++b) {
    text += fmt::format("batch {}:", b);
    for (const Part& part : program.batches[b]) {
      text += (&part == &program.batches[b].front() ? " " : ", ") + ToText(part);
    }
    text += "\n";
  }
  return text;
}

}  // namespace facet::bits
