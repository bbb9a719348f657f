// SPDX-License-Identifier: Apache-2.0
//
// How steps in plain loops walk over a tensor: rows along the dimension whose neighbours are
// nearest in memory, each of them a place on every side and a table of offsets along the row.
#ifndef ENGINE_RUNTIME_STEP_ROWS_H_
#define ENGINE_RUNTIME_STEP_ROWS_H_

#include <algorithm>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "engine/memory/index_walk.h"
#include "engine/memory/memory_desc.h"
#include "engine/memory/separable_offsets.h"
#include "engine/primitives/primitive.h"

namespace tilewire::runtime {

constexpr int64_t kLargestStepDimension = int64_t{1} << 24;

// kUnimplemented  a dimension that is too large for a table
inline absl::Status CheckStepSizes(const MemoryDesc& desc) {
  for (int64_t size : desc.dims()) {
    if (size > kLargestStepDimension) {
      return absl::UnimplementedError(
          absl::StrCat("steps without a primitive take dimensions up to ", kLargestStepDimension,
                       ", not ", DimsToString(desc.dims())));
    }
  }
  return absl::OkStatus();
}

// kUnimplemented  not f32, or too large
inline absl::Status CheckStep(const MemoryDesc& desc) {
  if (desc.data_type() != DataType::kF32)
    return absl::UnimplementedError("steps without a primitive take f32 only");
  return CheckStepSizes(desc);
}

inline PrimitiveInfo StepInfo(absl::string_view name, std::vector<ArgDesc> args) {
  PrimitiveInfo info;
  info.name = std::string(name);
  info.kind = PrimitiveKind::kReorder;
  info.args = std::move(args);
  info.scratchpad_mode = ScratchpadMode::kUser;
  return info;
}

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

// The rows of dst, shared out over a team: visit(index with 0 along the row).
class StepRows {
 public:
  // `beside`: a dimension that belongs to the rows, too; -1 for none.
  explicit StepRows(const MemoryDesc& dst, int beside = -1)
      : inner_(NearestDimension(dst)), outer_(dst.dims()) {
    if (beside >= 0) outer_[beside] = 1;
    at_once_ = std::max<int64_t>(1, kElementsAtOnce / std::max<int64_t>(1, outer_[inner_]));
    outer_[inner_] = 1;
  }

  int inner() const { return inner_; }

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

}  // namespace tilewire::runtime

#endif  // ENGINE_RUNTIME_STEP_ROWS_H_
