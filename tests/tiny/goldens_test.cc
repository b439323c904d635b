// SPDX-License-Identifier: Apache-2.0
// The forward pass against transformers (testdata/text/README.md): logits, intermediates and greedy
// text of every Hugging Face checkpoint, run directly. Tolerances: 5e-4 on logits, 2e-4 on
// intermediates; the reference's own float32 differs from float64 by up to 9.8e-5.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "format/safetensors.h"
#include "support/testing.h"
#include "tiny/driver.h"

namespace facet::testing {
namespace {

constexpr float kLogitTolerance = 5e-4F;
constexpr float kTapTolerance = 2e-4F;

std::vector<int32_t> Ints(const Json& json) {
  std::vector<int32_t> out;
  for (const Json& item : json.items()) {
    out.push_back(static_cast<int32_t>(item.as_int()));
  }
  return out;
}

/// The goldens of one checkpoint.
class Goldens {
 public:
  explicit Goldens(const std::string& name)
      : cases_(JsonOrDie(TestdataPath("text/" + name + "/cases.json"))),
        file_(*safetensors::File::Open(TestdataPath("text/" + name + "/goldens.safetensors"))) {}

  [[nodiscard]] const Json& cases() const { return cases_; }
  [[nodiscard]] bool Has(const std::string& name) const { return file_.Find(name) != nullptr; }
  [[nodiscard]] const safetensors::File& file() const { return file_; }
  [[nodiscard]] std::vector<double> Numbers(const std::string& name) const {
    const auto* view = file_.Find(name);
    FACET_CHECK(view != nullptr);
    std::vector<double> out;
    const size_t size = static_cast<size_t>(InfoOf(view->type).block_bytes);
    for (size_t i = 0; i < view->data.size(); i += size) {
      out.push_back(At(view->type, view->data.data() + i));
    }
    return out;
  }

 private:
  static double At(TensorType type, const std::byte* data) {
    const auto read = [data]<typename T>(T value) {
      std::memcpy(&value, data, sizeof value);
      return static_cast<double>(value);
    };
    switch (type) {
      case TensorType::kF32:
        return read(float{});
      case TensorType::kF64:
        return read(double{});
      case TensorType::kI32:
        return read(int32_t{});
      case TensorType::kI64:
        return read(int64_t{});
      default:
        FACET_CHECK(false);
    }
  }

