// SPDX-License-Identifier: Apache-2.0
#include "compute/matmul.h"

#include <algorithm>

#include "base/check.h"
#include "compute/kernels.h"
#include "compute/thread_pool.h"
#include "quant/codec.h"

namespace facet {
namespace {

// Kernels take weight rows in groups of 8; borders between threads keep the groups whole.
constexpr int64_t kRowsPerGrain = 8;

// Products that are worth waking a thread for: about ten microseconds of work.
constexpr int64_t kLeastProducts = int64_t{1} << 18;

// Rows of weights that a thread takes at least.
int64_t RowsWorthAThread(int64_t n_products_per_row) {
  const int64_t n_rows = kLeastProducts / std::max<int64_t>(1, n_products_per_row);
  return std::max(kRowsPerGrain, (n_rows + kRowsPerGrain - 1) / kRowsPerGrain * kRowsPerGrain);
}

struct OwnKernel {
  TensorType type;
  MatMulKernel MatMulKernels::*kernel;
};

constexpr OwnKernel kOwnKernels[] = {
    {TensorType::kF32, &MatMulKernels::f32},       {TensorType::kF16, &MatMulKernels::f16},
    {TensorType::kBF16, &MatMulKernels::bf16},     {TensorType::kQ8_0, &MatMulKernels::q8_0},
    {TensorType::kQ5_0, &MatMulKernels::q5_0},     {TensorType::kQ5_1, &MatMulKernels::q5_1},
    {TensorType::kQ4_0, &MatMulKernels::q4_0},     {TensorType::kQ4_1, &MatMulKernels::q4_1},
    {TensorType::kQ6_K, &MatMulKernels::q6_k},     {TensorType::kQ5_K, &MatMulKernels::q5_k},
    {TensorType::kQ4_K, &MatMulKernels::q4_k},     {TensorType::kQ3_K, &MatMulKernels::q3_k},
    {TensorType::kQ2_K, &MatMulKernels::q2_k},     {TensorType::kIQ4_NL, &MatMulKernels::iq4_nl},
    {TensorType::kIQ4_XS, &MatMulKernels::iq4_xs}, {TensorType::kMXFP4, &MatMulKernels::mxfp4},
};

MatMulKernel KernelFor(TensorType type, const MatMulKernels& kernels) {
  for (const OwnKernel& own : kOwnKernels) {
    if (own.type == type && kernels.*own.kernel != nullptr) {
      return kernels.*own.kernel;
    }
  }
  return kernels.unpacked;
}

// Of this thread, kept from call to call.
std::byte* Scratch(int64_t n_in) {
  thread_local std::vector<std::byte> scratch;
  if (scratch.size() < MatMulScratchBytes(n_in)) {
    scratch.resize(MatMulScratchBytes(n_in));
  }
  return scratch.data();
}

}  // namespace

bool IsMatMulType(TensorType type) { return FindCodec(type) != nullptr; }

void Activations::Set(const float* x, int64_t n_rows, int64_t n_in) {
  x_ = x;
  n_rows_ = n_rows;
  n_in_ = n_in;
  is_quantized_ = false;
}

const QuantizedRows& Activations::Quantized(const ComputeContext& context) {
  if (is_quantized_) {
    return quantized_;
  }
  FACET_CHECK(n_in_ % 32 == 0);
  const auto n = static_cast<size_t>(n_rows_ * n_in_);
  quantized_.values.resize(n);
  quantized_.scales.resize(n / 32);
  quantized_.sums.resize(n / 32);
  quantized_.half_sums.resize(n / 16);
  // Blocks do not know of rows: the whole is one run of blocks.
  constexpr int64_t kGrain = 16384;
  context.pool->RunRanges(n_rows_ * n_in_, kGrain, [&](int64_t begin, int64_t end) {
    context.kernels->matmul->quantize(x_ + begin, end - begin, quantized_.values.data() + begin,
                                      quantized_.scales.data() + begin / 32,
                                      quantized_.sums.data() + begin / 32,
                                      quantized_.half_sums.data() + begin / 16);
  });
  is_quantized_ = true;
  return quantized_;
}

void MatMul(const ComputeContext& context, const WeightMatrix& w, Activations& x, float* y) {
  const Codec* codec = FindCodec(w.type);
  FACET_CHECK(codec != nullptr);
  FACET_CHECK(w.n_in == x.n_in());
  if (context.observer != nullptr) {
    (*context.observer)(w, x.x(), x.n_rows());
  }
  MatMulTask task = {};
  task.w = w.data;
  task.row_bytes = w.row_bytes();
  task.n_in = w.n_in;
  task.n_out = w.n_out;
  task.n_rows = x.n_rows();
  task.x = x.x();
  task.y = y;
  if (codec->unpack != nullptr) {
    task.unpack = codec->unpack;
    task.form = codec->form;
    const QuantizedRows& quantized = x.Quantized(context);
    task.values = quantized.values.data();
    task.scales = quantized.scales.data();
    task.sums = quantized.sums.data();
    task.half_sums = quantized.half_sums.data();
  }
  const MatMulKernel kernel = KernelFor(w.type, *context.kernels->matmul);
  context.pool->RunRanges(
      w.n_out, RowsWorthAThread(w.n_in * x.n_rows()), [&](int64_t begin, int64_t end) {
        MatMulTask part = task;
        part.scratch = Scratch(w.n_in);
        kernel(part, begin, end);
        if (w.scale != 1.0f) {
          for (int64_t row = 0; row < task.n_rows; ++row) {
            context.kernels->rows->scale(w.scale, end - begin, y + row * w.n_out + begin);
          }
        }
      });
}

}  // namespace facet
