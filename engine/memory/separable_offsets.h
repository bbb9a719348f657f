// SPDX-License-Identifier: Apache-2.0
//
// MemoryDesc::Offset as a sum of one table entry a dimension. It is such a sum for every layout: an
// outer stride and a place in the inner block are contributions of one dimension each.
//
//   Offset(i) = offset0 + table[0][i_0] + table[1][i_1] + ...
#ifndef ENGINE_MEMORY_SEPARABLE_OFFSETS_H_
#define ENGINE_MEMORY_SEPARABLE_OFFSETS_H_

#include <cstdint>
#include <vector>

#include "engine/memory/memory_desc.h"

namespace tilewire {

class SeparableOffsets {
 public:
  explicit SeparableOffsets(const MemoryDesc& desc) : base_(desc.offset0()), tables_(desc.rank()) {
    Dims index(desc.rank(), 0);
    for (int d = 0; d < desc.rank(); ++d) {
      tables_[d].resize(desc.padded_dims()[d]);
      for (int64_t i = 0; i < desc.padded_dims()[d]; ++i) {
        index[d] = i;
        tables_[d][i] = desc.Offset(index) - base_;
      }
      index[d] = 0;
    }
  }

  // Of a whole index, offset0 included.
  int64_t Offset(const Dims& index) const {
    int64_t offset = base_;
    for (size_t d = 0; d < tables_.size(); ++d) offset += tables_[d][index[d]];
    return offset;
  }

  int64_t base() const { return base_; }
  int64_t At(int dimension, int64_t i) const { return tables_[dimension][i]; }

 private:
  int64_t base_;
  std::vector<std::vector<int64_t>> tables_;
};

}  // namespace tilewire

#endif  // ENGINE_MEMORY_SEPARABLE_OFFSETS_H_
