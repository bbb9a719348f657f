// SPDX-License-Identifier: Apache-2.0
//
// The matrices of a matmul and how its batch is walked. Pure functions.
#ifndef ENGINE_PRIMITIVES_MATMUL_BATCHES_H_
#define ENGINE_PRIMITIVES_MATMUL_BATCHES_H_

#include <cstdint>

#include "engine/primitives/matmul/matmul.h"

namespace tilewire::matmul {

// The matrices and batch of a product.
struct Shape {
  int64_t m, n, k;
  int64_t batch = 1, weights_batch = 1;  // products, and different weights
};
Shape ShapeOf(const MatmulDesc& desc);

// The last stride but `back`; 0 where the dimension has size 1 and its stride means nothing.
int64_t StrideOf(const MemoryDesc& md, int back);

// Elements from the first matrix of a tensor to that of product `b`, counted in row-major order of
// dst's batch dimensions.
int64_t BatchOffset(const MatmulDesc& desc, const MemoryDesc& md, int64_t b);

// The different matrices of a tensor; which of them product `b` takes, counted in row-major order
// of their batch dimensions; and the elements from offset0 to it.
int64_t MatricesOf(const MemoryDesc& md);
int64_t MatrixOf(const MatmulDesc& desc, const MemoryDesc& md, int64_t b);
int64_t MatrixOffset(const MemoryDesc& md, int64_t index);

// The same of weights.
inline int64_t WeightsOf(const MatmulDesc& desc, int64_t b) {
  return MatrixOf(desc, desc.weights, b);
}
inline int64_t WeightsOffset(const MatmulDesc& desc, int64_t index) {
  return MatrixOffset(desc.weights, index);
}

}  // namespace tilewire::matmul

#endif  // ENGINE_PRIMITIVES_MATMUL_BATCHES_H_
