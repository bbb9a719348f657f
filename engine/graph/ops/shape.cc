// SPDX-License-Identifier: Apache-2.0
//
// Shape arithmetic. By the time a network is specialised every shape is known, so these give
// constants; on tensors that are computed at run time only Shape (which needs no value) and Cast to
// f32 work.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/ops.h"

namespace tilewire::graph {
namespace {

// One axis of a Slice, normalised to [0, size].
struct Range {
  int64_t start = 0, end = 0, step = 1;
};

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
  for (size_t i = 0; args.axes.empty() && i < args.starts.size(); ++i)
    args.axes.push_back(static_cast<int64_t>(i));
  if (args.steps.empty()) args.steps.assign(args.starts.size(), 1);
  const size_t count = args.starts.size();
  if (count == 0 || args.ends.size() != count || args.axes.size() != count ||
      args.steps.size() != count) {
    return context.node.Invalid("starts, ends, axes and steps of different lengths");
  }
  return args;
}

absl::StatusOr<Range> NormalizeRange(const Node& node, int64_t start, int64_t end, int64_t step,
                                     int64_t size) {
  if (step < 1) return node.Unimplemented(absl::StrCat("step ", step));
  const auto clamp = [size](int64_t at) {
    return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size);
  };
  return Range{clamp(start), clamp(end), step};
}

}  // namespace

absl::Status LowerShape(NodeContext& context) {
  const Dims& dims = context.input(0).dims;
  const int64_t rank = static_cast<int64_t>(dims.size());
  ABSL_ASSIGN_OR_RETURN(const int64_t raw_start, context.node.Int("start", 0));
  ABSL_ASSIGN_OR_RETURN(const int64_t raw_end, context.node.Int("end", rank));
  ABSL_ASSIGN_OR_RETURN(const Range range,
                        NormalizeRange(context.node, raw_start, raw_end, 1, rank));
  std::vector<int64_t> shape;
  for (int64_t i = range.start; i < range.end; ++i) shape.push_back(dims[i]);
  const int64_t count = static_cast<int64_t>(shape.size());
  return context.SetOutput(MakeInts(context.output_name(), {count}, std::move(shape)));
}

absl::Status LowerGather(NodeContext& context) {
  const Node& node = context.node;
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr src, context.Ints(0));
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr indices, context.Ints(1));
  ABSL_ASSIGN_OR_RETURN(const int64_t axis, node.Int("axis", 0));
  if (src->dims.size() != 1 || (axis != 0 && axis != -1))
    return node.Unimplemented("only from vectors");
  std::vector<int64_t> gathered;
  for (int64_t index : indices->ints) {
    ABSL_ASSIGN_OR_RETURN(const int at, NormalizeAxis(node, index, src->ints.size()));
    gathered.push_back(src->ints[at]);
  }
  return context.SetOutput(MakeInts(context.output_name(), indices->dims, std::move(gathered)));
}

absl::Status LowerSlice(NodeContext& context) {
  const Node& node = context.node;
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr src, context.Ints(0));
  ABSL_ASSIGN_OR_RETURN(const SliceArgs args, ReadSliceArgs(context));
  if (src->dims.size() != 1 || args.axes.size() != 1) return node.Unimplemented("only of vectors");
  ABSL_RETURN_IF_ERROR(NormalizeAxis(node, args.axes[0], 1).status());
  ABSL_ASSIGN_OR_RETURN(const Range range, NormalizeRange(node, args.starts[0], args.ends[0],
                                                          args.steps[0], src->count()));
  std::vector<int64_t> sliced;
  for (int64_t i = range.start; i < range.end; i += std::min(range.step, src->count()))
    sliced.push_back(src->ints[i]);
  const int64_t count = static_cast<int64_t>(sliced.size());
  return context.SetOutput(MakeInts(context.output_name(), {count}, std::move(sliced)));
}

absl::Status LowerCast(NodeContext& context) {
  const Node& node = context.node;
  ABSL_ASSIGN_OR_RETURN(const int64_t to, node.Int("to", 0));
  const bool to_float = to == onnx::TensorProto::FLOAT || to == onnx::TensorProto::DOUBLE;
  const bool to_int = to == onnx::TensorProto::INT64 || to == onnx::TensorProto::INT32;
  const ConstantPtr& src = context.input(0).constant;
  if (src == nullptr && to == onnx::TensorProto::FLOAT) return context.SetOutput(context.input(0));
  if (src == nullptr || (!to_float && !to_int))
    return node.Unimplemented(absl::StrCat("to ONNX element type ", to));
  if (src->is_float == to_float)
    return context.SetOutput(Reshaped(*src, context.output_name(), src->dims));
  if (to_float) {
    std::vector<float> floats(src->ints.begin(), src->ints.end());
    return context.SetOutput(MakeFloats(context.output_name(), src->dims, std::move(floats)));
  }
  std::vector<int64_t> ints;
  for (float value : src->floats) {
    if (!(std::abs(value) < 9.2e18f)) return node.Invalid("a number beyond the integers");
    ints.push_back(static_cast<int64_t>(value));
  }
  return context.SetOutput(MakeInts(context.output_name(), src->dims, std::move(ints)));
}

}  // namespace tilewire::graph
