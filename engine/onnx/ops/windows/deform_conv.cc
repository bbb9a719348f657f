// SPDX-License-Identifier: Apache-2.0
//
// DeformConv: a convolution whose window reads each of its taps where an offset puts it, between
// elements, and times a mask. All windows are sampled side by side, as an image that has a block of
// the kernel's size for each result; a convolution with strides of that size multiplies it.
//
//   block[n, c, h * kh + i, w * kw + j] = mask[n, g, i, j, h, w] * src[n, c, y, x]
//   y = h * stride - pad + i * dilation + offset[n, g, i, j, 0, h, w], and so with x
//
// where g is the group of offsets of channel c. Source: ONNX's operator documents, opsets 19 and
// 22.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/onnx/ops/arithmetic/element_functions.h"
#include "engine/onnx/ops/ops.h"
#include "engine/onnx/ops/sampling/sampler.h"
#include "engine/onnx/ops/shapes/moves.h"
#include "engine/onnx/ops/windows/convolution.h"
#include "engine/onnx/ops/windows/window.h"

namespace tilewire::reader {
namespace {

constexpr int kWeights = 1, kOffset = 2, kBias = 3, kMask = 4;

struct Deformation {
  Window window;
  int64_t batch = 0, channels = 0, outputs = 0, groups = 1, offset_groups = 1;

