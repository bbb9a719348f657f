// SPDX-License-Identifier: Apache-2.0
//
// Resize and Upsample: nearest takes elements, linear and cubic interpolate along one dimension
// after the other. Where an index of the result lies in the source is ONNX's
// coordinate_transformation_mode; a crop (tf_crop_and_resize) may lie partly outside. With
// antialias, a result that is smaller than its source takes in all the elements it stands for: the
// filter is stretched by 1 / scale.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/ops.h"
#include "engine/graph/ops/select.h"

namespace tilewire::graph {
namespace {

constexpr int64_t kLargestSize = int64_t{1} << 20;  // of a resized dimension
constexpr double kMostWeights = 1 << 24;            // of a dimension
constexpr float kFarthest = 1 << 20;                // ends of a region, in sizes of the source

constexpr absl::string_view kCoordinates[] = {
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
    "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"};
constexpr absl::string_view kRoundings[] = {"round_prefer_floor", "round_prefer_ceil", "floor",
                                            "ceil"};
constexpr absl::string_view kPolicies[] = {"stretch", "not_larger", "not_smaller"};

struct ResizeArgs {
  std::string mode, coordinates, rounding;
  std::string policy;     // for sizes: whether the scales of all axes are made one
  std::vector<int> axes;  // those that region, scales and sizes are given for
  float cubic_a = -0.75f;
  bool antialias = false;
  bool exclude_outside = false;
  bool crops = false;          // takes the part of the source that `roi` names
  std::vector<float> roi;      // all starts, then all ends; 1 is the last element
  float outside = 0;           // fills the part of a crop that lies outside the source
  std::vector<float> scales;   // one per dimension
  std::vector<int64_t> sizes;  // of the result, one per dimension
};

// The attribute, which must be one of `known`.
absl::StatusOr<std::string> ReadName(const Node& node, absl::string_view attribute,
                                     absl::string_view absent,
                                     absl::Span<const absl::string_view> known) {
  ABSL_ASSIGN_OR_RETURN(std::string name, node.String(attribute, absent));
  if (std::find(known.begin(), known.end(), name) != known.end()) return name;
  return node.Invalid(absl::StrCat(attribute, " '", name.substr(0, 200), "'; known are ",
                                   absl::StrJoin(known, ", ")));
}

// From opset 18 on: axes, antialias, keep_aspect_ratio_policy.
absl::Status ReadNewAttributes(const Node& node, size_t rank, ResizeArgs* args) {
  std::vector<int64_t> axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  const auto names = {"axes", "antialias", "keep_aspect_ratio_policy"};
  for (absl::string_view name : names) {
    if (node.opset() < 18 && node.HasAttribute(name))
      return node.Invalid(absl::StrCat(name, " exists from opset 18 on"));
  }
  ABSL_ASSIGN_OR_RETURN(axes, node.Ints("axes", axes));
  for (int64_t raw_axis : axes) {
    ABSL_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(node, raw_axis, rank));
    if (std::find(args->axes.begin(), args->axes.end(), axis) != args->axes.end())
      return node.Invalid(absl::StrCat("axis ", axis, " twice"));
    args->axes.push_back(axis);
  }
  ABSL_ASSIGN_OR_RETURN(const int64_t antialias, node.Int("antialias", 0));
  args->antialias = antialias != 0;
  ABSL_ASSIGN_OR_RETURN(args->policy,
                        ReadName(node, "keep_aspect_ratio_policy", "stretch", kPolicies));
  return absl::OkStatus();
}

absl::Status ReadAttributes(const NodeContext& context, ResizeArgs* args) {
  const Node& node = context.node;
  const bool old = node.opset() < 11;
  ABSL_ASSIGN_OR_RETURN(args->mode, node.String("mode", "nearest"));
  ABSL_ASSIGN_OR_RETURN(args->coordinates,
                        ReadName(node, "coordinate_transformation_mode",
                                 old ? "asymmetric" : "half_pixel", kCoordinates));
  if (args->coordinates == "half_pixel_symmetric" && node.opset() < 19)
    return node.Invalid("half_pixel_symmetric exists from opset 19 on");
  ABSL_ASSIGN_OR_RETURN(args->rounding, ReadName(node, "nearest_mode",
                                                 old ? "floor" : "round_prefer_floor", kRoundings));
  ABSL_ASSIGN_OR_RETURN(args->cubic_a, node.Float("cubic_coeff_a", -0.75f));
  ABSL_ASSIGN_OR_RETURN(const int64_t exclude, node.Int("exclude_outside", 0));
  args->exclude_outside = exclude != 0;
  if (args->mode == "bilinear" || args->mode == "trilinear") args->mode = "linear";
  if (args->mode != "nearest" && args->mode != "linear" && args->mode != "cubic")
    return node.Invalid(absl::StrCat("mode '", args->mode.substr(0, 200), "'"));
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
    if (!(std::abs(end) <= kFarthest))
      return context.node.Invalid(absl::StrCat("a region to ", end));
  }
  for (size_t i = 0; i < count; ++i) {
    args->roi[args->axes[i]] = roi->floats[i];
    args->roi[rank + args->axes[i]] = roi->floats[count + i];
  }
  return absl::OkStatus();
}

