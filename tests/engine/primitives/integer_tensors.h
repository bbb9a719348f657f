// SPDX-License-Identifier: Apache-2.0
//
// Tensors of the tests of integer convolution and inner product: logical row-major values, each
// exact in its type and in f32, whatever the type; and executions of primitives with src, weights,
// bias and dst on them.
#ifndef TESTS_ENGINE_PRIMITIVES_INTEGER_TENSORS_H_
#define TESTS_ENGINE_PRIMITIVES_INTEGER_TENSORS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "engine/primitives/implementation.h"
#include "engine/primitives/primitive.h"

namespace tilewire::testing {

// dst is what a sum post-op finds there.
struct Values {
  std::vector<float> src, weights, bias, dst;
  std::vector<float> range = {};  // kArgQuantizationRange, where the primitive has it
};

// The whole range of u8 and s8, and numbers of a few thousand of the other types.
std::vector<float> RandomOf(DataType type, const Dims& dims, uint64_t seed);
// Weights from -bound to bound.
std::vector<float> BoundedWeights(const Dims& dims, int bound);

// The bytes of dst, whatever lies between its elements included. Weights are packed by the reorder
// that every user takes: with the compensation, where the primitive wants one. Expects that the
// padded tail of dst is zero.
std::vector<uint8_t> ResultOf(const Primitive& primitive, const Values& values,
                              const threading::Team& team);

std::vector<float> Logical(const MemoryDesc& desc, const std::vector<uint8_t>& bytes);

// One scale, or one per channel, that spread sums of `products` products over the range of u8 and a
// little beyond.
OutputScales SpreadingScales(int64_t products, int64_t channels, bool scale_a_channel);

inline EltwisePostOp ReluPostOp(float alpha = 0, float scale = 1) {
  return {.op = {.function = EltwiseAlgorithm::kRelu, .alpha = alpha}, .scale = scale};
}
// Chains of functions that every row computes to the last bit.
std::vector<std::vector<PostOp>> ExactChains();

// The forward rows of a table that are for integers, and the others.
template <typename Desc>
std::vector<Implementation<Desc>> IntegerRows(absl::Span<const Implementation<Desc>> table,
                                              bool integer = true) {
  std::vector<Implementation<Desc>> rows;
  for (const Implementation<Desc>& row : table) {
    const bool is_forward = row.traits.propagations.Has(PropKind::kForwardInference);
    if (is_forward && row.traits.is_integer == integer) rows.push_back(row);
  }
  return rows;
}
template <typename Desc>
std::vector<Implementation<Desc>> FloatRows(absl::Span<const Implementation<Desc>> table) {
  return IntegerRows(table, false);
}

}  // namespace tilewire::testing

#endif  // TESTS_ENGINE_PRIMITIVES_INTEGER_TENSORS_H_
