// SPDX-License-Identifier: Apache-2.0
//
// A tensor of the file while its nodes are visited.
#ifndef ENGINE_ONNX_OPERAND_H_
#define ENGINE_ONNX_OPERAND_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "engine/network/constant.h"
#include "engine/network/network.h"
#include "engine/onnx/file/model_graph.h"

namespace tilewire::reader {

using network::kNoValue;
using network::ValueId;

// In elements. Folding is for shapes and the like; a file that needs more is refused.
inline constexpr int64_t kLargestFold = int64_t{1} << 24;

// The knowledge about a tensor during the visit: its value, or that it is computed at run time.
struct Operand {
  ConstantPtr constant;      // not null: folded
  ValueId value = kNoValue;  // else: this value of the network
  Dims dims;
  bool is_integer = false;   // of a value: integers or truth values, whatever type holds them
  bool is_of_model = false;  // of a constant: known at load, the same in every specialization
  std::shared_ptr<const std::vector<Operand>> sequence;  // of a sequence: its tensors; else null
  bool defined() const { return constant != nullptr || value != kNoValue || sequence != nullptr; }
};

inline Operand OperandOf(ConstantPtr constant) {
  Dims dims = constant->dims;
  return {std::move(constant), kNoValue, std::move(dims)};
}

inline bool IsInteger(const Operand& operand) {
  return operand.constant != nullptr ? !operand.constant->is_float : operand.is_integer;
}

// A value of f32 for real numbers of the file, whose elements a store keeps.
ValueId AddParameter(const ConstantPtr& constant, bool learns, network::Network* network);

}  // namespace tilewire::reader

#endif  // ENGINE_ONNX_OPERAND_H_
