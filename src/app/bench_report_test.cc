// SPDX-License-Identifier: Apache-2.0
#include "app/bench_report.h"

#include <gtest/gtest.h>

namespace facet {
namespace {

BenchSetting MakeSetting() {
  BenchSetting setting;
  setting.cpu = "Fast 9000";
  setting.n_cores = 2;
  setting.memory_bytes = 16'000'000'000;
  setting.isa = "scalar";
  setting.n_threads = 1;
  setting.kv_type = "f16";
  setting.is_packed = true;
  setting.rates = {.read_bytes = 20e9, .operations = 500e9};
  setting.model = "Tiny\n\x1b[1m";
  setting.file = "tiny.gguf";
  setting.file_bytes = 6'000'000;
  setting.bytes_per_token = 3e6;
  setting.load_s = 0.5;
  return setting;
}

const BenchResult kPrompt = {{.n_prompt = 512}, {.operations = 200e9, .bytes = 0}, {2, 1, 4}};
const BenchResult kDecode = {
    {.n_gen = 32, .n_depth = 512, .n_sequences = 8}, {.operations = 5e9, .bytes = 16e9}, {1, 1}};

TEST(SpreadOf, IsMedianAndEnds) {
  const auto check = [](std::vector<double> values, double median, double min, double max) {
    const Spread spread = SpreadOf(values);
    EXPECT_EQ(spread.median, median);
    EXPECT_EQ(spread.min, min);
    EXPECT_EQ(spread.max, max);
  };
  check({3}, 3, 3, 3);
  check({5, 1}, 3, 1, 5);
  check({9, 1, 2}, 2, 1, 9);
  check({4, 1, 3, 8}, 3.5, 1, 8);
}

TEST(CpuName, IsThatOfTheFirstProcessor) {
  EXPECT_EQ(CpuName("processor\t: 0\nmodel name\t: AMD EPYC: 9 \nflags\t: a\nmodel name\t: B\n"),
            "AMD EPYC: 9 ");
  EXPECT_EQ(CpuName("model name\t: X"), "X");
  for (const char* text : {"", "model name", "model name\t: \n", "processor : 0\n",
                           "x model name: Y\n", "model name\t: \xff\n"}) {
    EXPECT_EQ(CpuName(text), "unknown") << text;
  }
}

TEST(BenchReport, IsATable) {
  const BenchSetting setting = MakeSetting();
  EXPECT_EQ(BenchHead(setting) + BenchColumns({}) + BenchRow(setting, kPrompt, {}) +
                BenchRow(setting, kDecode, {}),
            "model    Tiny ^[[1m, 6.00 MB: tiny.gguf\n"
            "machine  Fast 9000, 2 cores, 16.0 GB of memory\n"
            "compute  scalar, 1 thread, weights packed, keys and values f16\n"
            "limits   20.0 GB/s read, 500 Gop/s multiplied\n"
            "\n"
            "work                    tokens/s      min .. max   GB/s  Gop/s  of the limit\n"
            "prefill 512                  256      128 .. 512      -    100  20% arithmetic\n"
            "decode 8 x 32 at 512         256      256 .. 256   16.0   5.00  80% memory\n");
}

TEST(BenchReport, HasColoursOnlyWhereTheStyleHas) {
  const Style style = {"<b>", "<d>", "<r>", "</>"};
  const std::string row = BenchRow(MakeSetting(), kPrompt, style);
  EXPECT_NE(row.find("<b>      256</>"), std::string::npos) << row;
  EXPECT_NE(row.find("<d>      128 .. 512</>"), std::string::npos) << row;
  EXPECT_NE(BenchColumns(style).find("<b>work"), std::string::npos);
}

TEST(BenchReport, IsJson) {
  const std::vector<BenchResult> results = {kPrompt, kDecode};
  const Json json = BenchJson(MakeSetting(), results, true);
  EXPECT_EQ(json["machine"]["cpu"].as_string(), "Fast 9000");
  EXPECT_EQ(json["machine"]["read_bytes_per_second"].as_double(), 20e9);
  EXPECT_EQ(json["model"]["bytes_per_token"].as_double(), 3e6);
  EXPECT_TRUE(json["drafter"].is_null());
  EXPECT_TRUE(json["complete"].as_bool());
  const Json& prompt = json["results"].items().at(0);
  EXPECT_EQ(prompt["name"].as_string(), "prefill 512");
  EXPECT_EQ(prompt["seconds"]["median"].as_double(), 2.0);
  EXPECT_EQ(prompt["tokens_per_second"]["max"].as_double(), 512.0);
  EXPECT_EQ(prompt["operations_per_second"].as_double(), 100e9);
  EXPECT_FALSE(prompt.contains("bytes_per_second"));
  EXPECT_EQ(prompt["limit"].as_string(), "arithmetic");
  EXPECT_DOUBLE_EQ(prompt["share_of_limit"].as_double(), 0.2);
  EXPECT_EQ(prompt["repetitions"].items().size(), 3U);
  const Json& decode = json["results"].items().at(1);
  EXPECT_EQ(decode["parallel"].as_int(), 8);
  EXPECT_EQ(decode["tokens"].as_int(), 256);
  EXPECT_EQ(decode["bytes_per_second"].as_double(), 16e9);
  EXPECT_EQ(decode["limit"].as_string(), "memory");
}

TEST(BenchReport, NamesTheDrafter) {
  BenchSetting setting = MakeSetting();
  setting.drafter_file = "d.gguf";
  setting.drafter_bytes = 2'000'000;
  EXPECT_NE(BenchHead(setting).find(": tiny.gguf\ndrafter  2.00 MB: d.gguf\nmachine  "),
            std::string::npos)
      << BenchHead(setting);
  const Json json = BenchJson(setting, {}, true);
  EXPECT_EQ(json["drafter"]["file"].as_string(), "d.gguf");
  EXPECT_EQ(json["drafter"]["bytes"].as_int(), 2'000'000);
}

TEST(BenchReport, OfNothingIsAnEmptyList) {
  const Json json = BenchJson(MakeSetting(), {}, false);
  EXPECT_TRUE(json["results"].is_array());
  EXPECT_FALSE(json["complete"].as_bool());
}

}  // namespace
}  // namespace facet
