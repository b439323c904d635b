// SPDX-License-Identifier: Apache-2.0
// `facet quantize` and `facet imatrix` as a user runs them.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <cstdio>

#include "base/file.h"
#include "cli/process.h"
#include "convert/imatrix.h"
#include "format/gguf.h"
#include "support/testing.h"

namespace facet::testing {
namespace {

constexpr std::string_view kQuestion = "What is the capital of France?";
constexpr std::string_view kAnswer = "The capital of France is Paris.\n";

std::string Tiny() { return SourcePath("models/tiny/facet-tiny.gguf"); }

/// The line that names sizes, without the seconds.
std::string WithoutSeconds(const std::string& line) { return line.substr(0, line.rfind(", in ")); }

TEST(QuantizeCommand, MakesAModelThatAnswers) {
  for (const char* type : {"q8_0", "bf16", "f16"}) {
    const std::string out = MakeTempDir() + "/out.gguf";
    const Finished made = RunFacet({"quantize", "--type", type, Tiny(), out});
    EXPECT_EQ(made.exit_code, 0) << made.err;
    EXPECT_EQ(made.out, "");
    EXPECT_TRUE(made.err.starts_with(out + ": from ")) << made.err;
    EXPECT_EQ(RunFacet({"run", "-m", out, "--temp", "0", std::string(kQuestion)}).out, kAnswer)
        << type;
  }
}

TEST(QuantizeCommand, TellsSizesAtTheEnd) {
  const std::string out = MakeTempDir() + "/out.gguf";
  EXPECT_EQ(WithoutSeconds(RunFacet({"quantize", "--type", "q8_0", Tiny(), out}).err),
            out + ": from 5.94 MB, 16.04 bits a weight, to 3.21 MB, 8.66 bits a weight");
}

TEST(QuantizeCommand, ADryRunTellsAndWritesNothing) {
  const std::string out = MakeTempDir() + "/out.gguf";
  const Finished finished = RunFacet({"quantize", "--type", "q4_0", "--tensor",
                                      "blk.*.ffn_down.weight=q5_0", "--dry-run", Tiny(), out});
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_EQ(finished.err, "");
  for (const char* line :
       {"token_embd.weight                     [2048, 128]           BF16   Q8_0          278528\n",
        "blk.0.ffn_down.weight                 [128, 256]            BF16   Q5_0           22528\n",
        "blk.0.ffn_up.weight                   [256, 128]            BF16   Q4_0           18432\n",
        "output_norm.weight                    [128]                 F32    F32              512\n",
        "from 5.94 MB, 16.04 bits a weight, to 2.31 MB, 6.24 bits a weight\n"}) {
    EXPECT_NE(finished.out.find(line), std::string::npos) << line << finished.out;
  }
  EXPECT_FALSE(FileExists(out));
}

TEST(QuantizeCommand, RefusesWithOneLineAndAnExitCode) {
  const std::string out = MakeTempDir() + "/out.gguf";
  const std::string quantized = SourcePath("testdata/tiny-gguf/facet-tiny-q8_0.gguf");
  Finished finished = RunFacet({"quantize", "--type", "q4_0", quantized, out});
  EXPECT_EQ(finished.exit_code, 2);
  EXPECT_EQ(finished.err,
            "facet: " + quantized +
                ", tensor blk.0.ffn_down.weight: type Q8_0, already quantised, "
                "wanted F32, F16 or BF16; --allow-requantize to lose quality twice\n");
  finished = RunFacet({"quantize", "--type", "q4_0", "--tensor", "nothing=q8_0", Tiny(), out});
  EXPECT_EQ(finished.exit_code, 1);
  EXPECT_EQ(finished.err,
            "facet: --tensor: \"nothing\", which matches no matrix, wanted the name of one (facet "
            "inspect --tensors lists them)\n");
  finished = RunFacet({"quantize", "--type", "q8_0", Tiny(), Tiny()});
  EXPECT_EQ(finished.err, "facet: " + Tiny() + ": the input, wanted another file\n");
  finished = RunFacet({"quantize", "--type", "q8_0", Tiny(), "model.bin"});
  EXPECT_EQ(finished.err,
            "facet: facet quantize: \"model.bin\", wanted a name that ends in .gguf\n");
  EXPECT_FALSE(FileExists(out));
}

/// Files may not grow beyond `n_bytes` while it lives: what a full disk does, without one.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t n_bytes) : former_handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &former_);
    const rlimit limit{n_bytes, former_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &former_);
    std::signal(SIGXFSZ, former_handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit former_ = {};
  void (*former_handler_)(int);
};

TEST(QuantizeCommand, AFullDiskLeavesNothing) {
  const std::string out = MakeTempDir() + "/out.gguf";
  ASSERT_TRUE(WriteFile(out, "what was there before").ok());
  Finished finished;
  {
    const FileSizeLimit limit(rlim_t{1} << 20);
    finished = RunFacet({"quantize", "--type", "q8_0", Tiny(), out});
  }
  EXPECT_EQ(finished.exit_code, 1);
  EXPECT_EQ(finished.err, "facet: " + out + ": cannot write: File too large\n");
  EXPECT_EQ(ReadOrDie(out), "what was there before");
  EXPECT_FALSE(FileExists(out + ".part"));
}

TEST(QuantizeCommand, AnInterruptLeavesNothing) {
  if (!HasTerminals()) {
    GTEST_SKIP() << kNoTerminals;
  }
  const std::string out = MakeTempDir() + "/out.gguf";
  const std::string part = out + ".part";
  ASSERT_EQ(::mkfifo(part.c_str(), 0600), 0);  // nobody reads it: the program waits within a write
  TerminalProcess process({"quantize", "--type", "q8_0", Tiny(), out}, {});
  std::FILE* fifo = std::fopen(part.c_str(), "rb");  // returns when the program has opened it too
  ASSERT_NE(fifo, nullptr);
  process.Signal(SIGINT);
  EXPECT_EQ(process.Wait(), 130);
  (void)std::fclose(fifo);
  EXPECT_FALSE(FileExists(out));
  EXPECT_FALSE(FileExists(part));
}

class ImatrixCommand : public ::testing::Test {
 protected:
  Imatrix Make(const std::string& model, const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"imatrix", "-m", model, TestdataPath("imatrix/text.txt"),
                                          out_};
    arguments.insert(arguments.end(), more.begin(), more.end());
    finished_ = RunFacet(arguments);
    EXPECT_EQ(finished_.exit_code, 0) << finished_.err;
    auto imatrix = ReadImatrix(out_);
    EXPECT_TRUE(imatrix.ok()) << imatrix.error().Message();
    return imatrix.ok() ? *std::move(imatrix) : Imatrix();
  }

