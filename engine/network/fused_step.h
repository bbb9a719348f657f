// SPDX-License-Identifier: Apache-2.0
//
// Steps that a convolution or inner product applies to its result, after its own formula.
#ifndef ENGINE_NETWORK_FUSED_STEP_H_
#define ENGINE_NETWORK_FUSED_STEP_H_

#include <optional>
#include <string>
#include <vector>

#include "engine/functions/function.h"
#include "engine/memory/dims.h"
#include "engine/network/quantization_params.h"

namespace tilewire::network {

using ValueId = int;  // index into Network::values
constexpr ValueId kNoValue = -1;

// Steps are applied in order to the result of an operation; `kSum` adds another value, elementwise,
// and `kPRelu` multiplies negative numbers by the slope of their output channel.
struct FusedStep {
  enum class Kind { kActivation, kSum, kPRelu } kind = Kind::kActivation;
  functions::EltwiseOp activation;
  ValueId addend = kNoValue;
  std::optional<QuantizationParams> quantization;  // of an addend of integers
  std::vector<float> slopes;                       // finite numbers; only a convolution of f32
};

// The maximum of each 2x2 window of two spatial dimensions, stride 2, no padding.
struct FusedPooling {
  std::string name;  // of its node
  Dims src;          // of its source
};

}  // namespace tilewire::network

#endif  // ENGINE_NETWORK_FUSED_STEP_H_
