// SPDX-License-Identifier: Apache-2.0
//
// Operators of ONNX that are one function of one number (the second half of functions.inc): the
// function, and the attributes that its parameters come from. Constant data.
#ifndef ENGINE_FUNCTIONS_ONNX_FUNCTIONS_H_
#define ENGINE_FUNCTIONS_ONNX_FUNCTIONS_H_

#include "absl/strings/string_view.h"
#include "engine/functions/function.h"

namespace tilewire::functions {

struct OnnxFunction {
  enum Trait : uint32_t {
    kFolds = 1 << 0,    // constants are computed when the model is loaded; else it may be fused
    kOfReals = 1 << 1,  // it takes no integers
    kThroughReals = 1 << 2,  // integers are computed in f64, and the result is cut
    kInCells = 1 << 3,       // LSTM, GRU and RNN may name it among their activations
    kOnlyInCells = 1 << 4,   // the same, and this table makes no operator of it
  };
  absl::string_view op;
  int since;  // the first opset that has it
  Function function;
  uint32_t traits;
  absl::string_view attributes = "";  // of alpha, or of alpha and beta, with a blank between
  float alpha = 0, beta = 0;          // where the node lacks the attribute, or there is none

  // Empty where the parameter has no attribute.
  absl::string_view AlphaName() const { return attributes.substr(0, attributes.find(' ')); }
  absl::string_view BetaName() const {
    const size_t blank = attributes.find(' ');
    return blank == absl::string_view::npos ? "" : attributes.substr(blank + 1);
  }
  constexpr bool Is(uint32_t trait) const { return (traits & trait) != 0; }
  constexpr Elementwise WithDefaults() const { return {function, alpha, beta}; }
};

namespace onnx_traits {
using enum OnnxFunction::Trait;
inline constexpr OnnxFunction kFunctions[] = {
#define TILEWIRE_ONNX(op, since, function, traits, ...) \
  {op, since, Function::k##function, traits __VA_OPT__(, ) __VA_ARGS__},
#include "engine/functions/functions.inc"
};
}  // namespace onnx_traits

inline constexpr auto& kOnnxFunctions = onnx_traits::kFunctions;

}  // namespace tilewire::functions

#endif  // ENGINE_FUNCTIONS_ONNX_FUNCTIONS_H_
