// SPDX-License-Identifier: Apache-2.0
// What a case of `facet bench` asks of the machine, from the model's shapes: the operations that
// have to be done and the bytes that have to be read, and so the time below which no program gets.
#pragma once

#include "app/bench_plan.h"
#include "compute/attention.h"
#include "model/checkpoint.h"
#include "model/config.h"

namespace facet {

struct BenchWork {
  /// Multiplications and additions of matrix products and attention. Rows without logits stop
  /// after the last layer that writes keys and values (text_model.h).
  double operations = 0;
  /// Of weights, once for each step, and of keys and values. Only of generation: a prompt reads
  /// less than it could in the time that its operations take, and has 0 here.
  double bytes = 0;
};

/// What one repetition asks for. `step_bytes`: of weights, for a step of the case (BytesPerStep).
BenchWork WorkOf(const BenchCase& bench, const Config& config, KvType kv_type, double step_bytes);

/// What the machine can do, per second.
struct MachineRates {
  double read_bytes = 0;
  double operations = 0;
};

/// The rate that bounds a case, and the share of it that `seconds` make. 1 would be a program that
/// waits for nothing but the memory, or nothing but the multipliers.
struct BenchLimit {
  bool is_memory = false;
  double share = 0;
};
BenchLimit LimitOf(const BenchWork& work, const MachineRates& rates, double seconds);

}  // namespace facet
