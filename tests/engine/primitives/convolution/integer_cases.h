// SPDX-License-Identifier: Apache-2.0
//
// Convolutions of u8 and s8 for tests: types, layouts, chains and bounds beside the shapes.
#ifndef TESTS_ENGINE_PRIMITIVES_CONVOLUTION_INTEGER_CASES_H_
#define TESTS_ENGINE_PRIMITIVES_CONVOLUTION_INTEGER_CASES_H_

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/engine/primitives/convolution/convolution_cases.h"
#include "tests/engine/primitives/integer_tensors.h"

namespace tilewire::testing {

struct Setting {
  DataType src = DataType::kU8, dst = DataType::kU8, bias = DataType::kF32;
  bool scale_a_channel = false;
  std::vector<PostOp> chain = {};
  std::string src_pattern = {}, dst_pattern = {};  // empty: the row chooses
  int bound = 0;                                   // of the weights' magnitudes; 0: none
};

inline MemoryDesc AnyOr(const Dims& dims, DataType type, absl::string_view pattern) {
  return pattern.empty() ? *MemoryDesc::CreateAny(dims, type)
                         : *MemoryDesc::CreatePattern(dims, type, pattern);
}

inline ConvolutionDesc IntegerDesc(const ConvolutionCase& shape, const Setting& setting) {
  ConvolutionDesc desc = DescOf(shape);
  desc.src = AnyOr(shape.SrcDims(), setting.src, setting.src_pattern);
  desc.weights = *MemoryDesc::CreateAny(shape.WeightsDims(), DataType::kS8);
  if (setting.bound > 0) desc.weights = *desc.weights.WithBound(setting.bound);
  desc.dst = AnyOr(shape.DstDims(), setting.dst, setting.dst_pattern);
  if (shape.bias) desc.bias = *MemoryDesc::CreateAny({shape.oc}, setting.bias);
  return desc;
}

inline Attributes IntegerAttributesOf(const ConvolutionCase& shape, const Setting& setting) {
  Attributes attributes;
  attributes.scratchpad_mode = ScratchpadMode::kUser;
  for (const PostOp& entry : setting.chain) EXPECT_TRUE(attributes.post_ops.Append(entry).ok());
  attributes.output_scales = SpreadingScales(shape.Products(), shape.oc, setting.scale_a_channel);
  return attributes;
}

inline Values RandomValues(const ConvolutionCase& shape, const Setting& setting) {
  return {.src = RandomOf(setting.src, shape.SrcDims(), 1),
          .weights = setting.bound > 0 ? BoundedWeights(shape.WeightsDims(), setting.bound)
                                       : RandomOf(DataType::kS8, shape.WeightsDims(), 2),
          .bias = RandomOf(setting.bias, {shape.bias ? shape.oc : 0}, 3),
          .dst = RandomOf(setting.dst, shape.DstDims(), 4)};
}

// Shapes with what decides about code: tails of channels, padding, strides, groups.
inline std::vector<ConvolutionCase> FewShapes() {
  return {
      Case("quads, tail of outputs", {2, 20, 6, 17}, 40, {3, 3}, {.left = {1, 1}}),
      Case("four blocks", {1, 64, 5, 6}, 128, {1, 1}),
      Case("odd channels", {1, 7, 5, 9}, 67, {3, 2}, {.strides = {2, 1}, .left = {1, 1}}),
      Case("odd groups", {1, 15, 5, 5}, 27, {3, 3}, {.groups = 3, .left = {1, 1}}),
      Case("depthwise", {1, 40, 5, 30}, 40, {3, 3}, {.groups = 40, .left = {1, 1}}),
      Case("a step and a part of one, a tail of outputs", {1, 72, 3, 19}, 40, {1, 1}),
      Case("groups of half a step", {1, 64, 3, 5}, 64, {3, 3}, {.groups = 2, .left = {1, 1}}),
  };
}

// Every way in which a tile, a step or a configuration may be full or not.
inline std::vector<ConvolutionCase> MatrixShapes() {
  return {
      Case("one tile of one row of outputs, in place", {2, 64, 4, 4}, 16, {1, 1}),
      Case("a pair and a tile with one pixel", {1, 128, 7, 7}, 80, {1, 1}),
      Case("whole pairs, then a short tile", {1, 64, 8, 5}, 32, {1, 1}),
      Case("tiles of one size", {1, 64, 7, 8}, 48, {1, 1}, {.bias = false}),
      Case("1x1 with stride 2, in place", {1, 64, 9, 41}, 33, {1, 1}, {.strides = {2, 2}}),
      Case("3x3 without padding, in place", {2, 64, 5, 9}, 32, {3, 3}),
      Case("3x3, rows of two kinds of tiles", {1, 64, 4, 40}, 16, {3, 3}, {.left = {1, 1}}),
      Case("3x3 with stride 2", {1, 33, 7, 37}, 40, {3, 3}, {.strides = {2, 2}, .left = {1, 1}}),
      Case("three steps, five blocks", {1, 192, 3, 17}, 72, {1, 1}, {.left = {1, 0}}),
      Case("dilated", {1, 64, 9, 9}, 32, {3, 3}, {.dilations = {1, 2}, .left = {2, 3}}),
      Case("groups of a step, in place", {1, 128, 5, 6}, 64, {1, 1}, {.groups = 2}),
      Case("groups of part of a step", {2, 120, 4, 5}, 60, {3, 3}, {.groups = 3, .left = {1, 1}}),
      Case("1D", {2, 64, 50}, 33, {3}, {.left = {1}}),
      Case("3D", {1, 64, 4, 5, 6}, 32, {2, 3, 2}, {.left = {1, 1, 1}}),
      Case("3D without padding, in place", {1, 64, 4, 5, 6}, 32, {2, 3, 2}),
      Case("7x7: one long row of padded ones", {2, 64, 7, 7}, 48, {3, 3}, {.left = {1, 1}}),
      Case("14x14", {1, 64, 14, 14}, 33, {3, 3}, {.left = {1, 1}}),
      Case("narrow, in place", {1, 64, 9, 8}, 32, {3, 3}),
      Case("narrow and far between", {1, 64, 7, 3}, 16, {3, 3},
           {.dilations = {0, 5}, .left = {1, 6}}),
      Case("narrow groups", {1, 96, 6, 6}, 60, {3, 3}, {.groups = 3, .left = {1, 1}}),
      Case("high and narrow", {1, 64, 33, 2}, 32, {3, 1}, {.left = {1, 0}}),
  };
}

}  // namespace tilewire::testing

#endif  // TESTS_ENGINE_PRIMITIVES_CONVOLUTION_INTEGER_CASES_H_
