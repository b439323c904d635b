// SPDX-License-Identifier: Apache-2.0
#include "app/bench_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

namespace facet {
namespace {

constexpr size_t kMaxItems = 64;
constexpr int kMaxTokens = 1 << 20;
constexpr int kMaxSequences = 256;
constexpr int kVerifySequences = 4;

struct Range {
  int min;
  int max;
};

/// "128,512" to numbers within the range.
Result<std::vector<int>> ParseList(std::string_view text, const std::string& where, Range range) {
  const auto refuse = [&](std::string_view item) {
    return Refuse(
        where, fmt::format("\"{}\"", item),
        fmt::format("whole numbers from {} to {}, with commas between", range.min, range.max));
  };
  std::vector<int> numbers;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view item = text.substr(begin, end - begin);
    int number = 0;
    const auto [rest, error] = std::from_chars(item.data(), item.data() + item.size(), number);
    if (error != std::errc() || rest != item.data() + item.size() || number < range.min ||
        number > range.max) {
      return refuse(item);
    }
    numbers.push_back(number);
    begin = end + 1;
  }
  if (numbers.size() > kMaxItems) {
    return Refuse(where, fmt::format("{} numbers", numbers.size()),
                  fmt::format("at most {}", kMaxItems));
  }
  return numbers;
}

/// What is measured unless the user says otherwise.
struct Defaults {
  std::string_view prompts;
  std::string_view gens;
  std::string_view depths;
  std::string_view parallel;
  int n_repetitions;
};
constexpr Defaults kWhole = {"128,512,2048", "32", "0,512,4096", "1,4,8,16", 3};
constexpr Defaults kQuick = {"128", "8", "0", "1,4", 2};

struct Lists {
  std::vector<int> prompts;
  std::vector<int> gens;
  std::vector<int> depths;
  std::vector<int> parallel;
};

Result<Lists> ReadLists(const Options& options, const Defaults& defaults) {
  const auto read = [](const std::string& text, std::string_view otherwise, const char* where,
                       Range range) {
    return ParseList(text.empty() ? otherwise : std::string_view(text), where, range);
  };
  Lists lists;
  FACET_ASSIGN(lists.prompts,
               read(options.bench_prompts, defaults.prompts, "--n-prompt", {0, kMaxTokens}));
  FACET_ASSIGN(lists.gens, read(options.bench_gens, defaults.gens, "--n-gen", {0, kMaxTokens}));
  FACET_ASSIGN(lists.depths,
               read(options.bench_depths, defaults.depths, "--n-depth", {0, kMaxTokens}));
  FACET_ASSIGN(lists.parallel,
               read(options.bench_parallel, defaults.parallel, "--parallel", {1, kMaxSequences}));
  return lists;
}

/// Adds a case that fits the model; another one is left out if it is of the defaults, or refused.
class CaseAdder {
 public:
  CaseAdder(int n_model_context, BenchPlan* plan) : n_most_(n_model_context), plan_(plan) {}

  Status Add(const BenchCase& bench, bool is_default, const char* where) {
    if (bench.n_positions() == bench.n_depth) {  // a length of 0: not wanted
      return {};
    }
    if (bench.n_positions() <= n_most_) {
      Keep(bench, &plan_->cases);
      return {};
    }
    if (is_default) {
      plan_->left_out.push_back(bench);
      return {};
    }
    return TooLong(bench, where);
  }

  /// Steps of every number of rows, of one sequence and of several.
  Status AddVerify(int n_depth) {
    for (const int n_sequences : {1, kVerifySequences}) {
      BenchCase bench{.n_gen = kVerifySteps * kMaxDrafts,
                      .n_depth = n_depth,
                      .n_sequences = n_sequences,
                      .n_rows = kMaxDrafts};
      if (bench.n_positions() > n_most_) {  // told of the longest
        return TooLong(bench, "--n-depth");
      }
      for (bench.n_rows = 1; bench.n_rows <= kMaxDrafts; ++bench.n_rows) {
        bench.n_gen = kVerifySteps * bench.n_rows;
        Keep(bench, &plan_->verify_cases);
      }
    }
    return {};
  }

 private:
  void Keep(const BenchCase& bench, std::vector<BenchCase>* cases) {
    cases->push_back(bench);
    plan_->n_context = std::max(plan_->n_context, bench.n_positions());
  }
  [[nodiscard]] Error TooLong(const BenchCase& bench, const char* where) const {
    return Refuse(where, fmt::format("{}: {} positions", NameOf(bench), bench.n_positions()),
                  fmt::format("at most the {} of the model", n_most_));
  }

  int n_most_;
  BenchPlan* plan_;
};

}  // namespace

std::string NameOf(const BenchCase& bench) {
  if (bench.is_prefill()) {
    return fmt::format("prefill {}", bench.n_prompt);
  }
  std::string name = fmt::format("decode {}", bench.n_gen);
  if (bench.n_rows > 1) {
    name = fmt::format("verify {} x {} rows", bench.n_sequences, bench.n_rows);
  } else if (bench.n_sequences > 1) {
    name = fmt::format("decode {} x {}", bench.n_sequences, bench.n_gen);
  }
  if (bench.n_depth > 0) {
    name += fmt::format(" at {}", bench.n_depth);
  }
  return name;
}

Result<BenchPlan> PlanBench(const Options& options, int n_model_context) {
  const Defaults& defaults = options.quick ? kQuick : kWhole;
  FACET_ASSIGN(const Lists lists, ReadLists(options, defaults));
  BenchPlan plan;
  plan.n_repetitions = options.repetitions.value_or(defaults.n_repetitions);
  CaseAdder adder(n_model_context, &plan);
  for (const int n_prompt : lists.prompts) {
    FACET_RETURN_IF_ERROR(
        adder.Add({.n_prompt = n_prompt}, options.bench_prompts.empty(), "--n-prompt"));
  }
  const bool has_default_depth = options.bench_depths.empty() && options.bench_gens.empty();
  for (const int n_sequences : lists.parallel) {
    const size_t n_depths = n_sequences == 1 ? lists.depths.size() : 1;
    for (size_t d = 0; d < n_depths; ++d) {
      for (const int n_gen : lists.gens) {
        FACET_RETURN_IF_ERROR(
            adder.Add({.n_gen = n_gen, .n_depth = lists.depths[d], .n_sequences = n_sequences},
                      has_default_depth, "--n-depth"));
      }
    }
  }
  if (options.drafting) {
    FACET_RETURN_IF_ERROR(adder.AddVerify(lists.depths[0]));
  }
  if (plan.cases.empty() && plan.verify_cases.empty()) {
    return Refuse("facet bench", "nothing to measure",
                  "--n-prompt or --n-gen that the model's context holds, or --drafting");
  }
  return plan;
}

}  // namespace facet
