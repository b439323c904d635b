// SPDX-License-Identifier: Apache-2.0
// `facet quantize`: a model into a file of fewer bits.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <chrono>
#include <optional>

#include "app/commands.h"
#include "app/progress.h"
#include "app/terminal.h"
#include "app/text_width.h"
#include "compute/cpu.h"
#include "convert/quantize.h"

namespace facet {
namespace {

struct Totals {
  uint64_t n_elements = 0;
  uint64_t from_bytes = 0;
  uint64_t to_bytes = 0;
};

uint64_t ElementsOf(const std::vector<int64_t>& shape) {
  uint64_t n = 1;
  for (const int64_t d : shape) {
    n *= static_cast<uint64_t>(d);
  }
  return n;
}

Totals TotalsOf(const std::vector<QuantizedTensor>& tensors) {
  Totals totals;
  for (const QuantizedTensor& tensor : tensors) {
    totals.n_elements += ElementsOf(tensor.shape);
    totals.from_bytes += tensor.from_bytes;
    totals.to_bytes += tensor.to_bytes;
  }
  return totals;
}

std::string ShownSize(uint64_t n_bytes, uint64_t n_elements) {
  return fmt::format(
      "{}, {:.2f} bits a weight", ShownBytes(static_cast<double>(n_bytes)),
      n_elements == 0 ? 0.0 : 8.0 * static_cast<double>(n_bytes) / static_cast<double>(n_elements));
}

/// "from 6.03 MB, 16.1 bits a weight, to 3.20 MB, 8.54 bits a weight"
std::string ShownTotals(const Totals& totals) {
  return fmt::format("from {}, to {}", ShownSize(totals.from_bytes, totals.n_elements),
                     ShownSize(totals.to_bytes, totals.n_elements));
}

std::string Table(const std::vector<QuantizedTensor>& tensors) {
  std::string out = fmt::format("{:<36}  {:<20}  {:<5}  {:<6}  {:>12}\n", "tensor", "shape", "from",
                                "to", "bytes");
  for (const QuantizedTensor& tensor : tensors) {
    out += fmt::format("{:<36}  {:<20}  {:<5}  {:<6}  {:>12}\n", ShownText(tensor.name),
                       fmt::format("[{}]", fmt::join(tensor.shape, ", ")), InfoOf(tensor.from).name,
                       InfoOf(tensor.to).name, tensor.to_bytes);
  }
  return out + ShownTotals(TotalsOf(tensors)) + "\n";
}

QuantizeOptions OptionsFrom(const Options& options) {
  QuantizeOptions quantize;
  quantize.in = options.words[0];
  quantize.out = options.words[1];
  quantize.choice = {options.type, options.tensor, options.pure, options.allow_requantize};
  quantize.imatrix = options.imatrix;
  quantize.n_threads = options.threads > 0 ? options.threads : DefaultThreads();
  return quantize;
}

/// What is wrong with the input counts as a model refused.
int FailOf(const Error& error, const std::string& in) {
  return Fail(error, error.where.starts_with(in) ? kExitModelRefused : kExitFailed);
}

int WriteQuantized(const Quantization& quantization, const std::string& in,
                   const std::string& out) {
  const auto start = std::chrono::steady_clock::now();
  std::optional<ProgressLine> progress("quantizing");
  RemoveOnInterrupt(out + ".part");  // where base/file.h writes what is not complete
  const Status status = quantization.Write(
      [&progress](uint64_t done, uint64_t total) { progress->Update(done, total); });
  RemoveOnInterrupt("");
  progress.reset();
  if (!status.ok()) {
    return FailOf(status.error(), in);
  }
  Note(fmt::format("{}: {}, in {:.1f} s", ShownText(out),
                   ShownTotals(TotalsOf(quantization.tensors())), SecondsSince(start)));
  return kExitDone;
}

}  // namespace

int RunQuantize(const Options& options) {
  if (const Status named = CheckGgufName(options.command, options.words[1]); !named.ok()) {
    return Fail(named.error(), kExitFailed);
  }
  const auto quantization = Quantization::Prepare(OptionsFrom(options));
  if (!quantization.ok()) {
    return FailOf(quantization.error(), options.words[0]);
  }
  if (options.dry_run) {
    const Status status =
        WriteAll(STDOUT_FILENO, Table(quantization->tensors()), "standard output");
    return status.ok() ? kExitDone : Fail(status.error(), kExitFailed);
  }
  return WriteQuantized(*quantization, options.words[0], options.words[1]);
}

}  // namespace facet
