// SPDX-License-Identifier: Apache-2.0
//
// Plain loops over a tensor, shared out over a team: rows along the dimension whose neighbours are
// nearest in memory. Each row is visited once, by one thread, in pieces of work whose size depends
// on the dims alone. Immutable.
#ifndef ENGINE_KERNELS_MOVES_TENSOR_ROWS_H_
#define ENGINE_KERNELS_MOVES_TENSOR_ROWS_H_

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "engine/base/checked_math.h"
#include "engine/memory/index_walk.h"
#include "engine/memory/memory_desc.h"
#include "engine/threading/arena.h"

namespace tilewire {

// The dimension whose neighbours are nearest in memory.
inline int NearestDimension(const MemoryDesc& desc) {
  if (!desc.inner_blocks().empty()) return desc.inner_blocks().back().dim;
  int best = 0;
  for (int d = 1; d < desc.rank(); ++d) {
    const bool better = desc.dim(best) == 1 || desc.stride(d) <= desc.stride(best);
    if (desc.dim(d) > 1 && better) best = d;
  }
  return best;
}

class TensorRows {
 public:
  // The largest dimension of a tensor whose kernel keeps a table entry for each index.
  static constexpr int64_t kLargestTable = int64_t{1} << 24;

  // kUnimplemented  a dimension over kLargestTable; the message shows the dims
  static absl::Status RequireTables(const MemoryDesc& desc) {
    for (int64_t size : desc.dims()) {
      if (size <= kLargestTable) continue;
      return Unimplemented("takes dimensions up to ", kLargestTable, ", not ",
                           DimsToString(desc.dims()));
    }
    return absl::OkStatus();
  }

  // `beside`: a second dimension that lies along the rows; -1 for none.
  explicit TensorRows(const MemoryDesc& dst, int beside = -1)
      : inner_(NearestDimension(dst)), outer_(dst.dims()) {
    // A row of no elements is not visited.
    if (beside >= 0) outer_[beside] = std::min<int64_t>(1, outer_[beside]);
    at_once_ = std::max<int64_t>(1, kElementsAtOnce / std::max<int64_t>(1, outer_[inner_]));
    outer_[inner_] = std::min<int64_t>(1, outer_[inner_]);
  }

  // The dimension along the rows.
  int inner() const { return inner_; }

  // Calls visit(index) for each row; the index is 0 along the row.
  template <typename Visit>
  void ForEach(const threading::Team& team, Visit visit) const {
    const int64_t rows = *tilewire::ElementCount(outer_);
    team.ParallelFor(DivUp(rows, at_once_), [&](int64_t task) {
      Dims index(outer_.size(), 0);
      int64_t rest = task * at_once_;
      for (size_t d = outer_.size(); d-- > 0; rest /= outer_[d]) index[d] = rest % outer_[d];
      const int64_t end = std::min(rows, (task + 1) * at_once_);
      for (int64_t row = task * at_once_; row < end; ++row) {
        visit(index);
        NextIndex(outer_, &index);
      }
    });
  }

 private:
  static constexpr int64_t kElementsAtOnce = 16384;  // in one piece of work

  int inner_;
  Dims outer_;  // with 1 along the row
  int64_t at_once_ = 1;
};

}  // namespace tilewire

#endif  // ENGINE_KERNELS_MOVES_TENSOR_ROWS_H_
