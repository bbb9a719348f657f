// SPDX-License-Identifier: Apache-2.0
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/ops.h"
#include "engine/graph/ops/window.h"

namespace tilewire::graph {
namespace {

absl::StatusOr<Dims> ReadKernel(const Node& node, const Dims& src) {
  if (src.size() < 3 || src.size() > 5) {
    return node.Invalid(
        absl::StrCat("input ", DimsToString(src), " has no 1 to 3 spatial dimensions"));
  }
  ABSL_ASSIGN_OR_RETURN(const std::vector<int64_t> kernel, node.Ints("kernel_shape", {}));
  if (kernel.size() != src.size() - 2)
    return node.Invalid("kernel_shape does not fit the input's rank");
  for (int64_t size : kernel) {
    if (size < 1 || size > INT32_MAX)
      return node.Invalid(absl::StrCat("kernel_shape ", size, " is out of range"));
  }
  return Dims(kernel.begin(), kernel.end());
}

// A window must see at least one element, so no side may be padded by a whole window.
absl::StatusOr<Window> ReadPoolingWindow(const Node& node, const Dims& src) {
  ABSL_ASSIGN_OR_RETURN(Dims kernel, ReadKernel(node, src));
  ABSL_ASSIGN_OR_RETURN(const int64_t ceil_mode, node.Int("ceil_mode", 0));
  ABSL_ASSIGN_OR_RETURN(Window window, ReadWindow(node, src, std::move(kernel), ceil_mode != 0));
  for (size_t i = 0; i < window.kernel.size(); ++i) {
    if (window.dilations[i] != 1) return node.Unimplemented("dilations other than 1");
    if (window.padding_left[i] >= window.kernel[i] || window.padding_right[i] >= window.kernel[i]) {
      return node.Invalid("padding is not smaller than the window");
    }
  }
  return window;
}

absl::Status FinishPooling(NodeContext& context, Pooling::Algorithm algorithm,
                           const Window& window) {
  ABSL_ASSIGN_OR_RETURN(const ValueId src, context.Runtime(0));
  const Dims& dims = context.input(0).dims;
  Pooling pooling{algorithm, window.kernel, window.strides, window.padding_left,
                  window.padding_right};
  Dims dst = {dims[0], dims[1]};
  for (size_t i = 0; i < window.dst.size(); ++i) {
    pooling.padding_right[i] += window.ceil_extension[i];
    dst.push_back(window.dst[i]);
  }
  return context.Finish(std::move(pooling), {src}, std::move(dst));
}

}  // namespace

absl::StatusOr<ValueId> EmitGlobalPooling(NodeContext& context, Pooling::Algorithm algorithm,
                                          absl::string_view suffix) {
  ABSL_ASSIGN_OR_RETURN(const ValueId src, context.Runtime(0));
  const Dims& dims = context.input(0).dims;
  if (dims.size() < 3 || dims.size() > 5) {
    return context.node.Invalid(
        absl::StrCat("input ", DimsToString(dims), " has no 1 to 3 spatial dimensions"));
  }
  const size_t rank = dims.size() - 2;
  Pooling pooling{algorithm, Dims(dims.begin() + 2, dims.end()), Dims(rank, 1), Dims(rank, 0),
                  Dims(rank, 0)};
  Dims dst(dims.size(), 1);
  dst[0] = dims[0];
  dst[1] = dims[1];
  return context.Emit(std::move(pooling), {src}, std::move(dst), suffix);
}

absl::Status LowerMaxPool(NodeContext& context) {
  ABSL_ASSIGN_OR_RETURN(const Window window,
                        ReadPoolingWindow(context.node, context.input(0).dims));
  return FinishPooling(context, Pooling::Algorithm::kMax, window);
}

absl::Status LowerAveragePool(NodeContext& context) {
  const Node& node = context.node;
  ABSL_ASSIGN_OR_RETURN(const Window window, ReadPoolingWindow(node, context.input(0).dims));
  ABSL_ASSIGN_OR_RETURN(const int64_t include, node.Int("count_include_pad", 0));
  bool padded = false, extended = false;
  for (size_t i = 0; i < window.kernel.size(); ++i) {
    padded |= window.padding_left[i] > 0 || window.padding_right[i] > 0;
    extended |= window.ceil_extension[i] > 0;
  }
  // What ceil_mode adds never counts, what padding adds may: without padding only the elements
  // themselves count.
  if (include == 0 || !padded)
    return FinishPooling(context, Pooling::Algorithm::kAvgExcludePadding, window);
  if (extended)
    return node.Unimplemented("ceil_mode that adds a window, together with counted padding");
  return FinishPooling(context, Pooling::Algorithm::kAvgIncludePadding, window);
}

absl::Status LowerGlobalAveragePool(NodeContext& context) {
  ABSL_ASSIGN_OR_RETURN(const ValueId dst,
                        EmitGlobalPooling(context, Pooling::Algorithm::kAvgExcludePadding));
  return context.SetOutput(dst);
}

absl::Status LowerGlobalMaxPool(NodeContext& context) {
  ABSL_ASSIGN_OR_RETURN(const ValueId dst, EmitGlobalPooling(context, Pooling::Algorithm::kMax));
  return context.SetOutput(dst);
}

}  // namespace tilewire::graph