  // [batch * offset_groups, rows, columns] of all blocks.
  Dims Blocks() const {
    return {batch * offset_groups, window.dst[0] * window.kernel[0],
            window.dst[1] * window.kernel[1]};
  }
};

absl::StatusOr<Deformation> ReadDeformation(const NodeContext& context) {
  const Node& node = context.node;
  const Dims &src = context.input(0).dims, &weights = context.input(kWeights).dims;
  if (src.size() != 4 || weights.size() != 4)
    return node.Unimplemented("an input ", DimsToString(src), " and weights ",
                              DimsToString(weights), "; supported are images");
  Deformation d = {.batch = src[0], .channels = src[1], .outputs = weights[0]};
  ABSL_ASSIGN_OR_RETURN(d.groups, node.Int("group", 1));
  ABSL_ASSIGN_OR_RETURN(d.offset_groups, node.Int("offset_group", 1));
  const Dims kernel(weights.begin() + 2, weights.end());
  ABSL_ASSIGN_OR_RETURN(const auto declared,
                        node.Ints("kernel_shape", {kernel.begin(), kernel.end()}));
  const bool fit = d.groups >= 1 && d.outputs % d.groups == 0 && d.offset_groups >= 1 &&
                   src[1] % d.offset_groups == 0 && src[1] % d.groups == 0 &&
                   src[1] / d.groups == weights[1];
  if (!fit || Dims(declared.begin(), declared.end()) != kernel)
    return node.Invalid("input ", DimsToString(src), ", weights ", DimsToString(weights),
                        ", kernel_shape, group ", d.groups, " and offset_group ", d.offset_groups,
                        " do not fit");
  ABSL_ASSIGN_OR_RETURN(d.window, ReadWindow(node, src, kernel, /*ceil_mode=*/false));
  const int64_t taps = kernel[0] * kernel[1];
  for (const auto& [input, numbers] : {std::pair{kOffset, 2}, {kMask, 1}}) {
    const Dims wanted = {src[0], d.offset_groups * taps * numbers, d.window.dst[0],
                         d.window.dst[1]};
    if (context.Has(input) && context.input(input).dims != wanted)
      return node.Invalid("input ", input, " is ", DimsToString(context.input(input).dims),
                          ", expected ", DimsToString(wanted));
  }
  return d;
}

// From [batch, groups of offsets, taps, `numbers`, dst], number `part` of each, where its block is.
absl::StatusOr<Operand> InBlocks(NodeContext& context, const Deformation& d, int input,
                                 int64_t numbers, int64_t part, const std::string& name) {
  const Dims &kernel = d.window.kernel, &dst = d.window.dst;
  ABSL_ASSIGN_OR_RETURN(const Operand apart, ReshapeOf(context, context.input(input),
                                                       {d.batch * d.offset_groups, kernel[0],
                                                        kernel[1], numbers, dst[0], dst[1]},
                                                       name + "/apart"));
  ABSL_ASSIGN_OR_RETURN(const Operand one,
                        SelectAlong(context, apart, 3, {{part, 1, 1}}, name + "/one"));
  ABSL_ASSIGN_OR_RETURN(const Operand turned,
                        TurnedOf(context, one, {0, 4, 1, 5, 2, 3}, name + "/turned"));
  return ReshapeOf(context, turned, d.Blocks(), name + "/offset");
}

// Where the taps of all blocks are along spatial dimension `axis`.
absl::StatusOr<Operand> PlacesOf(NodeContext& context, const Deformation& d, int axis) {
  const std::string name = axis == 0 ? "/rows" : "/columns";
  const Window& window = d.window;
  std::vector<float> starts;
  for (int64_t at = 0; at < window.dst[axis]; ++at)
    for (int64_t tap = 0; tap < window.kernel[axis]; ++tap)
      starts.push_back(static_cast<float>(at * window.strides[axis] - window.padding_left[axis] +
                                          tap * window.dilations[axis]));
  Dims dims = {1, 1, 1};
  dims[1 + axis] = static_cast<int64_t>(starts.size());
  const Operand fixed = context.KnownFloats(absl::StrCat(name, "/starts"), dims, std::move(starts));
  ABSL_ASSIGN_OR_RETURN(const Operand moved, InBlocks(context, d, kOffset, 2, axis, name));
  return ElementwiseOf(context, {Function::kAdd}, {moved, fixed}, name);
}

absl::StatusOr<Operand> BlocksOf(NodeContext& context, const Deformation& d) {
  const Dims src = context.input(0).dims, blocks = d.Blocks();
  const int64_t channels = d.channels / d.offset_groups;
  ABSL_ASSIGN_OR_RETURN(const Operand rows, PlacesOf(context, d, 0));
  ABSL_ASSIGN_OR_RETURN(const Operand columns, PlacesOf(context, d, 1));
  ABSL_ASSIGN_OR_RETURN(
      const Operand images,
      ReshapeOf(context, context.input(0), {blocks[0], channels, src[2], src[3]}, "/images"));
  ABSL_ASSIGN_OR_RETURN(Operand sampled,
                        SampleOf(context, images, rows, columns, Sampling(), "/sampled"));
  if (context.Has(kMask)) {
    ABSL_ASSIGN_OR_RETURN(const Operand flat, InBlocks(context, d, kMask, 1, 0, "/mask"));
    ABSL_ASSIGN_OR_RETURN(
        const Operand mask,
        ReshapeOf(context, flat, {blocks[0], 1, blocks[1], blocks[2]}, "/mask/of_channels"));
    ABSL_ASSIGN_OR_RETURN(sampled,
                          ElementwiseOf(context, {Function::kMul}, {sampled, mask}, "/masked"));
  }
  return ReshapeOf(context, sampled, {d.batch, d.channels, blocks[1], blocks[2]}, "/blocks");
}

absl::Status BuildDeformConv(NodeContext& context) {
  ABSL_ASSIGN_OR_RETURN(const Deformation d, ReadDeformation(context));
  ABSL_ASSIGN_OR_RETURN(const Operand blocks, BlocksOf(context, d));
  network::ComputedConvolution convolution;
  convolution.groups = d.groups;
  convolution.strides = d.window.kernel;
  convolution.dilations = convolution.padding_left = convolution.padding_right = {0, 0};
  const Operand bias = context.Has(kBias) ? context.input(kBias) : Operand();
  ABSL_ASSIGN_OR_RETURN(const ValueId src, context.AsValue(blocks));
  return context.SetOutput(EmitWindowed(context, src, std::move(convolution),
                                        context.input(kWeights), bias,
                                        {d.batch, d.outputs, d.window.dst[0], d.window.dst[1]}));
}

}  // namespace

TILEWIRE_OPERATORS(DeformConv) = {
    {"DeformConv", 19, 3, 5, "dilations group kernel_shape offset_group pads strides",
     BuildDeformConv},
};

}  // namespace tilewire::reader
