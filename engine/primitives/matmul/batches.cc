// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/matmul/batches.h"

namespace tilewire::matmul {

Shape ShapeOf(const MatmulDesc& desc) {
  const int rank = desc.dst.rank();
  Shape shape{desc.dst.dim(rank - 2), desc.dst.dim(rank - 1), desc.src.dim(rank - 1)};
  shape.batch = MatricesOf(desc.dst);
  shape.weights_batch = MatricesOf(desc.weights);
  return shape;
}

int64_t StrideOf(const MemoryDesc& md, int back) {
  const int d = md.rank() - 1 - back;
  return md.dim(d) == 1 ? 0 : md.stride(d);
}

int64_t BatchOffset(const MatmulDesc& desc, const MemoryDesc& md, int64_t b) {
  int64_t offset = 0;
  for (int d = md.rank() - 3; d >= 0; --d) {
    if (md.dim(d) != 1) offset += b % desc.dst.dim(d) * md.stride(d);
    b /= desc.dst.dim(d);
  }
  return offset;
}

int64_t MatricesOf(const MemoryDesc& md) {
  int64_t count = 1;
  for (int d = 0; d < md.rank() - 2; ++d) count *= md.dim(d);
  return count;
}

int64_t MatrixOf(const MatmulDesc& desc, const MemoryDesc& md, int64_t b) {
  int64_t index = 0, scale = 1;
  for (int d = desc.dst.rank() - 3; d >= 0; --d) {
    if (md.dim(d) != 1) index += b % desc.dst.dim(d) * scale;
    b /= desc.dst.dim(d);
    scale *= md.dim(d);
  }
  return index;
}

int64_t MatrixOffset(const MemoryDesc& md, int64_t index) {
  int64_t offset = 0;
  for (int d = md.rank() - 3; d >= 0; --d) {
    offset += index % md.dim(d) * md.stride(d);
    index /= md.dim(d);
  }
  return offset;
}

}  // namespace tilewire::matmul
