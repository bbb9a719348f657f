// SPDX-License-Identifier: Apache-2.0
#include "engine/onnx/ops/op_row.h"

namespace tilewire::reader {

DataType LikeFirstInput(const TypedNode& node, int) { return node.input(0); }

DataType LikeSecondInput(const TypedNode& node, int) { return node.input(1); }

DataType LikeThirdInput(const TypedNode& node, int) { return node.input(2); }

DataType TruthValues(const TypedNode&, int) { return DataType::kBool; }

DataType Indices(const TypedNode&, int) { return DataType::kS64; }

DataType IndicesAfterFirst(const TypedNode& node, int i) {
  return i == 0 ? node.input(0) : DataType::kS64;
}

}  // namespace tilewire::reader
