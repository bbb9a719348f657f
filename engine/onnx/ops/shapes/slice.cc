// SPDX-License-Identifier: Apache-2.0
//
// Slice and Split: ranges of indices.
#include <algorithm>
#include <numeric>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/onnx/ops/ops.h"
#include "engine/onnx/ops/shapes/moves.h"

namespace tilewire::reader {
namespace {

struct SliceArgs {
  std::vector<int64_t> starts, ends, axes, steps;
};

// Attributes before opset 10, inputs from then on.
absl::StatusOr<SliceArgs> ReadSliceArgs(const NodeContext& context) {
  SliceArgs args;
  if (context.node.opset() < 10) {
    ABSL_ASSIGN_OR_RETURN(args.starts, context.node.Ints("starts", {}));
    ABSL_ASSIGN_OR_RETURN(args.ends, context.node.Ints("ends", {}));
    ABSL_ASSIGN_OR_RETURN(args.axes, context.node.Ints("axes", {}));
  } else {
    std::vector<int64_t>* const slots[] = {&args.starts, &args.ends, &args.axes, &args.steps};
    for (int i = 1; i <= 4; ++i) {
      if (!context.Has(i)) continue;
      ABSL_ASSIGN_OR_RETURN(const ConstantPtr values, context.Ints(i));
      *slots[i - 1] = values->ints;
    }
  }
  if (args.axes.empty()) {
    args.axes.resize(args.starts.size());
    std::iota(args.axes.begin(), args.axes.end(), 0);
  }
  if (args.steps.empty()) args.steps.assign(args.starts.size(), 1);
  const size_t count = args.starts.size();
  if (count == 0 || args.ends.size() != count || args.axes.size() != count ||
      args.steps.size() != count) {
    return context.node.Invalid("starts, ends, axes and steps of different lengths");
  }
  return args;
}

// From `start` up to `end`, exclusive. Negative ones count from the end; both are clamped.
absl::StatusOr<IndexRun> RunOf(const Node& node, int64_t start, int64_t end, int64_t step,
                               int64_t size) {
  if (step == 0 || step == INT64_MIN) return node.Invalid("step ", step);
  const auto clamp = [size](int64_t at, int64_t low, int64_t high) {
    return std::clamp<int64_t>(at < 0 ? at + size : at, low, high);
  };
  if (step > 0) {
    const int64_t first = clamp(start, 0, size), last = clamp(end, 0, size);
    if (first >= last) return IndexRun{0, 1, 0};
    return IndexRun{first, step, (last - first - 1) / step + 1};
  }
  const int64_t first = clamp(start, -1, size - 1), last = clamp(end, -1, size - 1);
  if (first <= last) return IndexRun{0, 1, 0};
  return IndexRun{first, step, (first - last - 1) / -step + 1};
}

// Without `split`: parts of one size. From opset 18 on, where num_outputs says how many there are,
// the last one may be smaller.
absl::StatusOr<std::vector<int64_t>> EqualParts(const Node& node, int64_t size) {
  const int64_t outputs = static_cast<int64_t>(node.outputs.size());
  if (node.opset() < 18) {
    if (size % outputs != 0) return node.Invalid(size, " does not split into ", outputs, " parts");
    return std::vector<int64_t>(outputs, size / outputs);
  }
  ABSL_ASSIGN_OR_RETURN(const int64_t count, node.Int("num_outputs", 0));
  if (count != outputs) return node.Invalid("num_outputs ", count, " of ", outputs, " outputs");
  const int64_t part = (size + outputs - 1) / outputs;
  std::vector<int64_t> parts(outputs, part);
  parts.back() = size - part * (outputs - 1);
  if (parts.back() < 0) return node.Invalid(size, " does not split into ", outputs, " parts");
  return parts;
}

// The attribute `split` before opset 13, then an optional input; equal parts without it.
absl::StatusOr<std::vector<int64_t>> ReadSplit(const NodeContext& context, int64_t size) {
  std::vector<int64_t> parts;
  const int64_t outputs = static_cast<int64_t>(context.node.outputs.size());
  const int64_t opset = context.node.opset();
  if (opset < 13 && (opset > 1 || !context.Has(1))) {
    ABSL_ASSIGN_OR_RETURN(parts, context.node.Ints("split", {}));
  } else if (context.Has(1)) {
    ABSL_ASSIGN_OR_RETURN(const ConstantPtr split, context.Ints(1));
    parts = split->ints;
  }
  if (context.node.HasAttribute("num_outputs") && (context.node.opset() < 18 || !parts.empty()))
    return context.node.Invalid("num_outputs beside split, or before opset 18");
  if (parts.empty()) {
    ABSL_ASSIGN_OR_RETURN(parts, EqualParts(context.node, size));
  }
  int64_t sum = 0;
  for (int64_t part : parts) {
    if (part < 0 || part > size - sum) return context.node.Invalid("split does not fit the axis");
    sum += part;
  }
  if (sum != size || static_cast<int64_t>(parts.size()) != outputs)
    return context.node.Invalid("split does not fit the axis or the outputs");
  return parts;
}

absl::Status BuildSlice(NodeContext& context) {
  const Node& node = context.node;
  const Operand src = context.input(0);
  ABSL_ASSIGN_OR_RETURN(const SliceArgs args, ReadSliceArgs(context));
  Select select = WholeOf(src.dims.size());
  ABSL_ASSIGN_OR_RETURN(const std::vector<int> axes,
                        DistinctAxes(node, args.axes, src.dims.size()));
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t size = src.dims[axes[i]];
    ABSL_ASSIGN_OR_RETURN(const IndexRun run,
                          RunOf(node, args.starts[i], args.ends[i], args.steps[i], size));
    select.from[axes[i]] = {run};
  }
  return context.SetOutput(SelectOf(context, src, std::move(select)));
}

absl::Status BuildSplit(NodeContext& context) {
  const Operand src = context.input(0);
  ABSL_ASSIGN_OR_RETURN(const int axis, ReadAxis(context.node, 0, src.dims.size()));
  ABSL_ASSIGN_OR_RETURN(const std::vector<int64_t> parts, ReadSplit(context, src.dims[axis]));
  int64_t before = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const IndexRun run = {std::exchange(before, before + parts[i]), 1, parts[i]};
    if (context.node.outputs[i] == kNoTensor) continue;
    ABSL_ASSIGN_OR_RETURN(const Operand part, SelectAlong(context, src, axis, {run}));
    ABSL_RETURN_IF_ERROR(context.SetOutput(part, static_cast<int>(i)));
  }
  return absl::OkStatus();
}

}  // namespace

TILEWIRE_OPERATORS(Slice) = {
    TrainsFirst({"Slice", 1, 1, 5, "axes ends starts", BuildSlice, Folds::kInMemory, LikeFirstInput,
                 Inputs({1, 2, 3, 4})}),
    TrainsFirst({"Split", 1, 1, 2, "axis num_outputs split", BuildSplit, Folds::kInMemory,
                 LikeFirstInput, Inputs({1})}),
};

}  // namespace tilewire::reader
