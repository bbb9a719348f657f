// SPDX-License-Identifier: Apache-2.0
//
// Resize and Upsample: nearest takes elements, linear and cubic interpolate along one dimension
// after the other. Where an index of the result lies in the source is ONNX's
// coordinate_transformation_mode; a crop (tf_crop_and_resize) may lie partly outside. With
// antialias, a result that is smaller than its source takes in all the elements it stands for: the
// filter is stretched by 1 / scale.
#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/onnx/ops/ops.h"
#include "engine/onnx/ops/sampling/resize_args.h"
#include "engine/onnx/ops/shapes/moves.h"

namespace tilewire::reader {

using network::Interpolate;
namespace {

constexpr double kMostWeights = 1 << 24;  // of a dimension

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

// By what distances are multiplied before the filter sees them: below 1, it is stretched.
double StretchOf(const ResizeArgs& args, int axis) {
  return args.antialias ? std::min<double>(args.scales[axis], 1) : 1;
}

// How many elements the filter takes before the one at or under a position.
double TapsBefore(const ResizeArgs& args, int axis) {
  const double reach = args.mode == "linear" ? 1 : 2;
  return std::ceil(reach / StretchOf(args, axis)) - 1;
}

Interpolate Interpolation(const ResizeArgs& args, int axis, int64_t src) {
  const double stretch = StretchOf(args, axis);
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
  return context.SetOutput(SelectOf(context, src, std::move(select)));
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
  ABSL_ASSIGN_OR_RETURN(const ResizeArgs args, ReadResizeArgs(context));
  if (args.mode == "nearest") return BuildNearest(context, args, src);
  for (size_t d = 0; d < src.dims.size(); ++d) {
    if (Keeps(args, d, src.dims[d])) continue;
    const double taps = 2 * TapsBefore(args, static_cast<int>(d)) + 2;
    if (taps * static_cast<double>(args.sizes[d]) > kMostWeights)
      return context.node.Unimplemented("a filter of ", taps, " elements");
    ABSL_ASSIGN_OR_RETURN(const ValueId value, context.AsValue(src));
    Dims dims = src.dims;
    dims[d] = args.sizes[d];
    Interpolate interpolate = Interpolation(args, static_cast<int>(d), src.dims[d]);
    ABSL_ASSIGN_OR_RETURN(src, context.EmitOperand(std::move(interpolate), {value}, std::move(dims),
                                                   absl::StrCat("/", d)));
  }
  return context.SetOutput(FillOutside(context, args, whole, src));
}

}  // namespace

TILEWIRE_OPERATORS(Resize) = {
    {"Resize", 10, 1, 4,
     "antialias axes coordinate_transformation_mode cubic_coeff_a exclude_outside "
     "extrapolation_value keep_aspect_ratio_policy mode nearest_mode",
     BuildResize, Folds::kNever, LikeFirstInput, Inputs({1, 2, 3})},
    {"Upsample", 1, 1, 2, "height_scale mode scales width_scale", BuildResize, Folds::kNever,
     LikeFirstInput, Inputs({1})},
};

}  // namespace tilewire::reader
