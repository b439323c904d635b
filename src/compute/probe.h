// SPDX-License-Identifier: Apache-2.0
// What the machine at hand can do, measured: the two rates that bound a forward pass. Decoding one
// sequence reads every weight once and is bound by memory; a prompt multiplies every weight many
// times and is bound by arithmetic. `facet bench` shows how near a model comes to them.
#pragma once

#include <cstddef>

#include "base/status.h"
#include "compute/context.h"

namespace facet {

/// Bytes per second that the threads of `pool` together read from memory, in order, each from a
/// part of its own: the best pass of those that fit into `seconds` (at least one). `n_bytes` should
/// be several times the last cache; as much memory is taken meanwhile, and refused if there is
/// none.
Result<double> MeasureReadRate(ThreadPool* pool, size_t n_bytes, double seconds);

/// Operations per second (a multiplication and an addition are two) of the context's own kernels
/// for products of 64 rows with Q4_0 or Q8_0 weights that stay in a core's cache, whichever is
/// faster: the best product of those that fit into `seconds` (at least one of each).
/// `is_packed`: weights arranged as in packed_weights.h.
double MeasureMultiplyRate(const ComputeContext& context, bool is_packed, double seconds);

/// Enough for MeasureReadRate: four times the last cache, from 256 MiB to 1 GiB, but no more than
/// an eighth of the memory.
size_t ProbeBytes();

}  // namespace facet
