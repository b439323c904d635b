// SPDX-License-Identifier: Apache-2.0
#include "compute/matmul.h"

#include <algorithm>

#include "base/check.h"
#include "compute/kernels.h"
#include "compute/packed_weights.h"
#include "compute/thread_pool.h"
#include "quant/codec.h"

namespace facet {
namespace {

// Products that are worth waking a thread for: about ten microseconds of work.
constexpr int64_t kLeastProducts = int64_t{1} << 18;

// Weight rows of a group that one kernel call takes whole, and that borders between threads keep
// whole.
constexpr int64_t kGroupRows = 8;

// Rows of weights that a thread takes at least.
int64_t RowsWorthAThread(int64_t n_products_per_row, int64_t group_rows) {
  const int64_t n_rows = kLeastProducts / std::max<int64_t>(1, n_products_per_row);
  return std::max(group_rows, (n_rows + group_rows - 1) / group_rows * group_rows);
}

MatMulKernel Find(const TypeKernel* kernels, int n_kernels, TensorType type) {
  const TypeKernel* end = kernels + n_kernels;
  const TypeKernel* found =
      std::find_if(kernels, end, [type](const TypeKernel& own) { return own.type == type; });
  return found == end ? nullptr : found->kernel;
}

MatMulKernel KernelForFile(TensorType type, const MatMulKernels& kernels) {
  switch (type) {
    case TensorType::kF32:
      return kernels.f32;
    case TensorType::kF16:
      return kernels.f16;
    case TensorType::kBF16:
      return kernels.bf16;
    default:
      break;
  }
  const MatMulKernel own = Find(kernels.blocks, kernels.n_blocks, type);
  return own != nullptr ? own : kernels.unpacked;
}

// Of this thread, kept from call to call.
std::byte* Scratch(int64_t n_in) {
  thread_local AlignedVector<std::byte> scratch;
  if (scratch.size() < MatMulScratchBytes(n_in)) {
    scratch.resize(MatMulScratchBytes(n_in));
  }
  return scratch.data();
}

// Rows of width n, in the order of `rows`.
template <typename T>
void CopyRows(const T* from, std::span<const int64_t> rows, int64_t n, T* to) {
  for (const int64_t row : rows) {
    to = std::copy_n(from + row * n, n, to);
  }
}

}  // namespace

bool IsMatMulType(TensorType type) { return FindCodec(type) != nullptr; }

void Activations::Set(const float* x, int64_t n_rows, int64_t n_in) {
  x_ = x;
  n_rows_ = n_rows;
  n_in_ = n_in;
  source_ = nullptr;
  is_quantized_ = false;
}

void Activations::SetRowsOf(Activations* source, std::span<const int64_t> rows) {
  Set(nullptr, static_cast<int64_t>(rows.size()), source->n_in());
  source_ = source;
  rows_.assign(rows.begin(), rows.end());
}

const float* Activations::Floats() {
  if (x_ == nullptr && source_ != nullptr) {
    copied_.resize(static_cast<size_t>(n_rows_ * n_in_));
    CopyRows(source_->Floats(), rows_, n_in_, copied_.data());
    x_ = copied_.data();
  }
  return x_;
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
  if (source_ != nullptr) {
    CopyQuantized(source_->Quantized(context));
  } else {
    QuantizeFloats(context);
  }
  is_quantized_ = true;
  return quantized_;
}

void Activations::QuantizeFloats(const ComputeContext& context) {
  // Blocks do not know of rows: the whole is one run of blocks.
  constexpr int64_t kGrain = 16384;
  context.pool->RunRanges(n_rows_ * n_in_, kGrain, [&](int64_t begin, int64_t end) {
    context.kernels->matmul->quantize(x_ + begin, end - begin, quantized_.values.data() + begin,
                                      quantized_.scales.data() + begin / 32,
                                      quantized_.sums.data() + begin / 32,
                                      quantized_.half_sums.data() + begin / 16);
  });
}

void Activations::CopyQuantized(const QuantizedRows& all) {
  CopyRows(all.values.data(), rows_, n_in_, quantized_.values.data());
  CopyRows(all.scales.data(), rows_, n_in_ / 32, quantized_.scales.data());
  CopyRows(all.sums.data(), rows_, n_in_ / 32, quantized_.sums.data());
  CopyRows(all.half_sums.data(), rows_, n_in_ / 16, quantized_.half_sums.data());
}

namespace {

// Float activations that stay in the second cache while all weight rows of a thread meet them.
constexpr int64_t kBlockFloats = int64_t{1} << 16;
constexpr int64_t kBlockRows = 24;  // whole tiles of every kernel

// Many float rows in blocks: each output is computed as before, weights are read again for each
// block.
void RunInBlocks(MatMulKernel kernel, const MatMulTask& task, int64_t begin, int64_t end) {
  const int64_t rows = std::max<int64_t>(1, kBlockFloats / (task.n_in * kBlockRows)) * kBlockRows;
  for (int64_t row = 0; row < task.n_rows; row += rows) {
    MatMulTask block = task;
    block.x = task.x + row * task.n_in;
    block.y = task.y + row * task.n_out;
    block.n_rows = std::min(rows, task.n_rows - row);
    kernel(block, begin, end);
  }
}

}  // namespace

void MatMul(const ComputeContext& context, const WeightMatrix& w, Activations& x, float* y) {
  const Codec* codec = FindCodec(w.type);
  FACET_CHECK(codec != nullptr);
  FACET_CHECK(w.n_in == x.n_in());
  if (context.observer != nullptr) {
    (*context.observer)(w, x.Floats(), x.n_rows());
  }
  const MatMulKernels& kernels = *context.kernels->matmul;
  const MatMulKernel packed =
      w.packed == nullptr ? nullptr : Find(kernels.packed, kernels.n_packed, w.type);
  const MatMulKernel kernel = packed != nullptr ? packed : KernelForFile(w.type, kernels);
  MatMulTask task = {};
  task.w = packed != nullptr ? w.packed : w.data;
  task.row_bytes = packed != nullptr ? PackedGroupBytes(w.type, w.n_in) : w.row_bytes();
  task.n_in = w.n_in;
  task.n_out = w.n_out;
  task.n_rows = x.n_rows();
  task.y = y;
  if (codec->unpack != nullptr) {
    task.unpack = codec->unpack;
    task.form = codec->form;
    const QuantizedRows& quantized = x.Quantized(context);
    task.values = quantized.values.data();
    task.scales = quantized.scales.data();
    task.sums = quantized.sums.data();
    task.half_sums = quantized.half_sums.data();
  } else {
    task.x = x.Floats();
  }
  const int64_t group_rows = packed != nullptr ? kPackedRows : kGroupRows;
  context.pool->RunRanges(
      w.n_out, RowsWorthAThread(w.n_in * x.n_rows(), group_rows), [&](int64_t begin, int64_t end) {
        MatMulTask part = task;
        part.scratch = Scratch(w.n_in);
        if (task.x != nullptr) {
          RunInBlocks(kernel, part, begin, end);
        } else {
          kernel(part, begin, end);
        }
        if (w.scale != 1.0f) {
          for (int64_t row = 0; row < task.n_rows; ++row) {
            context.kernels->rows->scale(w.scale, end - begin, y + row * w.n_out + begin);
          }
        }
      });
}

}  // namespace facet
