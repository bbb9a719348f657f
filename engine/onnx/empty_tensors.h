// SPDX-License-Identifier: Apache-2.0
//
// Tensors without elements: a dimension is 0. Nothing has to be computed for them, and no primitive
// takes them, so a network keeps none of them but those that come in or go out.
#ifndef ENGINE_ONNX_EMPTY_TENSORS_H_
#define ENGINE_ONNX_EMPTY_TENSORS_H_

#include "absl/status/status.h"
#include "engine/network/network.h"

namespace tilewire::reader {

bool IsEmpty(const Dims& dims);

// Whether the operation may give a tensor without elements though all its sources have some.
bool MayDropAll(const network::OperationParams& params);

// Removes the operations whose results have no elements. Of those that read such a tensor and give
// elements all the same, a concatenation leaves it out, and the others give what the formula says
// of nothing: a sum is 0, a product 1, the largest number -infinity, a selection its fill. Outputs
// without elements become literals.
//   kInvalidArgument  an operation whose formula says nothing of an empty source: a mean, an index
//                     of the largest element, a pooling
absl::Status ElideEmpty(network::Network* network);

}  // namespace tilewire::reader

#endif  // ENGINE_ONNX_EMPTY_TENSORS_H_
