// SPDX-License-Identifier: Apache-2.0
//
// LpPool: the root of the sum of powers of each window, which is the mean times the elements of the
// window. Padding counts as zeros.
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/onnx/ops/composition.h"
#include "engine/onnx/ops/ops.h"

namespace tilewire::reader {
namespace {

constexpr char kWindowOfLpPool[] = "auto_pad dilations kernel_shape pads strides";

absl::StatusOr<std::string> ComposeLpPool(const Node& node) {
  ABSL_ASSIGN_OR_RETURN(const int64_t p, ReadPower(node));
  ABSL_ASSIGN_OR_RETURN(const int64_t ceil_mode, node.Int("ceil_mode", 0));
  ABSL_ASSIGN_OR_RETURN(const std::vector<int64_t> kernel, node.Ints("kernel_shape", {}));
  if (p < 1) return node.Invalid("p ", p);
  if (ceil_mode != 0) return node.Unimplemented("ceil_mode");
  for (const absl::string_view name : {"ceil_mode", "dilations"}) {
    if (node.opset() < 18 && node.HasAttribute(name))
      return node.Invalid(name, " exists from opset 18 on");
  }
  double elements = 1;
  for (int64_t size : kernel) elements *= static_cast<double>(size);
  std::string text = "x -> y: positive = Abs(x);";
  if (p == 1) {
    text += "power = Identity(positive);";
  } else if (p == 2) {
    text += "power = Mul(x, x);";
  } else {
    absl::StrAppend(&text, ConstantText("p", static_cast<double>(p)), "power = Pow(positive, p);");
  }
  absl::StrAppend(&text, "mean = AveragePool(power, count_include_pad=1, ",
                  PassedOn(kWindowOfLpPool), ");", ConstantText("elements", elements));
  if (p == 1) return text + "y = Mul(mean, elements)";
  text += "sum = Mul(mean, elements);";
  if (p == 2) return text + "y = Sqrt(sum)";
  return absl::StrCat(text, ConstantText("root", 1.0 / p), "y = Pow(sum, root)");
}

}  // namespace

TILEWIRE_OPERATORS(LpPool) = {
    Composed("LpPool", 2, 1, 1, "auto_pad ceil_mode dilations kernel_shape p pads strides",
             ComposeLpPool),
};

}  // namespace tilewire::reader
