// SPDX-License-Identifier: Apache-2.0
//
// Sparse tensors of a file: the elements that are not zero, and where they are. They become dense
// when they are read. Pure functions.
#ifndef ENGINE_ONNX_FILE_SPARSE_TENSOR_H_
#define ENGINE_ONNX_FILE_SPARSE_TENSOR_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "engine/network/constant.h"

namespace tilewire::reader {

// Elements of all sparse initializers of a file together, and of one in a node, zeros included: few
// bytes stand for them.
inline constexpr int64_t kMostSparseElements = int64_t{1} << 25;
inline constexpr int64_t kMostSparseInNode = int64_t{1} << 20;

// The tensor of `dims` that holds `values` [N], in their type and by their name, at `indices`, and
// zeros elsewhere. Indices are those in row-major order, [N], or one for each dimension, [N, rank];
// in both forms they ascend. `room` is lowered by the elements of the result.
//   kInvalidArgument    dims, values and indices that do not fit each other; indices that are
//                       outside the dims or do not ascend
//   kResourceExhausted  more elements than `room`
absl::StatusOr<network::ConstantPtr> MakeDense(const network::ConstantPtr& values,
                                               const network::ConstantPtr& indices,
                                               const Dims& dims, int64_t* room);

}  // namespace tilewire::reader

#endif  // ENGINE_ONNX_FILE_SPARSE_TENSOR_H_
