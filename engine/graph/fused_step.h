// SPDX-License-Identifier: Apache-2.0
//
// The steps that passes fuse into a convolution or inner product, to run after its own formula.
#ifndef ENGINE_GRAPH_FUSED_STEP_H_
#define ENGINE_GRAPH_FUSED_STEP_H_

#include <optional>
#include <string>

#include "engine/graph/quantization_params.h"
#include "engine/jit/eltwise.h"
#include "engine/memory/dims.h"

namespace tilewire::graph {

using ValueId = int;  // index into Network::values
constexpr ValueId kNoValue = -1;

// Applied in this order to the result of an operation; `kSum` adds another value, elementwise.
struct FusedStep {
  enum class Kind { kActivation, kSum } kind = Kind::kActivation;
  jit::EltwiseOp activation;
  ValueId addend = kNoValue;
  std::optional<QuantizationParams> quantization;  // of an addend of integers
};

// The maximum of each 2x2 window of two spatial dimensions, stride 2, no padding.
struct FusedPooling {
  std::string name;  // of its node
  Dims src;          // of what it reads
};

}  // namespace tilewire::graph

#endif  // ENGINE_GRAPH_FUSED_STEP_H_
