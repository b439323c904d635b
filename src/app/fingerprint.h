// SPDX-License-Identifier: Apache-2.0
// Tells apart what computes different numbers, so that keys and values of one are never taken for
// those of another.
#pragma once

#include <string>

#include "compute/cpu.h"
#include "model/checkpoint.h"
#include "model/model.h"

namespace facet {

/// 64 hexadecimal digits of the program's version, the checkpoint's configuration and tensors
/// (names, types, shapes, and samples of their contents: a file of many gigabytes is not read
/// whole), of the encoders where there are some, of the type of keys and values and of the
/// instruction set, on which float weights depend. Equal where all of them are.
std::string Fingerprint(const Checkpoint& checkpoint, const RunnerOptions& options);

}  // namespace facet
