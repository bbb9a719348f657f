// SPDX-License-Identifier: Apache-2.0
//
// Resize and Upsample: nearest takes elements, linear and cubic interpolate along one dimension
// after the other. Where an index of the result lies in the source is ONNX's
// coordinate_transformation_mode; a crop (tf_crop_and_resize) may lie partly outside.
#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/ops.h"
#include "engine/graph/ops/select.h"

namespace tilewire::graph {
namespace {

constexpr int64_t kLargestSize = int64_t{1} << 20;  // of a resized dimension
constexpr float kFarthest = 1 << 20;                // ends of a region, in sizes of the source

struct ResizeArgs {
  std::string mode, coordinates, rounding;
  float cubic_a = -0.75f;
  bool exclude_outside = false;
  bool crops = false;          // takes the part of the source that `roi` names
  std::vector<float> roi;      // all starts, then all ends; 1 is the last element
  float outside = 0;           // fills the part of a crop that lies outside the source
  std::vector<float> scales;   // one per dimension
  std::vector<int64_t> sizes;  // of the result, one per dimension
};

absl::Status ReadAttributes(const NodeContext& context, ResizeArgs* args) {
  const Node& node = context.node;
  const bool old = node.opset() < 11;
  ABSL_ASSIGN_OR_RETURN(args->mode, node.String("mode", "nearest"));
  ABSL_ASSIGN_OR_RETURN(args->coordinates, node.String("coordinate_transformation_mode",
                                                       old ? "asymmetric" : "half_pixel"));
  ABSL_ASSIGN_OR_RETURN(args->rounding,
                        node.String("nearest_mode", old ? "floor" : "round_prefer_floor"));
  ABSL_ASSIGN_OR_RETURN(args->cubic_a, node.Float("cubic_coeff_a", -0.75f));
  ABSL_ASSIGN_OR_RETURN(const int64_t exclude, node.Int("exclude_outside", 0));
  args->exclude_outside = exclude != 0;
  if (args->mode == "bilinear" || args->mode == "trilinear") args->mode = "linear";
  if (args->mode != "nearest" && args->mode != "linear" && args->mode != "cubic")
    return node.Invalid(absl::StrCat("mode '", args->mode.substr(0, 200), "'"));
  ABSL_ASSIGN_OR_RETURN(args->outside, node.Float("extrapolation_value", 0));
  args->crops = args->coordinates == "tf_crop_and_resize";
  return absl::OkStatus();
}

absl::Status ReadRoi(const NodeContext& context, size_t rank, ResizeArgs* args) {
  args->roi.assign(rank, 0);
  args->roi.resize(2 * rank, 1);
  if (!args->crops) return absl::OkStatus();
  if (!context.Has(1)) return context.node.Invalid("crops without a region");
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr roi, context.Floats(1));
  if (roi->floats.size() != 2 * rank) return context.node.Invalid("a region of another rank");
  for (float end : roi->floats) {
    if (!(std::abs(end) <= kFarthest))
      return context.node.Invalid(absl::StrCat("a region to ", end));
  }
  args->roi.assign(roi->floats.begin(), roi->floats.end());
  return absl::OkStatus();
}

// Before opset 11: scales only. Upsample 7 and 8: an attribute.
absl::Status ReadSizes(const NodeContext& context, const Dims& src, ResizeArgs* args) {
  const Node& node = context.node;
  const int scales_input = node.opset() < 11 ? 1 : 2;
  if (node.HasAttribute("scales")) {
    ABSL_ASSIGN_OR_RETURN(args->scales, node.Floats("scales"));
  } else if (context.Has(scales_input)) {
    ABSL_ASSIGN_OR_RETURN(const ConstantPtr scales, context.Floats(scales_input));
    args->scales.assign(scales->floats.begin(), scales->floats.end());
  }
  if (args->scales.empty() && context.Has(3)) {
    ABSL_ASSIGN_OR_RETURN(const ConstantPtr sizes, context.Ints(3));
    args->sizes = sizes->ints;
    if (args->sizes.size() != src.size()) return node.Invalid("sizes of another rank");
    for (size_t d = 0; d < src.size(); ++d)
      args->scales.push_back(static_cast<float>(args->sizes[d]) / static_cast<float>(src[d]));
  }
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
  return (static_cast<double>(i) + 0.5) / scale - 0.5;
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

std::vector<double> Weights(const ResizeArgs& args, double fraction) {
  if (args.mode == "linear") return {1 - fraction, fraction};
  const double a = args.cubic_a, t = fraction, u = 1 - fraction;
  const auto far = [a](double x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
  const auto near = [a](double x) { return ((a + 2) * x - (a + 3)) * x * x + 1; };
  return {far(t + 1), near(t), near(u), far(u + 1)};
}

Interpolate Interpolation(const ResizeArgs& args, int axis, int64_t src) {
  Interpolate result{axis, args.mode == "linear" ? 2 : 4, {}, {}};
  for (int64_t i = 0; i < args.sizes[axis]; ++i) {
    const double at = Position(args, i, axis, src);
    const int64_t first = static_cast<int64_t>(std::floor(at)) - (result.taps / 2 - 1);
    std::vector<double> weights = Weights(args, at - std::floor(at));
    double sum = 0;
    for (int64_t t = 0; t < result.taps; ++t) {
      if (args.exclude_outside && (first + t < 0 || first + t >= src)) weights[t] = 0;
      sum += weights[t];
    }
    for (int64_t t = 0; t < result.taps; ++t) {
      result.indices.push_back(std::clamp<int64_t>(first + t, 0, src - 1));
      result.weights.push_back(
          static_cast<float>(args.exclude_outside ? weights[t] / sum : weights[t]));
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
      {"Resize", 1, 4,
       "coordinate_transformation_mode cubic_coeff_a exclude_outside extrapolation_value mode "
       "nearest_mode",
       BuildResize},
      {"Upsample", 1, 2, "mode scales", BuildResize},
  };
  return kRows;
}

}  // namespace tilewire::graph
