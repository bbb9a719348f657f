// SPDX-License-Identifier: Apache-2.0
#include "engine/onnx/ops/sampling/resize_args.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/onnx/ops/ops.h"

namespace tilewire::reader {
namespace {

constexpr float kFarthest = 1 << 20;  // ends of a region, in sizes of the source

constexpr absl::string_view kCoordinates[] = {
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
    "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"};
constexpr absl::string_view kRoundings[] = {"round_prefer_floor", "round_prefer_ceil", "floor",
                                            "ceil"};
constexpr absl::string_view kPolicies[] = {"stretch", "not_larger", "not_smaller"};

// From opset 18 on: axes, antialias, keep_aspect_ratio_policy.
absl::Status ReadNewAttributes(const Node& node, size_t rank, ResizeArgs* args) {
  std::vector<int64_t> axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  const auto names = {"axes", "antialias", "keep_aspect_ratio_policy"};
  for (absl::string_view name : names) {
    if (node.opset() < 18 && node.HasAttribute(name))
      return node.Invalid(name, " exists from opset 18 on");
  }
  ABSL_ASSIGN_OR_RETURN(axes, node.Ints("axes", axes));
  ABSL_ASSIGN_OR_RETURN(args->axes, DistinctAxes(node, axes, rank));
  ABSL_ASSIGN_OR_RETURN(const int64_t antialias, node.Int("antialias", 0));
  args->antialias = antialias != 0;
  ABSL_ASSIGN_OR_RETURN(args->policy, node.OneOf("keep_aspect_ratio_policy", "stretch", kPolicies));
  return absl::OkStatus();
}

absl::Status ReadAttributes(const NodeContext& context, ResizeArgs* args) {
  const Node& node = context.node;
  const bool old = node.opset() < 11;
  ABSL_ASSIGN_OR_RETURN(args->mode, node.String("mode", "nearest"));
  ABSL_ASSIGN_OR_RETURN(args->coordinates,
                        node.OneOf("coordinate_transformation_mode",
                                   old ? "asymmetric" : "half_pixel", kCoordinates));
  if (args->coordinates == "half_pixel_symmetric" && node.opset() < 19)
    return node.Invalid("half_pixel_symmetric exists from opset 19 on");
  ABSL_ASSIGN_OR_RETURN(
      args->rounding, node.OneOf("nearest_mode", old ? "floor" : "round_prefer_floor", kRoundings));
  ABSL_ASSIGN_OR_RETURN(args->cubic_a, node.Float("cubic_coeff_a", -0.75f));
  ABSL_ASSIGN_OR_RETURN(const int64_t exclude, node.Int("exclude_outside", 0));
  args->exclude_outside = exclude != 0;
  if (args->mode == "bilinear" || args->mode == "trilinear") args->mode = "linear";
  if (args->mode != "nearest" && args->mode != "linear" && args->mode != "cubic")
    return node.Invalid("mode '", args->mode.substr(0, 200), "'");
  ABSL_ASSIGN_OR_RETURN(args->outside, node.Float("extrapolation_value", 0));
  args->crops = args->coordinates == "tf_crop_and_resize";
  return ReadNewAttributes(node, context.input(0).dims.size(), args);
}

absl::Status ReadRoi(const NodeContext& context, size_t rank, ResizeArgs* args) {
  args->roi.assign(rank, 0);
  args->roi.resize(2 * rank, 1);
  if (!args->crops) return absl::OkStatus();
  if (!context.Has(1)) return context.node.Invalid("crops without a region");
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr roi, context.Floats(1));
  const size_t count = args->axes.size();
  if (roi->floats.size() != 2 * count) return context.node.Invalid("a region of another rank");
  for (float end : roi->floats) {
    if (!(std::abs(end) <= kFarthest)) return context.node.Invalid("a region to ", end);
  }
  for (size_t i = 0; i < count; ++i) {
    args->roi[args->axes[i]] = roi->floats[i];
    args->roi[rank + args->axes[i]] = roi->floats[count + i];
  }
  return absl::OkStatus();
}

// Upsample before opset 7: two numbers for the last dimensions of four.
absl::StatusOr<std::vector<float>> OldScales(const Node& node, size_t rank) {
  ABSL_ASSIGN_OR_RETURN(const float height, node.Float("height_scale", 0));
  ABSL_ASSIGN_OR_RETURN(const float width, node.Float("width_scale", 0));
  if (rank != 4) return node.Invalid("of rank ", rank, ", expected 4");
  return std::vector<float>{1, 1, height, width};
}

// Before opset 11: scales only. Upsample 7 and 8: an attribute.
absl::Status ReadResizeScales(const NodeContext& context, size_t rank, ResizeArgs* args) {
  const Node& node = context.node;
  const int scales_input = node.opset() < 11 ? 1 : 2;
  std::vector<float> scales;
  if (node.op() == "Upsample" && node.opset() < 7) {
    ABSL_ASSIGN_OR_RETURN(scales, OldScales(node, rank));
  } else if (node.HasAttribute("scales")) {
    ABSL_ASSIGN_OR_RETURN(scales, node.Floats("scales"));
  } else if (context.Has(scales_input)) {
    ABSL_ASSIGN_OR_RETURN(const ConstantPtr held, context.Floats(scales_input));
    scales.assign(held->floats.begin(), held->floats.end());
  }
  if (scales.empty()) return absl::OkStatus();
  if (scales.size() != args->axes.size()) return node.Invalid("scales of another rank");
  args->scales.assign(rank, 1);
  for (size_t i = 0; i < scales.size(); ++i) args->scales[args->axes[i]] = scales[i];
  return absl::OkStatus();
}

// One scale for all axes, by the policy; the sizes follow it.
absl::Status ScaleAlike(const Node& node, const Dims& src, absl::Span<const float> scales,
                        ResizeArgs* args) {
  const auto [least, most] = std::minmax_element(scales.begin(), scales.end());
  const float scale = args->policy == "not_larger" ? *least : *most;
  for (int axis : args->axes) {
    const float size = std::floor(scale * static_cast<float>(src[axis]) + 0.5f);
    if (!(size <= kLargestResized)) return node.Invalid("scale ", scale);
    args->scales[axis] = scale;
    args->sizes[axis] = static_cast<int64_t>(size);
  }
  return absl::OkStatus();
}

// The scales that sizes stand for. A policy other than "stretch" makes them one.
absl::Status ScalesOfSizes(const NodeContext& context, const Dims& src, ResizeArgs* args) {
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr sizes, context.Ints(3));
  const size_t count = args->axes.size();
  if (sizes->ints.size() != count) return context.node.Invalid("sizes of another rank");
  args->sizes.assign(src.begin(), src.end());
  args->scales.assign(src.size(), 1);
  std::vector<float> scales;
  for (size_t i = 0; i < count; ++i) {
    const int axis = args->axes[i];
    const bool is_nothing = src[axis] == 0 && sizes->ints[i] == 0;
    scales.push_back(
        is_nothing ? 1.0f : static_cast<float>(sizes->ints[i]) / static_cast<float>(src[axis]));
    args->sizes[axis] = sizes->ints[i];
    args->scales[axis] = scales[i];
  }
  if (args->policy == "stretch" || count == 0) return absl::OkStatus();
  return ScaleAlike(context.node, src, scales, args);
}

