// SPDX-License-Identifier: Apache-2.0
//
// Operators that are written down as other operators. The text names inputs and outputs of the node
// and what leads from one to the other, as in
//
//   x, skip, scale -> y:
//   sum = Add(x, skip);
//   y = LayerNormalization(sum, scale, axis=-1, epsilon=@epsilon)
//
// where `@epsilon` is the node's attribute, absent where the node does not have it; `_` stands for
// an input that is left out. An operator of ONNX Runtime bears its domain, com.microsoft.Attention.
// Values of attributes are integers, floats with a point or an exponent, words in single quotes,
// and integers in brackets.
#ifndef ENGINE_ONNX_OPS_COMPOSITION_H_
#define ENGINE_ONNX_OPS_COMPOSITION_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/onnx/ops/op_row.h"
#include "protos/onnx_subset.pb.h"

namespace tilewire::reader {

// The row of an operator whose text `compose` writes.
constexpr OpRow Composed(absl::string_view name, int since, int min_inputs, int max_inputs,
                         absl::string_view attributes, Compose compose) {
  return {name,    since,         min_inputs,     max_inputs,     attributes,
          nullptr, Folds::kNever, LikeFirstInput, /*deciding=*/0, compose};
}

// The text as a function with these attributes (names with blanks between), of opset 25 of the
// default domain. kInternal: it is malformed.
absl::StatusOr<onnx::FunctionProto> ReadComposition(absl::string_view text,
                                                    absl::string_view attributes);

// "name=@name, ..." for each name of a list with blanks between.
std::string PassedOn(absl::string_view attributes);
// `number` as the value of an attribute, and the statement "name = Constant(...)" of it.
std::string NumberText(double number);
std::string ConstantText(absl::string_view name, double number);

}  // namespace tilewire::reader

#endif  // ENGINE_ONNX_OPS_COMPOSITION_H_
