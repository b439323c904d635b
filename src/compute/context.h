// SPDX-License-Identifier: Apache-2.0
// What every operation is given: the kernels of one instruction set and the threads to run them on.
#pragma once

#include <cstdint>
#include <functional>

#include "compute/cpu.h"

namespace facet {

struct Kernels;
struct WeightMatrix;
class ThreadPool;

/// Is told of every matrix product before it runs: the weights and the rows x [n_rows, w.n_in] that
/// meet them. Called on the thread that runs the batch.
using MatMulObserver = std::function<void(const WeightMatrix& w, const float* x, int64_t n_rows)>;

/// Borrowed by every operation of compute/. The choice of kernels and the number of threads never
/// change a result.
struct ComputeContext {
  const Kernels* kernels;
  ThreadPool* pool;
  const MatMulObserver* observer = nullptr;  ///< null: nobody wants to know
};

/// The dispatch table for `isa`, which this processor must support.
const Kernels& KernelsFor(Isa isa);

}  // namespace facet
