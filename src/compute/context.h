// SPDX-License-Identifier: Apache-2.0
// What every operation is given: the kernels of one instruction set and the threads to run them on.
#pragma once

#include "compute/cpu.h"

namespace facet {

struct Kernels;
class ThreadPool;

/// Borrowed by every operation of compute/. The choice of kernels and the number of threads never
/// change a result.
struct ComputeContext {
  const Kernels* kernels;
  ThreadPool* pool;
};

/// The dispatch table for `isa`, which this processor must support.
const Kernels& KernelsFor(Isa isa);

}  // namespace facet