  std::string out_ = MakeTempDir() + "/imatrix.gguf";
  Finished finished_;
};

/// Of all columns together: |a - b| against b.
double Distance(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0;
  double sum = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    difference += std::abs(a[i] - b[i]);
    sum += b[i];
  }
  return difference / sum;
}

TEST_F(ImatrixCommand, AgreesWithLlamaCpp) {
  const Imatrix ours =
      Make(TestdataPath("tiny-gguf/facet-tiny-q8_0.gguf"), {"--raw", "-c", "256", "--chunks", "1"});
  const auto theirs = ReadImatrix(TestdataPath("imatrix/tiny-q8_0.gguf"));
  ASSERT_TRUE(theirs.ok());
  EXPECT_EQ(ours.n_chunks, 1u);
  EXPECT_EQ(ours.chunk_size, 256u);
  EXPECT_EQ(ours.entries.size(), theirs->entries.size() + 1);  // the per-layer projection
  for (const ImatrixEntry& entry : theirs->entries) {
    const ImatrixEntry* found = ours.Find(entry.name);
    ASSERT_NE(found, nullptr) << entry.name;
    EXPECT_EQ(found->counts, entry.counts) << entry.name;
    ASSERT_EQ(found->sums.size(), entry.sums.size()) << entry.name;
    EXPECT_LT(Distance(found->sums, entry.sums), 0.01) << entry.name;
  }
}

TEST_F(ImatrixCommand, CountsTheRowsOfExperts) {
  const Imatrix ours =
      Make(TestdataPath("text/gguf/moe-keqv-Q4_0.gguf"), {"--raw", "-c", "256", "--chunks", "1"});
  const auto theirs = ReadImatrix(TestdataPath("imatrix/moe-q4_0.gguf"));
  ASSERT_TRUE(theirs.ok());
  for (const ImatrixEntry& entry : theirs->entries) {
    const ImatrixEntry* found = ours.Find(entry.name);
    ASSERT_NE(found, nullptr) << entry.name;
    ASSERT_EQ(found->sums.size(), entry.sums.size()) << entry.name;
    ASSERT_EQ(found->counts.size(), entry.counts.size()) << entry.name;
    EXPECT_LT(Distance(found->counts, entry.counts), 0.05) << entry.name;
    EXPECT_LT(Distance(found->sums, entry.sums), 0.08) << entry.name;
  }
}

TEST_F(ImatrixCommand, IsWhatQuantizeTakes) {
  const Imatrix imatrix = Make(Tiny(), {"-c", "128"});
  EXPECT_EQ(imatrix.datasets, std::vector<std::string>{TestdataPath("imatrix/text.txt")});
  EXPECT_GT(imatrix.n_chunks, 4u);
  EXPECT_EQ(finished_.out, "");
  const std::string out = MakeTempDir() + "/out.gguf";
  const Finished made = RunFacet({"quantize", "--type", "q8_0", "--tensor", "blk.*.ffn_*=q4_0",
                                  "--imatrix", out_, Tiny(), out});
  EXPECT_EQ(made.exit_code, 0) << made.err;
  const auto file = gguf::File::Open(out);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(*file->metadata().Find("quantize.imatrix.file")->AsString(), out_);
}

TEST_F(ImatrixCommand, RefusesWithOneLine) {
  const std::string text = TestdataPath("imatrix/text.txt");
  EXPECT_EQ(RunFacet({"imatrix", "-m", Tiny(), text, "out"}).err,
            "facet: facet imatrix: \"out\", wanted a name that ends in .gguf\n");
  EXPECT_EQ(RunFacet({"imatrix", "-m", Tiny(), "-c", "4", text, out_}).err.substr(0, 20),
            "facet: --ctx-size: 4");
  const std::string empty = MakeTempDir() + "/empty.txt";
  ASSERT_TRUE(WriteFile(empty, "").ok());
  EXPECT_EQ(RunFacet({"imatrix", "-m", Tiny(), empty, out_}).err,
            "facet: " + empty + ": an empty file, wanted a text\n");
  EXPECT_FALSE(FileExists(out_));
}

}  // namespace
}  // namespace facet::testing
