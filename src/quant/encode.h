// SPDX-License-Identifier: Apache-2.0
// Encoding: from floats to blocks, one function per type, each searching for the block of least
// weighted squared error. What the bytes of a block mean is the business of codec.h; the rules and
// the measured errors stand in docs/quantization.md, "Encoding".
//
// The contract of all of them: `values` and `importance` hold n floats, n is a multiple of the
// type's block size, `blocks` has room for BytesOf(type, n) bytes. `importance`, which may be null
// (all values alike), says how much a squared error at each value matters (≥ 0; a block in which it
// is 0 everywhere is encoded as if there were none). The same input gives the same bytes on every
// machine. A block of zeros decodes to zeros; values that are not finite give some block. Nothing
// is kept between calls: any number of threads may call.
#pragma once

#include <cstddef>
#include <cstdint>

namespace facet {

/// Q8_0, and Q4_0 without importance, give the bytes of ggml's reference encoder. Q8_0 has no
/// search and ignores importance.
void EncodeQ8_0(const float* values, const float* importance, int64_t n, std::byte* blocks);
void EncodeQ4_0(const float* values, const float* importance, int64_t n, std::byte* blocks);
void EncodeQ4_1(const float* values, const float* importance, int64_t n, std::byte* blocks);
void EncodeQ5_0(const float* values, const float* importance, int64_t n, std::byte* blocks);
void EncodeQ5_1(const float* values, const float* importance, int64_t n, std::byte* blocks);

void EncodeQ2_K(const float* values, const float* importance, int64_t n, std::byte* blocks);
void EncodeQ3_K(const float* values, const float* importance, int64_t n, std::byte* blocks);
void EncodeQ4_K(const float* values, const float* importance, int64_t n, std::byte* blocks);
void EncodeQ5_K(const float* values, const float* importance, int64_t n, std::byte* blocks);
void EncodeQ6_K(const float* values, const float* importance, int64_t n, std::byte* blocks);

void EncodeIQ4_NL(const float* values, const float* importance, int64_t n, std::byte* blocks);
void EncodeIQ4_XS(const float* values, const float* importance, int64_t n, std::byte* blocks);
void EncodeMXFP4(const float* values, const float* importance, int64_t n, std::byte* blocks);

}  // namespace facet
