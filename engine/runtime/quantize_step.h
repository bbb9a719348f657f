// SPDX-License-Identifier: Apache-2.0
//
// Steps of a plan between real numbers in f32 and 8-bit integers (engine/graph/quantization_params.h), in plain
// loops:
//
//   quantize    dst = saturate(round(src / scale) + zero_point)     f32 to u8 or s8
//   dequantize  dst = (src - zero_point) * scale                    u8, s8 or f32 to f32
//
// with one grid, or one for each index of an axis. Any layout on both sides; the padded tail of dst
// is written with zeros. Arguments kArgSrc, kArgDst.
#ifndef ENGINE_RUNTIME_QUANTIZE_STEP_H_
#define ENGINE_RUNTIME_QUANTIZE_STEP_H_

#include <memory>

#include "absl/status/statusor.h"
#include "engine/graph/network.h"
#include "engine/primitives/primitive.h"

namespace tilewire::runtime {

// Both:
//   kUnimplemented  another type, or a dimension of more than 2^24
absl::StatusOr<std::shared_ptr<const Primitive>> CreateQuantizeStep(const graph::Quantize& quantize,
                                                                    const MemoryDesc& src,
                                                                    const MemoryDesc& dst);
absl::StatusOr<std::shared_ptr<const Primitive>> CreateDequantizeStep(
    const graph::Dequantize& dequantize, const MemoryDesc& src, const MemoryDesc& dst);

}  // namespace tilewire::runtime

#endif  // ENGINE_RUNTIME_QUANTIZE_STEP_H_