  Json cases_;
  safetensors::File file_;
};

std::vector<float> SoftRows(const Goldens& goldens, const std::string& name) {
  std::vector<float> soft;
  if (goldens.Has(name + ".soft")) {
    for (const double v : goldens.Numbers(name + ".soft")) {
      soft.push_back(static_cast<float>(v));
    }
  }
  return soft;
}

std::vector<int> Types(const Json& one) {
  const std::vector<int32_t> ints = Ints(one["token_type"]);
  return {ints.begin(), ints.end()};
}

class GoldensTest : public ::testing::TestWithParam<std::string> {};

TEST_P(GoldensTest, LogitsOfEveryCase) {
  const Checkpoint checkpoint = OpenOrDie(TestdataPath("text/" + GetParam()));
  const Goldens goldens(GetParam());
  int n_cases = 0;
  for (const Json& one : goldens.cases()["cases"].items()) {
    const std::string& name = one["name"].as_string();
    SCOPED_TRACE(name);
    Driver driver(checkpoint, {BestIsa(), 2, KvType::kF32, 256});
    const int s = driver.Add(Ints(one["ids"]), Types(one), SoftRows(goldens, name));
    const auto logits = driver.Run({{s, driver.n_left(s), true}});
    const std::vector<double> golden = goldens.Numbers(name + ".logits");
    std::vector<int32_t> rows = Ints(one["logits_rows"]);
    if (one["logits_rows"].is_string()) {
      for (size_t i = 0; i < logits.size(); ++i) {
        rows.push_back(static_cast<int32_t>(i));
      }
    }
    const auto n_vocab = static_cast<size_t>(driver.n_vocab());
    ASSERT_EQ(golden.size(), rows.size() * n_vocab);
    double worst = 0;
    for (size_t r = 0; r < rows.size(); ++r) {
      for (size_t i = 0; i < n_vocab; ++i) {
        worst = std::max(
            worst, std::fabs(logits[static_cast<size_t>(rows[r])][i] - golden[r * n_vocab + i]));
      }
    }
    EXPECT_LT(worst, kLogitTolerance);
    const std::vector<double> argmax = goldens.Numbers(name + ".argmax");
    ASSERT_EQ(argmax.size(), logits.size());
    for (size_t r = 0; r < logits.size(); ++r) {
      EXPECT_EQ(ArgMax(logits[r]), static_cast<int>(argmax[r])) << "row " << r;
    }
    const std::vector<double> exact = goldens.Numbers(name + ".last_logits_float64");
    double worst_exact = 0;
    for (size_t i = 0; i < n_vocab; ++i) {
      worst_exact = std::max(worst_exact, std::fabs(logits.back()[i] - exact[i]));
    }
    EXPECT_LT(worst_exact, kLogitTolerance);
    ++n_cases;
  }
  EXPECT_EQ(n_cases, GetParam() == "dense-k256" ? 1 : 6);
}

TEST_P(GoldensTest, EveryIntermediate) {
  if (GetParam() == "dense-k256") {
    GTEST_SKIP() << "no intermediates are stored for it";
  }
  const Checkpoint checkpoint = OpenOrDie(TestdataPath("text/" + GetParam()));
  const Goldens goldens(GetParam());
  int n_compared = 0;
  for (const Json& one : goldens.cases()["cases"].items()) {
    const std::string& name = one["name"].as_string();
    Driver driver(checkpoint, {BestIsa(), 1, KvType::kF32, 256});
    std::map<std::string, std::vector<float>> taps;
    driver.Collect(&taps);
    const int s = driver.Add(Ints(one["ids"]), Types(one), SoftRows(goldens, name));
    (void)driver.Run({{s, driver.n_left(s), true}});
    for (const auto& view : goldens.file().tensors()) {
      if (view.name.rfind(name + ".", 0) != 0) {
        continue;
      }
      const std::string tap = view.name.substr(name.size() + 1);
      if (taps.count(tap) == 0 || tap.find("router") != std::string::npos) {
        continue;  // logits and the like have tests of their own; "ple" and the router come below
      }
      const std::vector<double> golden = goldens.Numbers(view.name);
      ASSERT_EQ(golden.size(), taps[tap].size()) << view.name;
      double worst = 0;
      for (size_t i = 0; i < golden.size(); ++i) {
        worst = std::max(worst, std::fabs(golden[i] - taps[tap][i]));
      }
      EXPECT_LT(worst, kTapTolerance) << view.name;
      ++n_compared;
    }
  }
  EXPECT_GE(n_compared, 2 + 3 * checkpoint.config().n_layers);
}

TEST_P(GoldensTest, PerLayerInputsAndRouter) {
  if (GetParam() == "dense-k256" || GetParam() == "dense-keqv") {
    GTEST_SKIP() << "it has neither";
  }
  const Checkpoint checkpoint = OpenOrDie(TestdataPath("text/" + GetParam()));
  const Config& config = checkpoint.config();
  const Goldens goldens(GetParam());
  Driver driver(checkpoint, {BestIsa(), 1, KvType::kF32, 256});
  std::map<std::string, std::vector<float>> taps;
  driver.Collect(&taps);
  for (const Json& one : goldens.cases()["cases"].items()) {
    if (one["name"].as_string() != "text17") {
      continue;
    }
    const int s = driver.Add(Ints(one["ids"]));
    (void)driver.Run({{s, driver.n_left(s), true}});
  }
  const int64_t n_rows = 17;
  if (config.n_embd_per_layer > 0) {
    const std::vector<double> golden = goldens.Numbers("text17.ple");  // [T, L, P]
    const int64_t width = config.n_embd_per_layer;
    for (int l = 0; l < config.n_layers; ++l) {
      const std::vector<float>& mine = taps["layer" + std::to_string(l) + ".ple"];
      ASSERT_EQ(mine.size(), static_cast<size_t>(n_rows * width));
      for (int64_t i = 0; i < n_rows * width; ++i) {
        const int64_t at = (i / width * config.n_layers + l) * width + i % width;
        ASSERT_NEAR(mine[static_cast<size_t>(i)], golden[static_cast<size_t>(at)], kTapTolerance);
      }
    }
  }
  for (int l = 0; l < config.n_layers && config.n_experts > 0; ++l) {
    const std::string layer = "layer" + std::to_string(l);
    const std::vector<double> ids = goldens.Numbers("text17." + layer + ".router_ids");
    const std::vector<double> weights = goldens.Numbers("text17." + layer + ".router_weights");
    const std::vector<float>& mine = taps[layer + ".router_weights"];  // [T, n_experts]
    double sum_golden = 0;
    double sum_mine = 0;
    for (size_t i = 0; i < ids.size(); ++i) {
      const size_t row = i / static_cast<size_t>(config.n_experts_used);
      const size_t at = row * static_cast<size_t>(config.n_experts) + static_cast<size_t>(ids[i]);
      ASSERT_NEAR(mine[at], weights[i], kTapTolerance) << layer;
      sum_golden += weights[i];
    }
    for (const float w : mine) {
      sum_mine += w;
    }
    ASSERT_NEAR(sum_mine, sum_golden, 1e-3) << layer;  // no other expert is used
  }
}

TEST_P(GoldensTest, GreedyText) {
  const Checkpoint checkpoint = OpenOrDie(TestdataPath("text/" + GetParam()));
  const Goldens goldens(GetParam());
  const std::vector<int32_t> never = Ints(goldens.cases()["greedy_never_takes"]);
  for (const Json& one : goldens.cases()["cases"].items()) {
    const std::string& name = one["name"].as_string();
    Driver driver(checkpoint, {BestIsa(), 2, KvType::kF32, 256});
    const int s = driver.Add(Ints(one["ids"]), Types(one), SoftRows(goldens, name));
    const std::vector<int32_t> golden = Ints(one["greedy"]["ids"]);
    ASSERT_GE(golden.size(), 8U);
    std::vector<int32_t> mine;
    while (mine.size() < golden.size()) {
      auto logits = driver.Run({{s, driver.n_left(s), false}}).back();
      for (const int32_t id : never) {
        logits[static_cast<size_t>(id)] = -1e30F;
      }
      mine.push_back(ArgMax(logits));
      driver.Append(s, mine.back());
    }
    EXPECT_EQ(mine, golden) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Tiny, GoldensTest, ::testing::ValuesIn(TinyHfNames()),
                         [](const auto& param) {
                           std::string name = param.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

/// GGUF files of llama.cpp's converter and quantiser. The goldens are float64 over the dequantised
/// weights; the int8 activations of our contract differ from them as llama.cpp's own do
/// (testdata/text/README.md, table of gguf/), and the bound is that difference with a margin of a
/// half.
TEST(GgufGoldens, LogitsOfQuantisedFiles) {
  const Json cases = JsonOrDie(TestdataPath("text/gguf/cases.json"));
  const auto goldens = safetensors::File::Open(TestdataPath("text/gguf/goldens.safetensors"));
  ASSERT_TRUE(goldens.ok());
  int n_files = 0;
  for (const Json& one : cases["cases"].items()) {
    const std::string file = one["file"].as_string();
    const std::vector<std::string> names = TinyGgufNames();
    if (std::find(names.begin(), names.end(), file.substr(0, file.rfind('.'))) == names.end()) {
      continue;
    }
    SCOPED_TRACE(file);
    const Checkpoint checkpoint = OpenOrDie(TestdataPath("text/gguf/" + file));
    Driver driver(checkpoint, {BestIsa(), 2, KvType::kF32, 256});
    const int s = driver.Add(Ints(one["ids"]));
    const auto logits = driver.Run({{s, driver.n_left(s), true}});
    const auto* view = goldens->Find(file + ".logits");
    if (view == nullptr) {
      view = goldens->Find(file.substr(0, file.rfind('.')) + ".logits");
    }
    ASSERT_NE(view, nullptr);
    const std::vector<int32_t> rows = Ints(one["logits_rows"]);
    double worst = 0;
    double sum = 0;
    size_t n = 0;
    const auto n_vocab = static_cast<size_t>(driver.n_vocab());
    const size_t width = view->data.size() / rows.size() / n_vocab;
    for (size_t r = 0; r < rows.size(); ++r) {
      for (size_t i = 0; i < n_vocab; ++i, ++n) {
        double golden = 0;
        if (width == 8) {
          std::memcpy(&golden, view->data.data() + n * 8, 8);
        } else {
          float value = 0;
          std::memcpy(&value, view->data.data() + n * 4, 4);
          golden = value;
        }
        const double difference = std::fabs(logits[static_cast<size_t>(rows[r])][i] - golden);
        worst = std::max(worst, difference);
        sum += difference;
      }
    }
    const std::vector<int32_t> argmax = Ints(one["argmax"]);
    int n_same = 0;
    for (size_t r = 0; r < argmax.size(); ++r) {
      n_same += ArgMax(logits[r]) == argmax[r] ? 1 : 0;
    }
    std::printf("%s: worst %.3f mean %.4f (llama.cpp %.3f %.4f), argmax %d of %zu (llama.cpp %d)\n",
                file.c_str(), worst, sum / static_cast<double>(n),
                one["llama_cpp_max_abs_diff"].as_double(),
                one["llama_cpp_mean_abs_diff"].as_double(), n_same, argmax.size(),
                static_cast<int>(one["llama_cpp_argmax_same"].as_int()));
    EXPECT_LT(worst, 1.5 * one["llama_cpp_max_abs_diff"].as_double());
    EXPECT_LT(sum / static_cast<double>(n), 1.5 * one["llama_cpp_mean_abs_diff"].as_double());
    EXPECT_GE(n_same, static_cast<int>(one["llama_cpp_argmax_same"].as_int()) - 2);
    ++n_files;
  }
  EXPECT_EQ(n_files, static_cast<int>(TinyGgufNames().size()));
}

}  // namespace
}  // namespace facet::testing
