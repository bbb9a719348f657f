// SPDX-License-Identifier: Apache-2.0
//
// ConvTranspose as a convolution: the source, with stride - 1 zeros between its elements, is
// convolved with the reversed window, padded on each side by dilation * (kernel - 1) less the
// node's padding. Weights come as [I, O/groups, k...].
//
//   dst = stride * (src - 1) + output_padding + (kernel - 1) * dilation + 1 - left - right
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/convolution.h"
#include "engine/graph/ops/ops.h"
#include "engine/graph/ops/select.h"
#include "engine/graph/ops/weights.h"

namespace tilewire::graph {
namespace {

constexpr int64_t kLongestSpread = int64_t{1} << 20;  // of a source with zeros in between

struct Axis {
  int64_t stride = 1, dilation = 1, left = 0, right = 0, extra = 0;
};

absl::StatusOr<int64_t> Entry(const Node& node, absl::string_view name, size_t i, size_t count,
                              int64_t absent) {
  ABSL_ASSIGN_OR_RETURN(const std::vector<int64_t> all, node.Ints(name, {}));
  if (all.empty()) return absent;
  if (all.size() != count || all[i] < 0 || all[i] > INT32_MAX)
    return node.Invalid(absl::StrCat("attribute '", name, "'"));
  return all[i];
}

// Splits the padding that makes the result as large as the node asks. An excess is cut off, the
// larger half at the end for SAME_UPPER, otherwise at the start; missing elements go to the end.
void SplitTotal(const std::string& auto_pad, int64_t total, Axis* axis) {
  if (total < 0) {
    axis->left = axis->right = 0;
    axis->extra -= total;
    return;
  }
  const bool more_in_front = auto_pad != "SAME_UPPER";
  axis->left = more_in_front ? total - total / 2 : total / 2;
  axis->right = total - axis->left;
}

absl::StatusOr<Axis> ReadAxis(const Node& node, size_t i, size_t spatial, int64_t src,
                              int64_t kernel) {
  Axis axis;
  ABSL_ASSIGN_OR_RETURN(axis.stride, Entry(node, "strides", i, spatial, 1));
  ABSL_ASSIGN_OR_RETURN(axis.dilation, Entry(node, "dilations", i, spatial, 1));
  ABSL_ASSIGN_OR_RETURN(axis.left, Entry(node, "pads", i, 2 * spatial, 0));
  ABSL_ASSIGN_OR_RETURN(axis.right, Entry(node, "pads", i + spatial, 2 * spatial, 0));
  ABSL_ASSIGN_OR_RETURN(axis.extra, Entry(node, "output_padding", i, spatial, 0));
  ABSL_ASSIGN_OR_RETURN(const int64_t wanted, Entry(node, "output_shape", i, spatial, 0));
  ABSL_ASSIGN_OR_RETURN(const std::string auto_pad, node.String("auto_pad", "NOTSET"));
  if (axis.stride < 1 || axis.dilation < 1 || axis.stride > 65536 || axis.dilation > 65536)
    return node.Invalid("strides or dilations out of range");
  const int64_t full = axis.stride * (src - 1) + axis.extra + (kernel - 1) * axis.dilation + 1;
  const bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  if (wanted > 0 || same) {
    SplitTotal(auto_pad, full - (wanted > 0 ? wanted : src * axis.stride), &axis);
  }
  return axis;
}

// Turns [I, O/g, k...] into [O, I/g, k...] with every window reversed.
std::vector<float> TurnWeights(absl::Span<const float> src, int64_t groups, int64_t inputs,
                               int64_t outputs, int64_t window) {
  std::vector<float> dst(src.size());
  for (int64_t g = 0; g < groups; ++g) {
    for (int64_t i = 0; i < inputs; ++i) {
      for (int64_t o = 0; o < outputs; ++o) {
        const int64_t from = ((g * inputs + i) * outputs + o) * window;
        const int64_t to = ((g * outputs + o) * inputs + i) * window;
        for (int64_t k = 0; k < window; ++k) dst[to + k] = src[from + window - 1 - k];
      }
    }
  }
  return dst;
}

// The same in every run.
absl::StatusOr<Operand> TurnComputedWeights(NodeContext& context, const Operand& weights,
                                            int64_t groups) {
  const Dims& w = weights.dims;
  const int64_t inputs = w[0] / groups;
  Dims split = {groups, inputs}, moved = {groups, w[1], inputs}, joined = {groups * w[1], inputs};
  std::vector<int> order = {0, 2, 1};
  Select turn = WholeOf(w.size());
  split.insert(split.end(), w.begin() + 1, w.end());
  for (size_t d = 2; d < w.size(); ++d) {
    moved.push_back(w[d]);
    joined.push_back(w[d]);
    order.push_back(static_cast<int>(d) + 1);
    if (w[d] > 1) turn.from[d] = {{w[d] - 1, -1, w[d]}};
  }
  ABSL_ASSIGN_OR_RETURN(const Operand by_group, ReshapeOf(context, weights, split, "/groups"));
  ABSL_ASSIGN_OR_RETURN(const ValueId value, context.AsValue(by_group));
  ABSL_ASSIGN_OR_RETURN(const ValueId swapped,
                        context.Emit(Transpose{order}, {value}, moved, "/swapped"));
  ABSL_ASSIGN_OR_RETURN(const Operand whole,
                        ReshapeOf(context, {nullptr, swapped, moved}, joined, "/outputs"));
  return SelectOf(context, whole, std::move(turn), "/turned");
}

absl::StatusOr<Operand> TurnedWeights(NodeContext& context, int64_t groups) {
  const Operand given = context.input(1);
  if (given.constant == nullptr) return TurnComputedWeights(context, given, groups);
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr weights, context.Floats(1));
  const Dims& w = given.dims;
  Dims turned = {w[1] * groups, w[0] / groups};
  turned.insert(turned.end(), w.begin() + 2, w.end());
  const int64_t window = *CheckedProduct(absl::MakeConstSpan(w).subspan(2));
  ConstantPtr constant =
      MakeFloats(weights->name + "/turned", turned,
                 TurnWeights(weights->floats, groups, w[0] / groups, w[1], window));
  return Operand{std::move(constant), kNoValue, std::move(turned)};
}

// Selects src with stride - 1 zeros between its elements, without the first `in_front` elements,
// and with `behind` zeros appended (elements cut off if negative).
IndexRuns Spread(int64_t size, int64_t stride, int64_t in_front, int64_t behind) {
  std::vector<int64_t> from;
  for (int64_t i = 0; i < size; ++i) {
    from.push_back(i);
    if (i + 1 < size) from.insert(from.end(), stride - 1, -1);
  }
  from.resize(std::max<int64_t>(0, static_cast<int64_t>(from.size()) + behind), -1);
  from.erase(from.begin(), from.begin() + std::min<int64_t>(in_front, from.size()));
  return RunsOf(from);
}

absl::Status BuildConvTranspose(NodeContext& context) {
  const Node& node = context.node;
  const Operand src = context.input(0);
  const Dims w = context.input(1).dims;
  ABSL_ASSIGN_OR_RETURN(const int64_t groups, node.Int("group", 1));
  const size_t rank = src.dims.size(), spatial = rank - 2;
  if (rank < 3 || rank > 5 || w.size() != rank || groups < 1 || src.dims[1] != w[0] ||
      w[0] % groups != 0 || ElementCount(w).value_or(0) < 1) {
    return node.Invalid(absl::StrCat("input ", DimsToString(src.dims), ", weights ",
                                     DimsToString(w), " and group ", groups, " do not fit"));
  }
  ComputedConvolution convolution;
  convolution.groups = groups;
  Select select = WholeOf(rank);
  Dims spread = src.dims, dst = {src.dims[0], w[1] * groups};
  for (size_t i = 0; i < spatial; ++i) {
    ABSL_ASSIGN_OR_RETURN(const Axis axis, ReadAxis(node, i, spatial, src.dims[i + 2], w[i + 2]));
    const int64_t reach = (w[i + 2] - 1) * axis.dilation;
    const int64_t size = axis.stride * (src.dims[i + 2] - 1) + 1;
    if (size > kLongestSpread)
      return node.Unimplemented(absl::StrCat(size, " places; supported are ", kLongestSpread));
    select.from[i + 2] =
        Spread(src.dims[i + 2], axis.stride, std::max<int64_t>(0, axis.left - reach),
               axis.extra + std::min<int64_t>(0, reach - axis.right));
    convolution.strides.push_back(1);
    convolution.dilations.push_back(axis.dilation - 1);
    convolution.padding_left.push_back(std::max<int64_t>(0, reach - axis.left));
    convolution.padding_right.push_back(std::max<int64_t>(0, reach - axis.right));
    dst.push_back(size + axis.extra + reach - axis.left - axis.right);
    if (dst.back() < 1) return node.Invalid("the padding leaves nothing");
  }
  ABSL_ASSIGN_OR_RETURN(const Operand turned, TurnedWeights(context, groups));
  const Operand bias = context.Has(2) ? context.input(2) : Operand();
  ABSL_ASSIGN_OR_RETURN(Operand wide, SelectOf(context, src, std::move(select), "/spread"));
  ABSL_ASSIGN_OR_RETURN(const ValueId value, context.AsValue(wide));
  ABSL_ASSIGN_OR_RETURN(const ValueId result, EmitWindowed(context, value, std::move(convolution),
                                                           turned, bias, std::move(dst)));
  return context.SetOutput(result);
}

}  // namespace

TILEWIRE_OPERATORS(Deconvolution) = {
    {"ConvTranspose", 1, 2, 3,
     "auto_pad dilations group kernel_shape output_padding output_shape pads strides",
     BuildConvTranspose},
};

}  // namespace tilewire::graph
