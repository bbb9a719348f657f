// SPDX-License-Identifier: Apache-2.0
//
// The end of every result in the references: does for one value what accumulator_epilogue.h
// generates for vectors. Pure; thread-safe.
#ifndef ENGINE_KERNELS_TILES_SCALAR_EPILOGUE_H_
#define ENGINE_KERNELS_TILES_SCALAR_EPILOGUE_H_

#include <cstdint>

#include "engine/kernels/attributes.h"
#include "engine/memory/data_type.h"

namespace tilewire {

// Applies the chain, which has no pooling, to `value` of index `channel` along dimension 1;
// `before` is what the destination held. A sum is one multiply-add, rounded once.
float ApplyPostOps(const PostOps& post_ops, float value, float before, int64_t channel = 0);

// From the sum of a convolution or inner product to the element of dst, in the order of
// attributes.h.
struct ScalarEpilogue {
  Attributes attributes;
  DataType bias_type = DataType::kUndef;  // kUndef: no bias
  DataType dst_type = DataType::kF32;

  // The result of output channel `channel`, not yet rounded; `before` is what the destination held.
  float Value(float sum, int64_t channel, const void* bias, int64_t bias_index, float before) const;
  // The same of a sum that is multiplied by `step` and its output scale before bias is added.
  float ScaledValue(float sum, float step, int64_t channel, const void* bias, int64_t bias_index,
                    float before) const;
  // Stores Value(); the last index is that of the element.
  void Store(float sum, int64_t channel, const void* bias, int64_t bias_index, void* dst,
             int64_t dst_index) const;
};

}  // namespace tilewire

#endif  // ENGINE_KERNELS_TILES_SCALAR_EPILOGUE_H_
