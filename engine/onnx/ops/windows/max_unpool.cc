// SPDX-License-Identifier: Apache-2.0
//
// MaxUnpool: each element goes to where a MaxPool took it from, zeros to all other places. Indices
// are those of the whole tensor that was pooled, whose spatial sizes are
//
//   (size - 1) * stride + kernel - pads
//
// and which an output_shape extends with zeros at its end, or cuts there. Written as a
// ScatterElements by computed indices.
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/status_macros.h"
#include "engine/onnx/ops/composition.h"
#include "engine/onnx/ops/ops.h"

namespace tilewire::reader {
namespace {

// The statement "name = Constant(...)" of a list of integers.
std::string ListText(absl::string_view name, const std::vector<int64_t>& numbers) {
  return absl::StrCat(name, " = Constant(value_ints=[", absl::StrJoin(numbers, ", "), "]);");
}

absl::StatusOr<std::string> ComposeMaxUnpool(const Node& node) {
  ABSL_ASSIGN_OR_RETURN(const std::vector<int64_t> kernel, node.Ints("kernel_shape", {}));
  const size_t rank = kernel.size();
  ABSL_ASSIGN_OR_RETURN(const std::vector<int64_t> strides,
                        node.Ints("strides", std::vector<int64_t>(rank, 1)));
  ABSL_ASSIGN_OR_RETURN(const std::vector<int64_t> pads,
                        node.Ints("pads", std::vector<int64_t>(2 * rank, 0)));
  const auto in_range = [](const std::vector<int64_t>& numbers, int64_t least) {
    return absl::c_all_of(numbers, [least](int64_t n) { return n >= least && n < 1 << 30; });
  };
  if (rank < 1 || strides.size() != rank || pads.size() != 2 * rank || !in_range(kernel, 1) ||
      !in_range(strides, 1) || !in_range(pads, 0))
    return node.Invalid("kernel_shape, strides and pads do not fit each other");
  std::vector<int64_t> added;
  for (size_t d = 0; d < rank; ++d)
    added.push_back(kernel[d] - strides[d] - pads[d] - pads[rank + d]);
  std::string text = absl::StrCat(
      "x, indices, shape -> y:", ListText("strides", strides), ListText("added", added),
      ListText("zero", {0}), ListText("two", {2}), ListText("end", {INT32_MAX}),
      ListText("flat", {-1}),
      "dims = Shape(x); images = Slice(dims, zero, two); spatial = Slice(dims, two, end);"
      "steps = Mul(spatial, strides); sizes = Add(steps, added);"
      "pooled = Concat(images, sizes, axis=0);"
      "count = ReduceProd(pooled, keepdims=1); nothing = ConstantOfShape(count);"
      "elements = Reshape(x, flat); places = Reshape(indices, flat);"
      "unpooled = ScatterElements(nothing, places, elements);");
  if (!node.HasInput(2)) return text + "y = Reshape(unpooled, pooled)";
  return absl::StrCat(text, ListText("none", std::vector<int64_t>(rank + 2, 0)),
                      "image = Reshape(unpooled, pooled); more = Sub(shape, pooled);"
                      "widths = Concat(none, more, axis=0); y = Pad(image, widths)");
}

}  // namespace

TILEWIRE_OPERATORS(MaxUnpool) = {
    Composed("MaxUnpool", 9, 2, 3, "kernel_shape pads strides", ComposeMaxUnpool),
};

}  // namespace tilewire::reader