// Before opset 11: scales only. Upsample 7 and 8: an attribute.
absl::Status ReadScales(const NodeContext& context, size_t rank, ResizeArgs* args) {
  const Node& node = context.node;
  const int scales_input = node.opset() < 11 ? 1 : 2;
  std::vector<float> scales;
  if (node.HasAttribute("scales")) {
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

// The scales that sizes stand for. A policy other than "stretch" makes them one, and the sizes
// follow it.
absl::Status ScalesOfSizes(const NodeContext& context, const Dims& src, ResizeArgs* args) {
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr sizes, context.Ints(3));
  const size_t count = args->axes.size();
  if (sizes->ints.size() != count) return context.node.Invalid("sizes of another rank");
  args->sizes.assign(src.begin(), src.end());
  args->scales.assign(src.size(), 1);
  std::vector<float> scales;
  for (size_t i = 0; i < count; ++i) {
    const int64_t size = src[args->axes[i]];
    scales.push_back(static_cast<float>(sizes->ints[i]) / static_cast<float>(size));
  }
  const bool stretches = args->policy == "stretch" || count == 0;
  const float common = stretches ? 0
                       : args->policy == "not_larger"
                           ? *std::min_element(scales.begin(), scales.end())
                           : *std::max_element(scales.begin(), scales.end());
  for (size_t i = 0; i < count; ++i) {
    const int axis = args->axes[i];
    args->scales[axis] = stretches ? scales[i] : common;
    const float size = std::floor(common * static_cast<float>(src[axis]) + 0.5f);
    if (!(size <= kLargestSize)) return context.node.Invalid(absl::StrCat("scale ", common));
    args->sizes[axis] = stretches ? sizes->ints[i] : static_cast<int64_t>(size);
  }
  return absl::OkStatus();
}

absl::Status ReadSizes(const NodeContext& context, const Dims& src, ResizeArgs* args) {
  const Node& node = context.node;
  ABSL_RETURN_IF_ERROR(ReadScales(context, src.size(), args));
  if (args->scales.empty() && context.Has(3))
    ABSL_RETURN_IF_ERROR(ScalesOfSizes(context, src, args));
  if (args->scales.size() != src.size()) return node.Invalid("scales of another rank");
  for (size_t d = 0; d < src.size(); ++d) {
    if (!(args->scales[d] > 0) || !(args->scales[d] * src[d] < kLargestSize))
      return node.Invalid(absl::StrCat("scale ", args->scales[d]));
    const float part = args->roi[src.size() + d] - args->roi[d];
    if (args->sizes.size() < src.size())
      args->sizes.push_back(static_cast<int64_t>(std::floor(src[d] * part * args->scales[d])));
  }
  return absl::OkStatus();
}

double PositionInCrop(const ResizeArgs& args, int64_t i, int axis, int64_t src) {
  const int64_t dst = args.sizes[axis];
  const double first = args.roi[axis], end = args.roi[args.sizes.size() + axis];
  const double last = static_cast<double>(src - 1);
  if (dst == 1) return 0.5 * (first + end) * last;
  return first * last +
         static_cast<double>(i) * (end - first) * last / static_cast<double>(dst - 1);
}

// The coordinate of the result's index `i` among `src` elements.
double Position(const ResizeArgs& args, int64_t i, int axis, int64_t src) {
  const int64_t dst = args.sizes[axis];
  const double scale = args.scales[axis];
  if (args.crops) return PositionInCrop(args, i, axis, src);
  if (args.coordinates == "tf_half_pixel_for_nn") return (static_cast<double>(i) + 0.5) / scale;
  if (args.coordinates == "asymmetric") return static_cast<double>(i) / scale;
  if (args.coordinates == "align_corners")
    return dst == 1 ? 0 : static_cast<double>(i * (src - 1)) / static_cast<double>(dst - 1);
  if (args.coordinates == "pytorch_half_pixel" && dst == 1) return 0;
  double first = -0.5;
  // Where the size was rounded down, what is missing of the source is missing at both ends.
  if (args.coordinates == "half_pixel_symmetric") {
    const double width = static_cast<double>(src);
    first += width / 2 * (1 - static_cast<double>(dst) / (scale * width));
  }
  return first + (static_cast<double>(i) + 0.5) / scale;
}

bool IsOutside(const ResizeArgs& args, double position, int64_t src) {
  return args.crops && (position < 0 || position > static_cast<double>(src - 1));
}

// Whether this dimension stays as it is.
bool Keeps(const ResizeArgs& args, size_t d, int64_t src) {
  const bool is_whole = args.roi[d] == 0 && args.roi[args.sizes.size() + d] == 1;
  return args.sizes[d] == src && (args.crops || args.scales[d] == 1) && is_whole;
}

int64_t Nearest(const std::string& rounding, double position) {
  if (rounding == "floor") return static_cast<int64_t>(std::floor(position));
  if (rounding == "ceil") return static_cast<int64_t>(std::ceil(position));
  if (rounding == "round_prefer_ceil") return static_cast<int64_t>(std::floor(position + 0.5));
  return static_cast<int64_t>(std::ceil(position - 0.5));
}

// The weight of an element at `distance` >= 0 from the position.
double Weight(const ResizeArgs& args, double distance) {
  const double a = args.cubic_a, x = distance;
  if (args.mode == "linear") return std::max(0.0, 1 - x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

// How many elements the filter takes before the one at or under a position.
double TapsBefore(const ResizeArgs& args, int axis) {
  const double reach = args.mode == "linear" ? 1 : 2;
  const double stretch = args.antialias ? std::min<double>(args.scales[axis], 1) : 1;
  return std::ceil(reach / stretch) - 1;
}

Interpolate Interpolation(const ResizeArgs& args, int axis, int64_t src) {
  const double stretch = args.antialias ? std::min<double>(args.scales[axis], 1) : 1;
  const int64_t before = static_cast<int64_t>(TapsBefore(args, axis));
  Interpolate result{axis, 2 * before + 2, {}, {}};
  const bool normalizes = args.exclude_outside || stretch < 1;
  std::vector<double> weights(result.taps);
  for (int64_t i = 0; i < args.sizes[axis]; ++i) {
    const double at = Position(args, i, axis, src);
    const int64_t first = static_cast<int64_t>(std::floor(at)) - before;
    const double fraction = at - std::floor(at);
    double sum = 0;
    for (int64_t t = 0; t < result.taps; ++t) {
      const bool is_outside = first + t < 0 || first + t >= src;
      const double distance = std::abs(static_cast<double>(t - before) - fraction);
      weights[t] = args.exclude_outside && is_outside ? 0 : Weight(args, distance * stretch);
      sum += weights[t];
    }
    for (int64_t t = 0; t < result.taps; ++t) {
      result.indices.push_back(std::clamp<int64_t>(first + t, 0, src - 1));
      result.weights.push_back(static_cast<float>(normalizes ? weights[t] / sum : weights[t]));
    }
  }
  return result;
}

absl::Status BuildNearest(NodeContext& context, const ResizeArgs& args, const Operand& src) {
  Select select = WholeOf(src.dims.size());
  select.fill = args.outside;
  for (size_t d = 0; d < src.dims.size(); ++d) {
    if (Keeps(args, d, src.dims[d])) continue;
    std::vector<int64_t> from;
    for (int64_t i = 0; i < args.sizes[d]; ++i) {
      const double at = Position(args, i, static_cast<int>(d), src.dims[d]);
      const int64_t nearest = std::clamp<int64_t>(Nearest(args.rounding, at), 0, src.dims[d] - 1);
      from.push_back(IsOutside(args, at, src.dims[d]) ? -1 : nearest);
    }
    select.from[d] = RunsOf(from);
  }
  ABSL_ASSIGN_OR_RETURN(const Operand dst, SelectOf(context, src, std::move(select)));
  return context.SetOutput(dst);
}

// Fills the part of a crop that lies outside the source of dims `src`.
absl::StatusOr<Operand> FillOutside(NodeContext& context, const ResizeArgs& args, const Dims& src,
                                    const Operand& resized) {
  Select select = WholeOf(src.size());
  select.fill = args.outside;
  for (size_t d = 0; args.crops && d < src.size(); ++d) {
    std::vector<int64_t> from;
    for (int64_t i = 0; i < args.sizes[d]; ++i) {
      const double at = Position(args, i, static_cast<int>(d), src[d]);
      from.push_back(IsOutside(args, at, src[d]) ? -1 : i);
    }
    select.from[d] = RunsOf(from);
  }
  return SelectOf(context, resized, std::move(select), "/filled");
}

absl::Status BuildResize(NodeContext& context) {
  Operand src = context.input(0);
  const Dims whole = src.dims;
  ResizeArgs args;
  ABSL_RETURN_IF_ERROR(ReadAttributes(context, &args));
  ABSL_RETURN_IF_ERROR(ReadRoi(context, src.dims.size(), &args));
  ABSL_RETURN_IF_ERROR(ReadSizes(context, src.dims, &args));
  for (int64_t size : args.sizes) {
    if (size < 1 || size > kLargestSize)
      return context.node.Invalid(absl::StrCat("a result of ", size, " elements"));
  }
  if (args.mode == "nearest") return BuildNearest(context, args, src);
  for (size_t d = 0; d < src.dims.size(); ++d) {
    if (Keeps(args, d, src.dims[d])) continue;
    const double taps = 2 * TapsBefore(args, static_cast<int>(d)) + 2;
    if (taps * static_cast<double>(args.sizes[d]) > kMostWeights)
      return context.node.Unimplemented(absl::StrCat("a filter of ", taps, " elements"));
    ABSL_ASSIGN_OR_RETURN(const ValueId value, context.AsValue(src));
    Dims dims = src.dims;
    dims[d] = args.sizes[d];
    Interpolate interpolate = Interpolation(args, static_cast<int>(d), src.dims[d]);
    ABSL_ASSIGN_OR_RETURN(
        src.value, context.Emit(std::move(interpolate), {value}, dims, absl::StrCat("/", d)));
    src = {nullptr, src.value, std::move(dims)};
  }
  ABSL_ASSIGN_OR_RETURN(const Operand dst, FillOutside(context, args, whole, src));
  return context.SetOutput(dst);
}

}  // namespace

absl::Span<const OpRow> ResizeOperators() {
  static constexpr OpRow kRows[] = {
      {"Resize", 10, 1, 4,
       "antialias axes coordinate_transformation_mode cubic_coeff_a exclude_outside "
       "extrapolation_value keep_aspect_ratio_policy mode nearest_mode",
       BuildResize},
      {"Upsample", 7, 1, 2, "mode scales", BuildResize},
  };
  return kRows;
}

}  // namespace tilewire::graph
