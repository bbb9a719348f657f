// SPDX-License-Identifier: Apache-2.0
#include "engine/onnx/ops/op_row.h"

namespace tilewire::reader {

ElementType LikeFirstInput(const TypedNode& node, int) { return node.input(0); }

ElementType LikeSecondInput(const TypedNode& node, int) { return node.input(1); }

ElementType LikeThirdInput(const TypedNode& node, int) { return node.input(2); }

ElementType TruthValues(const TypedNode&, int) { return DataType::kBool; }

ElementType Indices(const TypedNode&, int) { return DataType::kS64; }

ElementType IndicesAfterFirst(const TypedNode& node, int i) {
  return i == 0 ? node.input(0) : ElementType(DataType::kS64);
}

}  // namespace tilewire::reader
