// SPDX-License-Identifier: Apache-2.0
//
// MemoryDesc::Offset as a sum of one term per dimension. It is such a sum for every layout: an
// outer stride and a place in the inner block are contributions of one dimension each.
//
//   Offset(i) = offset0 + At(0, i_0) + At(1, i_1) + ...
//   At(d, i)  = stride_d * (i / block_d) + place_d[i % block_d]
//
// It stores the places in one block only, whatever the dims. Immutable.
#ifndef ENGINE_MEMORY_SEPARABLE_OFFSETS_H_
#define ENGINE_MEMORY_SEPARABLE_OFFSETS_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/memory/memory_desc.h"

namespace tilewire {

class SeparableOffsets {
 public:
  explicit SeparableOffsets(const MemoryDesc& desc) : base_(desc.offset0()), axes_(desc.rank()) {
    Dims index(desc.rank(), 0);
    for (int d = 0; d < desc.rank(); ++d) {
      Axis& axis = axes_[d];
      for (const InnerBlock& block : desc.inner_blocks()) {
        if (block.dim == d) axis.block *= block.size;
      }
      axis.stride = desc.strides()[d];
      if (axis.block == 1) continue;
      axis.places.resize(axis.block);
      for (int64_t i = 0; i < std::min(axis.block, desc.padded_dims()[d]); ++i) {
        index[d] = i;
        axis.places[i] = desc.Offset(index) - base_;
      }
      index[d] = 0;
    }
  }

  // The offset of a whole index, offset0 included.
  int64_t Offset(const Dims& index) const {
    int64_t offset = base_;
    for (size_t d = 0; d < axes_.size(); ++d) offset += At(static_cast<int>(d), index[d]);
    return offset;
  }

  int64_t base() const { return base_; }
  int64_t At(int dimension, int64_t i) const {
    const Axis& axis = axes_[dimension];
    if (axis.block == 1) return i * axis.stride;
    return i / axis.block * axis.stride + axis.places[i % axis.block];
  }

 private:
  struct Axis {
    int64_t block = 1, stride = 0;
    std::vector<int64_t> places;  // in a block; empty for a block of one
  };

  int64_t base_;
  std::vector<Axis> axes_;
};

}  // namespace tilewire

#endif  // ENGINE_MEMORY_SEPARABLE_OFFSETS_H_
