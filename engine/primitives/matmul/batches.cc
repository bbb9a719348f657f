// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/matmul/batches.h"

namespace tilewire::matmul {

Shape ShapeOf(const MatmulDesc& desc) {
  const int rank = desc.dst.rank();
  Shape shape{desc.dst.dim(rank - 2), desc.dst.dim(rank - 1), desc.src.dim(rank - 1)};
  for (int d = 0; d < rank - 2; ++d) {
    shape.batch *= desc.dst.dim(d);
    shape.weights_batch *= desc.weights.dim(d);
  }
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

int64_t WeightsOf(const MatmulDesc& desc, int64_t b) {
  int64_t index = 0, scale = 1;
  for (int d = desc.dst.rank() - 3; d >= 0; --d) {
    if (desc.weights.dim(d) != 1) index += b % desc.dst.dim(d) * scale;
    b /= desc.dst.dim(d);
    scale *= desc.weights.dim(d);
  }
  return index;
}

int64_t WeightsOffset(const MatmulDesc& desc, int64_t index) {
  const MemoryDesc& md = desc.weights;
  int64_t offset = 0;
  for (int d = md.rank() - 3; d >= 0; --d) {
    offset += index % md.dim(d) * md.stride(d);
    index /= md.dim(d);
  }
  return offset;
}

}  // namespace tilewire::matmul
