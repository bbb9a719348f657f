// SPDX-License-Identifier: Apache-2.0
//
// Pad: adds elements before and after each dimension: a constant, the source mirrored at its edge
// (which is not repeated), the edge itself, or the source again from its other end. Negative
// numbers cut elements off.
#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/onnx/ops/arithmetic/element_functions.h"
#include "engine/onnx/ops/ops.h"
#include "engine/onnx/ops/shapes/moves.h"

namespace tilewire::reader {
namespace {

constexpr int64_t kLargestPad = INT32_MAX;

struct PadArgs {
  std::vector<int64_t> pads;  // at the start of each dimension, then at the end of each
  float value = 0;
  bool computes_value = false;  // `value` is not a constant
};

// From opset 18 on pads may be given for some axes only; the others are not padded.
absl::Status SpreadOverAxes(const NodeContext& context, size_t rank, PadArgs* args) {
  const Node& node = context.node;
  if (!context.Has(3)) return absl::OkStatus();
  if (node.opset() < 18) return node.Invalid("input 3 exists from opset 18 on");
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr axes, context.Ints(3));
  const size_t count = axes->ints.size();
  if (args->pads.size() != 2 * count)
    return node.Invalid(args->pads.size(), " pads for ", count, " axes");
  std::vector<int64_t> pads(2 * rank, 0);
  ABSL_ASSIGN_OR_RETURN(const std::vector<int> padded, DistinctAxes(node, axes->ints, rank));
  for (size_t i = 0; i < count; ++i) {
    pads[padded[i]] = args->pads[i];
    pads[rank + padded[i]] = args->pads[count + i];
  }
  args->pads = std::move(pads);
  return absl::OkStatus();
}

// Attributes before opset 11, inputs from then on.
absl::StatusOr<PadArgs> ReadArgs(const NodeContext& context, size_t rank) {
  const Node& node = context.node;
  PadArgs args;
  if (node.opset() < 11) {
    ABSL_ASSIGN_OR_RETURN(args.pads, node.Ints(node.opset() < 2 ? "paddings" : "pads", {}));
    ABSL_ASSIGN_OR_RETURN(args.value, node.Float("value", 0));
  } else {
    if (!context.Has(1)) return node.Invalid("input 1 is missing");
    ABSL_ASSIGN_OR_RETURN(const ConstantPtr pads, context.Ints(1));
    args.pads = pads->ints;
    if (context.Has(2)) {
      const ConstantPtr& value = context.input(2).constant;
      if (ElementCount(context.input(2).dims) != 1)
        return node.Invalid("constant_value is not one number");
      args.computes_value = value == nullptr;
      if (value != nullptr)
        args.value = value->is_float ? value->floats[0] : static_cast<float>(value->ints[0]);
      if (value != nullptr && !value->is_float &&
          static_cast<long double>(args.value) != static_cast<long double>(value->ints[0]))
        return node.Unimplemented("pads with ", value->ints[0]);
    }
    ABSL_RETURN_IF_ERROR(SpreadOverAxes(context, rank, &args));
  }
  if (args.pads.size() != 2 * rank) return node.Invalid(args.pads.size(), " pads for rank ", rank);
  for (int64_t pad : args.pads) {
    if (pad < -kLargestPad || pad > kLargestPad) return node.Invalid("pad of ", pad);
  }
  return args;
}

// The source over and over, from `left` elements before it to `right` after it.
absl::StatusOr<IndexRuns> WrapRuns(const Node& node, int64_t left, int64_t right, int64_t size) {
  constexpr int64_t kMostRepeats = 1024;
  if (left < 0 || right < 0) return node.Unimplemented("negative pads of mode wrap");
  if (size == 0 || std::max(left, right) / size > kMostRepeats)
    return node.Unimplemented("wraps ", size, " elements around ", left, " and ", right, " times");
  IndexRuns runs;
  for (int64_t at = -left; at < size + right;) {
    const int64_t from = (at % size + size) % size;
    const int64_t count = std::min(size - from, size + right - at);
    runs.push_back({from, 1, count});
    at += count;
  }
  return runs;
}

absl::StatusOr<IndexRuns> PadRuns(const Node& node, const std::string& mode, int64_t left,
                                  int64_t right, int64_t size) {
  if (mode == "wrap") return WrapRuns(node, left, right, size);
  IndexRuns runs;
  const bool reflects = mode == "reflect";
  if (reflects && (left >= size || right >= size))
    return node.Invalid("reflects more than there is of ", size);
  if (left > 0) {
    runs.push_back(reflects         ? IndexRun{left, -1, left}
                   : mode == "edge" ? IndexRun{0, 0, left}
                                    : IndexRun{-1, 0, left});
  }
  const int64_t first = std::max<int64_t>(0, -left), end = size - std::max<int64_t>(0, -right);
  if (first > end) return node.Invalid("cuts off more than ", size);
  if (mode == "edge" && size == 0 && std::max(left, right) > 0)
    return node.Invalid("repeats the edge of nothing");
  runs.push_back({first, 1, end - first});
  if (right > 0) {
    runs.push_back(reflects         ? IndexRun{size - 2, -1, right}
                   : mode == "edge" ? IndexRun{size - 1, 0, right}
                                    : IndexRun{-1, 0, right});
  }
  return runs;
}

// Input 2 wherever the selection takes nothing from the source.
absl::Status FillByInput(NodeContext& context, const Operand& zeros, Select select) {
  const Dims single(select.from.size(), 1);
  network::Literal literal{context.KnownFloats("/one", single, {1}).constant};
  ABSL_ASSIGN_OR_RETURN(const Operand one,
                        context.EmitOperand(std::move(literal), {}, single, "/one"));
  for (std::vector<IndexRun>& runs : select.from) {
    for (IndexRun& run : runs) run = {std::min<int64_t>(run.start, 0), 0, run.count};
  }
  ABSL_ASSIGN_OR_RETURN(const Operand is_inside,
                        SelectOf(context, one, std::move(select), "/inside"));
  return context.SetOutput(
      ElementwiseOf(context, {Function::kWhere}, {is_inside, zeros, context.input(2)}));
}

absl::Status BuildPad(NodeContext& context) {
  const Node& node = context.node;
  const Operand src = context.input(0);
  const size_t rank = src.dims.size();
  ABSL_ASSIGN_OR_RETURN(const std::string mode, node.String("mode", "constant"));
  const bool wraps = mode == "wrap" && node.opset() >= 19;
  if (mode != "constant" && mode != "reflect" && mode != "edge" && !wraps)
    return node.Invalid("mode '", mode.substr(0, 200), "'");
  ABSL_ASSIGN_OR_RETURN(const PadArgs args, ReadArgs(context, rank));
  Select select = WholeOf(rank);
  select.fill = args.value;
  for (size_t d = 0; d < rank; ++d) {
    ABSL_ASSIGN_OR_RETURN(select.from[d],
                          PadRuns(node, mode, args.pads[d], args.pads[rank + d], src.dims[d]));
  }
  if (args.computes_value && mode == "constant") {
    ABSL_ASSIGN_OR_RETURN(const Operand zeros, SelectOf(context, src, select, "/zeros"));
    return FillByInput(context, zeros, std::move(select));
  }
  return context.SetOutput(SelectOf(context, src, std::move(select)));
}

// Crops or pads with zeros, as much on either side; what is odd is cropped, or added, at the end.
absl::Status BuildCenterCropPad(NodeContext& context) {
  const Node& node = context.node;
  const Operand& src = context.input(0);
  const int64_t rank = static_cast<int64_t>(src.dims.size());
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr shape, context.Ints(1));
  std::vector<int64_t> all;
  for (int64_t d = 0; d < rank; ++d) all.push_back(d);
  ABSL_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, node.Ints("axes", all));
  ABSL_ASSIGN_OR_RETURN(const std::vector<int> distinct, DistinctAxes(node, axes, rank));
  if (shape->ints.size() != axes.size())
    return node.Invalid(shape->ints.size(), " sizes for ", axes.size(), " axes");
  Select select = WholeOf(src.dims.size());
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t size = src.dims[distinct[i]], wanted = shape->ints[i];
    if (wanted < 1 || wanted > kLargestPad) return node.Invalid("a size of ", wanted);
    IndexRuns& runs = select.from[distinct[i]];
    const int64_t left = wanted > size ? (wanted - size) / 2 : 0;
    if (left > 0) runs.push_back({-1, 0, left});
    runs.push_back({wanted < size ? (size - wanted) / 2 : 0, 1, std::min(size, wanted)});
    if (wanted > size + left) runs.push_back({-1, 0, wanted - size - left});
  }
  return context.SetOutput(SelectOf(context, src, std::move(select)));
}

}  // namespace

TILEWIRE_OPERATORS(Pad) = {
    {"CenterCropPad", 18, 2, 2, "axes", BuildCenterCropPad, Folds::kInMemory, LikeFirstInput,
     Inputs({1})},
    TakesSmall({"Pad", 1, 1, 4, "mode paddings pads value", BuildPad, Folds::kInMemory,
                LikeFirstInput, Inputs({1, 3})}),
};

}  // namespace tilewire::reader