absl::Status ReadSizes(const NodeContext& context, const Dims& src, ResizeArgs* args) {
  const Node& node = context.node;
  ABSL_RETURN_IF_ERROR(ReadResizeScales(context, src.size(), args));
  if (args->scales.empty() && context.Has(3))
    ABSL_RETURN_IF_ERROR(ScalesOfSizes(context, src, args));
  if (args->scales.size() != src.size()) return node.Invalid("scales of another rank");
  for (size_t d = 0; d < src.size(); ++d) {
    if (!(args->scales[d] > 0) || !(args->scales[d] * src[d] < kLargestResized)) {
      const bool by_sizes = d < args->sizes.size();
      return node.Invalid(by_sizes ? absl::StrCat("size ", args->sizes[d], " of dimension ", d,
                                                  ", which has ", src[d], " elements")
                                   : absl::StrCat("scale ", args->scales[d]));
    }
    const float part = args->roi[src.size() + d] - args->roi[d];
    if (args->sizes.size() < src.size())
      args->sizes.push_back(static_cast<int64_t>(std::floor(src[d] * part * args->scales[d])));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ResizeArgs> ReadResizeArgs(const NodeContext& context) {
  const Dims& src = context.input(0).dims;
  ResizeArgs args;
  ABSL_RETURN_IF_ERROR(ReadAttributes(context, &args));
  ABSL_RETURN_IF_ERROR(ReadRoi(context, src.size(), &args));
  ABSL_RETURN_IF_ERROR(ReadSizes(context, src, &args));
  for (size_t d = 0; d < src.size(); ++d) {
    const int64_t size = args.sizes[d];
    if ((size == 0) != (src[d] == 0) || size < 0 || size > kLargestResized)
      return context.node.Invalid("a result of ", size, " elements");
  }
  return args;
}

}  // namespace tilewire::reader
