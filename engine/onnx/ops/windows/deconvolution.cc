// SPDX-License-Identifier: Apache-2.0
//
// ConvTranspose. Weights come as [I, O/groups, k...].
//
//   dst = stride * (src - 1) + output_padding + (kernel - 1) * dilation + 1 - left - right
//
// One whose weights are known is a deconvolution; or, where it has few channels and its windows do
// not overlap, a convolution of single pixels with an output for each element of the window, which
// then takes its place. One that learns is a deconvolution whose weights are computed. Otherwise it
// is a convolution: the source, with stride - 1 zeros between its elements, is convolved with the
// reversed window, padded on each side by dilation * (kernel - 1) less the node's padding.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/onnx/ops/ops.h"
#include "engine/onnx/ops/shapes/moves.h"
#include "engine/onnx/ops/weights.h"
#include "engine/onnx/ops/windows/convolution.h"

namespace tilewire::reader {
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
    return node.Invalid("attribute '", name, "'");
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

// Turns [I, O/g, k...] into [O, I/g, k...], with every window reversed if `reverses`.
std::vector<float> TurnWeights(absl::Span<const float> src, int64_t groups, int64_t inputs,
                               int64_t outputs, int64_t window, bool reverses) {
  std::vector<float> dst(src.size());
  for (int64_t g = 0; g < groups; ++g) {
    for (int64_t i = 0; i < inputs; ++i) {
      for (int64_t o = 0; o < outputs; ++o) {
        const int64_t from = ((g * inputs + i) * outputs + o) * window;
        const int64_t to = ((g * outputs + o) * inputs + i) * window;
        for (int64_t k = 0; k < window; ++k)
          dst[to + k] = src[from + (reverses ? window - 1 - k : k)];
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
  Dims split = {groups, inputs}, joined = {groups * w[1], inputs};
  std::vector<int> order = {0, 2, 1};
  Select turn = WholeOf(w.size());
  split.insert(split.end(), w.begin() + 1, w.end());
  for (size_t d = 2; d < w.size(); ++d) {
    joined.push_back(w[d]);
    order.push_back(static_cast<int>(d) + 1);
    if (w[d] > 1) turn.from[d] = {{w[d] - 1, -1, w[d]}};
  }
  ABSL_ASSIGN_OR_RETURN(const Operand by_group, ReshapeOf(context, weights, split, "/groups"));
  ABSL_ASSIGN_OR_RETURN(const Operand swapped, TurnedOf(context, by_group, order, "/swapped"));
  ABSL_ASSIGN_OR_RETURN(const Operand whole, ReshapeOf(context, swapped, joined, "/outputs"));
  return SelectOf(context, whole, std::move(turn), "/turned");
}

// The same of known weights.
absl::StatusOr<ConstantPtr> TurnKnownWeights(NodeContext& context, int64_t groups, bool reverses) {
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr weights, context.Floats(1));
  const Dims& w = context.input(1).dims;
  Dims turned = {w[1] * groups, w[0] / groups};
  turned.insert(turned.end(), w.begin() + 2, w.end());
  const int64_t window = *CheckedProduct(absl::MakeConstSpan(w).subspan(2));
  return MakeFloats(absl::StrCat(weights->name, reverses ? "/turned" : "/outputs_first"), turned,
                    TurnWeights(weights->floats, groups, w[0] / groups, w[1], window, reverses));
}

absl::StatusOr<Operand> TurnedWeights(NodeContext& context, int64_t groups) {
  if (context.input(1).constant == nullptr)
    return TurnComputedWeights(context, context.input(1), groups);
  ABSL_ASSIGN_OR_RETURN(ConstantPtr turned, TurnKnownWeights(context, groups, /*reverses=*/true));
  return OperandOf(std::move(turned));
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

// A ConvTranspose, read and checked.
struct Transposed {
  int64_t groups = 1;
  std::vector<Axis> axes;  // spatial
  Dims dst;
};

int64_t ReachOf(const Axis& axis, int64_t kernel) { return (kernel - 1) * axis.dilation; }

absl::StatusOr<Transposed> Read(const NodeContext& context) {
  const Node& node = context.node;
  const Dims &src = context.input(0).dims, &w = context.input(1).dims;
  Transposed transposed;
  ABSL_ASSIGN_OR_RETURN(transposed.groups, node.Int("group", 1));
  const size_t rank = src.size();
  if (rank < 3 || rank > 5 || w.size() != rank || transposed.groups < 1 || src[1] != w[0] ||
      w[0] % transposed.groups != 0 || ElementCount(w).value_or(0) < 1) {
    return node.Invalid("input ", DimsToString(src), ", weights ", DimsToString(w), " and group ",
                        transposed.groups, " do not fit");
  }
  transposed.dst = {src[0], w[1] * transposed.groups};
  for (size_t d = 2; d < rank; ++d) {
    ABSL_ASSIGN_OR_RETURN(const Axis axis, ReadAxis(node, d - 2, rank - 2, src[d], w[d]));
    const int64_t size = axis.stride * (src[d] - 1) + 1;
    if (size > kLongestSpread)
      return node.Unimplemented(size, " places; supported are ", kLongestSpread);
    transposed.dst.push_back(size + axis.extra + ReachOf(axis, w[d]) - axis.left - axis.right);
    if (transposed.dst.back() < 1) return node.Invalid("the padding leaves nothing");
    transposed.axes.push_back(axis);
  }
  return transposed;
}

// By a convolution of the source with zeros between its elements.
absl::StatusOr<ValueId> ConvolveSpread(NodeContext& context, const Transposed& transposed,
                                       const Operand& bias) {
  const Operand src = context.input(0);
  network::ComputedConvolution convolution;
  convolution.groups = transposed.groups;
  Select select = WholeOf(src.dims.size());
  for (size_t i = 0; i < transposed.axes.size(); ++i) {
    const Axis& axis = transposed.axes[i];
    const int64_t reach = ReachOf(axis, context.input(1).dims[i + 2]);
    select.from[i + 2] =
        Spread(src.dims[i + 2], axis.stride, std::max<int64_t>(0, axis.left - reach),
               axis.extra + std::min<int64_t>(0, reach - axis.right));
    convolution.strides.push_back(1);
    convolution.dilations.push_back(axis.dilation - 1);
    convolution.padding_left.push_back(std::max<int64_t>(0, reach - axis.left));
    convolution.padding_right.push_back(std::max<int64_t>(0, reach - axis.right));
  }
  ABSL_ASSIGN_OR_RETURN(const Operand turned, TurnedWeights(context, transposed.groups));
  ABSL_ASSIGN_OR_RETURN(Operand wide, SelectOf(context, src, std::move(select), "/spread"));
  ABSL_ASSIGN_OR_RETURN(const ValueId value, context.AsValue(wide));
  return EmitWindowed(context, value, std::move(convolution), turned, bias, transposed.dst);
}

bool IsKnown(const NodeContext& context, const Operand& bias) {
  return context.input(1).constant != nullptr && bias.value == kNoValue;
}

// One group, or groups that fill vectors.
bool FillsVectors(const NodeContext& context, const Transposed& transposed) {
  constexpr int64_t kLanes = 16;  // of the widest vectors
  const Dims& w = context.input(1).dims;
  return transposed.groups == 1 || (w[0] / transposed.groups % kLanes == 0 && w[1] % kLanes == 0);
}

// Known weights and bias, no more output_padding than padding, and groups that fill vectors.
bool IsPlainDeconvolution(const NodeContext& context, const Transposed& transposed,
                          const Operand& bias) {
  return IsKnown(context, bias) && FillsVectors(context, transposed) &&
         std::all_of(transposed.axes.begin(), transposed.axes.end(),
                     [](const Axis& axis) { return axis.extra <= axis.right; });
}

// Whether it is the gradient of a convolution, for training: its output_padding is what a stride
// leaves, and its groups fill vectors or have one channel each.
bool IsLearningDeconvolution(const NodeContext& context, const Transposed& transposed,
                             const Operand& bias) {
  const Dims& w = context.input(1).dims;
  const bool is_depthwise = w[0] == transposed.groups && w[1] == 1;
  return context.training() != nullptr && !IsKnown(context, bias) &&
         (is_depthwise || FillsVectors(context, transposed)) &&
         std::all_of(transposed.axes.begin(), transposed.axes.end(),
                     [](const Axis& axis) { return axis.extra - axis.right < axis.stride; });
}

absl::StatusOr<ValueId> EmitLearningDeconvolution(NodeContext& context,
                                                  const Transposed& transposed,
                                                  const Operand& bias) {
  network::ComputedDeconvolution deconvolution;
  network::ComputedConvolution& convolution = deconvolution.convolution;
  convolution.groups = transposed.groups;
  for (const Axis& axis : transposed.axes) {
    convolution.strides.push_back(axis.stride);
    convolution.dilations.push_back(axis.dilation - 1);
    convolution.padding_left.push_back(axis.left);
    convolution.padding_right.push_back(std::max<int64_t>(0, axis.right - axis.extra));
  }
  ABSL_RETURN_IF_ERROR(CheckBias(context.node, bias, transposed.dst[1]));
  std::vector<ValueId> srcs;
  ABSL_ASSIGN_OR_RETURN(srcs.emplace_back(), context.Runtime(0));
  ABSL_ASSIGN_OR_RETURN(srcs.emplace_back(), context.Runtime(1));
  if (bias.defined()) {
    ABSL_ASSIGN_OR_RETURN(srcs.emplace_back(), context.AsValue(bias));
  }
  return context.Emit(std::move(deconvolution), std::move(srcs), transposed.dst);
}

absl::StatusOr<ValueId> EmitDeconvolution(NodeContext& context, const Transposed& transposed,
                                          const Operand& bias) {
  network::Deconvolution deconvolution;
  deconvolution.groups = transposed.groups;
  for (const Axis& axis : transposed.axes) {
    deconvolution.strides.push_back(axis.stride);
    deconvolution.dilations.push_back(axis.dilation - 1);
    deconvolution.padding_left.push_back(axis.left);
    deconvolution.padding_right.push_back(axis.right - axis.extra);
  }
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr weights, TurnKnownWeights(context, transposed.groups,
                                                                    /*reverses=*/false));
  deconvolution.weights = WeightsOf(weights);
  if (bias.constant != nullptr) {
    ABSL_ASSIGN_OR_RETURN(deconvolution.bias, ReadVector(context, 2, transposed.dst[1]));
  }
  ABSL_ASSIGN_OR_RETURN(const ValueId src, context.Runtime(0));
  return context.Emit(std::move(deconvolution), {src}, transposed.dst);
}

// Whether the inputs and the outputs of a deconvolution would fill a small part of a vector, and
// each output comes from one pixel.
bool IsNarrowTiling(const NodeContext& context, const Transposed& transposed) {
  constexpr int64_t kFewInputs = 15, kFewOutputs = 4;
  const Dims& w = context.input(1).dims;
  bool tiles = transposed.groups == 1 && w[0] <= kFewInputs && w[1] <= kFewOutputs;
  for (size_t i = 0; i < transposed.axes.size(); ++i) {
    const Axis& axis = transposed.axes[i];
    tiles = tiles && axis.stride == w[i + 2] && axis.dilation == 1 && axis.left == 0 &&
            axis.right == 0 && axis.extra == 0;
  }
  return tiles;
}

// Weights [I, O, k...] as [k..., O, I, 1...], and a bias for each of their outputs.
struct PixelWeights {
  Operand weights, bias;
};

absl::StatusOr<PixelWeights> WeightsOfPixels(const NodeContext& context, const Operand& bias) {
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr weights, context.Floats(1));
  const Dims& w = context.input(1).dims;
  const int64_t inputs = w[0], outputs = w[1];
  const int64_t window = *CheckedProduct(absl::MakeConstSpan(w).subspan(2));
  std::vector<float> numbers(weights->floats.size()), biases, of_outputs(outputs, 0.0f);
  if (bias.constant != nullptr) {
    ABSL_ASSIGN_OR_RETURN(of_outputs, ReadVector(context, 2, outputs));
  }
  for (int64_t k = 0; k < window; ++k) {
    for (int64_t o = 0; o < outputs; ++o) {
      for (int64_t i = 0; i < inputs; ++i)
        numbers[(k * outputs + o) * inputs + i] = weights->floats[(i * outputs + o) * window + k];
      biases.push_back(of_outputs[o]);
    }
  }
  Dims dims(w.size(), 1);
  dims[0] = window * outputs;
  dims[1] = inputs;
  const std::string name = weights->name + "/pixels";
  return PixelWeights{OperandOf(MakeFloats(name, dims, std::move(numbers))),
                      OperandOf(MakeFloats(name + "/bias", {dims[0]}, std::move(biases)))};
}

// [N, k..., O, in...] to [N, O, in, k, in, k, ...].
absl::StatusOr<ValueId> EmitTiling(NodeContext& context, const Transposed& transposed,
                                   const Operand& bias) {
  const Dims src = context.input(0).dims, w = context.input(1).dims;
  const size_t spatial = transposed.axes.size();
  ABSL_ASSIGN_OR_RETURN(const PixelWeights pixel, WeightsOfPixels(context, bias));
  ABSL_ASSIGN_OR_RETURN(const ValueId value, context.Runtime(0));
  const Dims ones(spatial, 1), zeros(spatial, 0);
  Dims outputs = src, split = {src[0]}, moved = {src[0], w[1]};
  std::vector<int> order = {0, static_cast<int>(spatial) + 1};
  outputs[1] = pixel.weights.dims[0];
  ABSL_ASSIGN_OR_RETURN(
      const ValueId result,
      EmitWindowed(context, value, {1, ones, zeros, zeros, zeros}, pixel.weights,
                   bias.constant == nullptr ? Operand() : pixel.bias, outputs, "/pixels"));
  split.insert(split.end(), w.begin() + 2, w.end());
  split.push_back(w[1]);
  split.insert(split.end(), src.begin() + 2, src.end());
  for (size_t i = 0; i < spatial; ++i) {
    order.insert(order.end(), {static_cast<int>(spatial + 2 + i), static_cast<int>(i) + 1});
    moved.insert(moved.end(), {src[i + 2], w[i + 2]});
  }
  ABSL_ASSIGN_OR_RETURN(const ValueId windows, context.EmitReshape(result, split, "/windows"));
  ABSL_ASSIGN_OR_RETURN(const ValueId places,
                        context.Emit(network::Transpose{order}, {windows}, moved, "/places"));
  return context.EmitReshape(places, transposed.dst, "");
}

absl::Status BuildConvTranspose(NodeContext& context) {
  ABSL_ASSIGN_OR_RETURN(const Transposed transposed, Read(context));
  const Operand bias = context.Has(2) ? context.input(2) : Operand();
  const auto emit = IsLearningDeconvolution(context, transposed, bias) ? EmitLearningDeconvolution
                    : !IsPlainDeconvolution(context, transposed, bias) ? ConvolveSpread
                    : IsNarrowTiling(context, transposed)              ? EmitTiling
                                                                       : EmitDeconvolution;
  return context.SetOutput(emit(context, transposed, bias));
}

}  // namespace

TILEWIRE_OPERATORS(Deconvolution) = {
    TrainsWeights({"ConvTranspose", 1, 2, 3,
                   "auto_pad dilations group kernel_shape output_padding output_shape pads strides",
                   BuildConvTranspose}),
};

}  // namespace tilewire::reader
