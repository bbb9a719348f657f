// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/onnx/ops/arithmetic/element_functions.h"
#include "engine/onnx/ops/ops.h"
#include "engine/onnx/ops/shapes/moves.h"
#include "engine/onnx/ops/windows/window.h"

namespace tilewire::reader {

using network::MaxWindow;
using network::Pooling;
namespace {

absl::StatusOr<Dims> ReadKernel(const Node& node, const Dims& src) {
  if (src.size() < 3 || src.size() > 5) {
    return node.Invalid("input ", DimsToString(src), " has no 1 to 3 spatial dimensions");
  }
  ABSL_ASSIGN_OR_RETURN(const std::vector<int64_t> kernel, node.Ints("kernel_shape", {}));
  if (kernel.size() != src.size() - 2)
    return node.Invalid("kernel_shape does not fit the input's rank");
  for (int64_t size : kernel) {
    if (size < 1 || size > INT32_MAX)
      return node.Invalid("kernel_shape ", size, " is out of range");
  }
  return Dims(kernel.begin(), kernel.end());
}

bool IsDilated(const Window& window) {
  for (size_t i = 0; i < window.kernel.size(); ++i) {
    if (window.dilations[i] != 1 && window.kernel[i] != 1) return true;
  }
  return false;
}

// A window must see at least one element.
absl::StatusOr<Window> ReadPoolingWindow(const Node& node, const Dims& src) {
  ABSL_ASSIGN_OR_RETURN(Dims kernel, ReadKernel(node, src));
  ABSL_ASSIGN_OR_RETURN(const int64_t ceil_mode, node.Int("ceil_mode", 0));
  ABSL_ASSIGN_OR_RETURN(Window window, ReadWindow(node, src, std::move(kernel), ceil_mode != 0));
  for (size_t i = 0; i < window.kernel.size(); ++i) {
    const int64_t extent = (window.kernel[i] - 1) * window.dilations[i] + 1;
    const int64_t last = (window.dst[i] - 1) * window.strides[i] - window.padding_left[i];
    if (window.padding_left[i] < extent && last < src[i + 2]) continue;
    return node.Unimplemented("windows that see padding alone: of ", extent,
                              " elements, padded by ", window.padding_left[i], " and ",
                              window.padding_right[i]);
  }
  return window;
}

// Whether CombineTaps() takes the window: its operations grow with the window, its lists with the
// result.
bool HasFewTaps(const Window& window) {
  constexpr int64_t kMostTaps = 256, kLargest = int64_t{1} << 20;
  for (size_t i = 0; i < window.kernel.size(); ++i) {
    if (window.kernel[i] > kMostTaps || window.dst[i] > kLargest) return false;
  }
  return true;
}

// Pools with a loop over each window.
absl::StatusOr<ValueId> EmitMaxWindow(NodeContext& context, const Window& window,
                                      MaxWindow::Result result, absl::string_view suffix = "") {
  ABSL_ASSIGN_OR_RETURN(const ValueId src, context.Numbers(context.input(0)));
  const Dims& dims = context.input(0).dims;
  MaxWindow greatest{result, window.kernel, window.strides, window.dilations, window.padding_left};
  for (int64_t& dilation : greatest.dilations) --dilation;
  Dims dst = {dims[0], dims[1]};
  dst.insert(dst.end(), window.dst.begin(), window.dst.end());
  return context.Emit(std::move(greatest), {src}, std::move(dst), suffix);
}

// Output 1: the indices of the maxima.
absl::Status SetIndices(NodeContext& context, const Window& window) {
  const Operand& src = context.input(0);
  ABSL_RETURN_IF_ERROR(CheckCountable(context.node, ElementCount(src.dims).value_or(INT64_MAX)));
  ABSL_ASSIGN_OR_RETURN(const int64_t by_columns, context.node.Int("storage_order", 0));
  ABSL_ASSIGN_OR_RETURN(const ValueId indices,
                        EmitMaxWindow(context, window,
                                      by_columns != 0 ? MaxWindow::Result::kColumnMajorIndex
                                                      : MaxWindow::Result::kIndex,
                                      "/indices"));
  return context.SetOutput({nullptr, indices, context.value(indices).dims}, 1);
}

// Where tap `tap` of each window lies along spatial dimension `i` of `size` elements; -1 outside.
std::vector<int64_t> TapIndices(const Window& window, size_t i, int64_t tap, int64_t size) {
  const int64_t start = tap * window.dilations[i] - window.padding_left[i];
  std::vector<int64_t> indices;
  for (int64_t o = 0; o < window.dst[i]; ++o) {
    const int64_t index = start + o * window.strides[i];
    indices.push_back(index < size ? std::max<int64_t>(index, -1) : -1);
  }
  return indices;
}

// Combines a window's taps along one dimension after the other. Each tap is a selection, with
// `fill` outside the source. `last` is the suffix of the result's name.
absl::StatusOr<Operand> CombineTaps(NodeContext& context, const Window& window,
                                    const Elementwise& function, float fill,
                                    absl::string_view last) {
  Operand result = context.input(0);
  for (size_t i = 0; i < window.kernel.size(); ++i) {
    const Operand src = result;
    for (int64_t tap = 0; tap < window.kernel[i]; ++tap) {
      Select select = WholeOf(src.dims.size());
      select.from[i + 2] = RunsOf(TapIndices(window, i, tap, src.dims[i + 2]));
      select.fill = fill;
      const std::string name = absl::StrCat("/tap", i, ".", tap);
      ABSL_ASSIGN_OR_RETURN(const Operand part, SelectOf(context, src, std::move(select), name));
      if (tap == 0) {
        result = part;
        continue;
      }
      const bool is_last = i + 1 == window.kernel.size() && tap + 1 == window.kernel[i];
      const std::string so_far = is_last ? std::string(last) : absl::StrCat("/taps", i, ".", tap);
      ABSL_ASSIGN_OR_RETURN(result, ElementwiseOf(context, function, {result, part}, so_far));
    }
  }
  return result;
}

absl::Status BuildDilatedMaxPool(NodeContext& context, const Window& window) {
  return context.SetOutput(
      CombineTaps(context, window, {Function::kMax}, -std::numeric_limits<float>::infinity(), ""));
}

// 1 / the taps that count, of each window along spatial dimension `i`: those in the source, and
// with `include_padding` those in the padding, but not in the extension by ceil_mode.
std::vector<float> Shares(const Window& window, size_t i, int64_t size, bool include_padding) {
  const int64_t left = include_padding ? window.padding_left[i] : 0;
  const int64_t right = include_padding ? window.padding_right[i] : 0;
  std::vector<float> shares;
  for (int64_t o = 0; o < window.dst[i]; ++o) {
    const int64_t start = o * window.strides[i] - window.padding_left[i];
    int64_t count = 0;
    for (int64_t tap = 0; tap < window.kernel[i]; ++tap) {
      const int64_t at = start + tap * window.dilations[i];
      count += at >= -left && at < size + right ? 1 : 0;
    }
    shares.push_back(1 / static_cast<float>(std::max<int64_t>(count, 1)));
  }
  return shares;
}

// The sum of the taps, times the shares of its position along each dimension.
absl::Status BuildDilatedAveragePool(NodeContext& context, const Window& window,
                                     bool include_padding) {
  if (!HasFewTaps(window)) return context.node.Unimplemented("dilated windows of many taps");
  const Dims src = context.input(0).dims;
  ABSL_ASSIGN_OR_RETURN(Operand result, CombineTaps(context, window, {Function::kAdd}, 0, "/sum"));
  for (size_t i = 0; i < window.kernel.size(); ++i) {
    Dims dims(src.size(), 1);
    dims[i + 2] = window.dst[i];
    const Operand shares = context.KnownFloats(absl::StrCat("/shares", i), std::move(dims),
                                               Shares(window, i, src[i + 2], include_padding));
    const bool is_last = i + 1 == window.kernel.size();
    ABSL_ASSIGN_OR_RETURN(result, ElementwiseOf(context, {Function::kMul}, {result, shares},
                                                is_last ? "" : absl::StrCat("/mean", i)));
  }
  return context.SetOutput(result);
}

// Padding counts in the average, the extension by ceil_mode does not; so the padding is written out
// as zeros around the source.
absl::Status BuildPaddedAveragePool(NodeContext& context, const Window& window) {
  const Operand src = context.input(0);
  const size_t rank = src.dims.size();
  Select select = WholeOf(rank);
  Dims dst = {src.dims[0], src.dims[1]};
  for (size_t i = 0; i + 2 < rank; ++i) {
    IndexRuns& runs = select.from[i + 2];
    if (window.padding_left[i] > 0) runs.push_back({-1, 1, window.padding_left[i]});
    runs.push_back({0, 1, src.dims[i + 2]});
    if (window.padding_right[i] > 0) runs.push_back({-1, 1, window.padding_right[i]});
    dst.push_back(window.dst[i]);
  }
  ABSL_ASSIGN_OR_RETURN(const Operand padded, SelectOf(context, src, std::move(select), "/padded"));
  ABSL_ASSIGN_OR_RETURN(const ValueId value, context.AsValue(padded));
  Pooling pooling{Pooling::Algorithm::kAvgExcludePadding, window.kernel, window.strides,
                  Dims(rank - 2, 0), window.ceil_extension};
  return context.SetOutput(context.Emit(std::move(pooling), {value}, std::move(dst)));
}

absl::Status FinishPooling(NodeContext& context, Pooling::Algorithm algorithm,
                           const Window& window) {
  const DataType type = context.TypeOf(context.input(0));
  const bool takes = type == DataType::kF32 || IsByte(type);
  ABSL_ASSIGN_OR_RETURN(const ValueId src, takes&& algorithm == Pooling::Algorithm::kMax
                                               ? context.RuntimeOfAnyType(0)
                                               : context.Runtime(0));
  const Dims& dims = context.input(0).dims;
  Pooling pooling{algorithm, window.kernel, window.strides, window.padding_left,
                  window.padding_right};
  Dims dst = {dims[0], dims[1]};
  for (size_t i = 0; i < window.dst.size(); ++i) {
    pooling.padding_right[i] += window.ceil_extension[i];
    dst.push_back(window.dst[i]);
  }
  return context.SetOutput(context.Emit(std::move(pooling), {src}, std::move(dst)));
}

}  // namespace

absl::StatusOr<ValueId> EmitGlobalPooling(NodeContext& context, Pooling::Algorithm algorithm,
                                          absl::string_view suffix) {
  ABSL_ASSIGN_OR_RETURN(const ValueId src, context.Runtime(0));
  const Dims& dims = context.input(0).dims;
  if (dims.size() < 3 || dims.size() > 5) {
    return context.node.Invalid("input ", DimsToString(dims), " has no 1 to 3 spatial dimensions");
  }
  const size_t rank = dims.size() - 2;
  Pooling pooling{algorithm, Dims(dims.begin() + 2, dims.end()), Dims(rank, 1), Dims(rank, 0),
                  Dims(rank, 0)};
  Dims dst(dims.size(), 1);
  dst[0] = dims[0];
  dst[1] = dims[1];
  return context.Emit(std::move(pooling), {src}, std::move(dst), suffix);
}

namespace {

absl::Status BuildMaxPool(NodeContext& context) {
  ABSL_ASSIGN_OR_RETURN(const Window window,
                        ReadPoolingWindow(context.node, context.input(0).dims));
  if (context.node.HasOutput(1)) ABSL_RETURN_IF_ERROR(SetIndices(context, window));
  if (!IsDilated(window)) return FinishPooling(context, Pooling::Algorithm::kMax, window);
  if (HasFewTaps(window)) return BuildDilatedMaxPool(context, window);
  return context.SetOutput(EmitMaxWindow(context, window, MaxWindow::Result::kElement));
}

absl::Status BuildAveragePool(NodeContext& context) {
  const Node& node = context.node;
  ABSL_ASSIGN_OR_RETURN(const Window window, ReadPoolingWindow(node, context.input(0).dims));
  ABSL_ASSIGN_OR_RETURN(const int64_t include, node.Int("count_include_pad", 0));
  if (node.opset() < 19 && node.HasAttribute("dilations"))
    return node.Invalid("dilations exist from opset 19 on");
  if (IsDilated(window)) return BuildDilatedAveragePool(context, window, include != 0);
  bool padded = false, extended = false;
  for (size_t i = 0; i < window.kernel.size(); ++i) {
    padded |= window.padding_left[i] > 0 || window.padding_right[i] > 0;
    extended |= window.ceil_extension[i] > 0;
  }
  // The extension by ceil_mode never counts, padding may: without padding only the elements
  // themselves count.
  if (include == 0 || !padded)
    return FinishPooling(context, Pooling::Algorithm::kAvgExcludePadding, window);
  if (extended) return BuildPaddedAveragePool(context, window);
  return FinishPooling(context, Pooling::Algorithm::kAvgIncludePadding, window);
}

absl::Status BuildGlobalAveragePool(NodeContext& context) {
  return context.SetOutput(EmitGlobalPooling(context, Pooling::Algorithm::kAvgExcludePadding));
}

absl::Status BuildGlobalMaxPool(NodeContext& context) {
  return context.SetOutput(EmitGlobalPooling(context, Pooling::Algorithm::kMax));
}

}  // namespace

TILEWIRE_OPERATORS(Pooling) = {
    OfReals({"AveragePool", 1, 1, 1,
             "auto_pad ceil_mode count_include_pad dilations kernel_shape pads strides",
             BuildAveragePool}),
    OfReals({"GlobalAveragePool", 1, 1, 1, "", BuildGlobalAveragePool}),
    OfReals({"GlobalMaxPool", 1, 1, 1, "", BuildGlobalMaxPool}),
    {"MaxPool", 1, 1, 1, "auto_pad ceil_mode dilations kernel_shape pads storage_order strides",
     BuildMaxPool, Folds::kNever, IndicesAfterFirst},
};

}  // namespace tilewire::reader
