// SPDX-License-Identifier: Apache-2.0
#include "tests/engine/primitives/integer_tensors.h"

#include <cmath>

#include "engine/base/aligned_buffer.h"
#include "engine/kernels/elements/element_conversion.h"
#include "engine/memory/index_walk.h"
#include "engine/memory/separable_offsets.h"
#include "engine/memory/zero_padding.h"
#include "engine/primitives/reorder/reorder.h"
#include "gtest/gtest.h"
#include "tests/engine/primitives/tensors.h"
#include "tests/support/padded_tail.h"
#include "tests/support/random_tensor.h"
#include "tests/support/status_matchers.h"

namespace tilewire::testing {
namespace {

Bytes PackConverted(const MemoryDesc& desc, const std::vector<float>& values) {
  Bytes bytes = Garbage(desc, 99);
  const float* from = values.data();
  const SeparableOffsets offsets(desc);
  ForEachIndex(desc.dims(), [&](const Dims& index) {
    StoreElement(desc.data_type(), *from++, bytes.data(), offsets.Offset(index));
  });
  ZeroPadding(desc, bytes.data());
  return bytes;
}

Bytes PackWeights(const MemoryDesc& desc, const std::vector<float>& values) {
  const MemoryDesc plain = *MemoryDesc::CreatePattern(desc.dims(), DataType::kS8,
                                                      std::string("abcdef").substr(0, desc.rank()));
  const Bytes from = PackConverted(plain, values);
  Bytes to(desc.SizeBytes(), 0xA5);
  const auto reorder = CreateReorder({.src = plain, .dst = desc}, {}, {});
  EXPECT_THAT(reorder, IsOk());
  if (!reorder.ok()) return to;
  ExecuteArgs args;
  args.Set(kArgSrc, from.data()).Set(kArgDst, to.data());
  EXPECT_THAT((*reorder)->Execute(args, threading::Team::Serial()), IsOk());
  return to;
}

}  // namespace

std::vector<float> BoundedWeights(const Dims& dims, int bound) {
  return RandomIntegers(*ElementCount(dims), 2, -bound, bound);
}

std::vector<float> RandomOf(DataType type, const Dims& dims, uint64_t seed) {
  const int64_t count = *ElementCount(dims);
  switch (type) {
    case DataType::kU8:
      return RandomIntegers(count, seed, 0, 255);
    case DataType::kS8:
      return RandomIntegers(count, seed, -128, 127);
    case DataType::kS32:
      return RandomIntegers(count, seed, -5000, 5000);
    default:
      return RandomFloats(count, seed, -1000, 1000);
  }
}

Bytes ResultOf(const Primitive& primitive, const Values& values, const threading::Team& team) {
  const Bytes src = PackConverted(primitive.Desc(kArgSrc), values.src);
  const Bytes weights = PackWeights(primitive.Desc(kArgWeights), values.weights);
  Bytes bias, dst = PackConverted(primitive.Desc(kArgDst), values.dst);
  const AlignedBuffer scratchpad = *AlignedBuffer::Allocate(primitive.ScratchpadDesc().SizeBytes());
  ExecuteArgs args;
  args.Set(kArgSrc, src.data()).Set(kArgWeights, weights.data()).Set(kArgDst, dst.data());
  if (!values.bias.empty()) {
    bias = PackConverted(primitive.Desc(kArgBias), values.bias);
    args.Set(kArgBias, bias.data());
  }
  if (!values.range.empty()) args.Set(kArgQuantizationRange, values.range.data());
  if (scratchpad.size() > 0) args.Set(kArgScratchpad, scratchpad.data());
  EXPECT_THAT(primitive.Execute(args, team), IsOk());
  EXPECT_TRUE(PaddingIsZero(primitive.Desc(kArgDst), dst.data()));
  return dst;
}

std::vector<float> Logical(const MemoryDesc& desc, const Bytes& bytes) {
  std::vector<float> values;
  const SeparableOffsets offsets(desc);
  ForEachIndex(desc.dims(), [&](const Dims& index) {
    values.push_back(LoadElement(desc.data_type(), bytes.data(), offsets.Offset(index)));
  });
  return values;
}

OutputScales SpreadingScales(int64_t products, int64_t channels, bool scale_a_channel) {
  const float scale = 150 / (75 * 147 * std::sqrt(static_cast<float>(products)));
  if (!scale_a_channel) return {.mask = 0, .scales = {scale}};
  return {.mask = 2, .scales = RandomFloats(channels, 5, 0.1f * scale, 2 * scale)};
}

std::vector<std::vector<PostOp>> ExactChains() {
  const SumPostOp sum;
  return {{},
          {ReluPostOp(0.25f)},
          {sum},
          {SumPostOp{.scale = 0.3f}, ReluPostOp()},
          {ReluPostOp(0, 0.5f), SumPostOp{.scale = -2}},
          {sum, EltwisePostOp{{EltwiseAlgorithm::kLinear, 3, 20}}, ReluPostOp(),
           SumPostOp{.scale = 0.1f}}};
}

}  // namespace tilewire::testing
