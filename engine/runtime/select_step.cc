// SPDX-License-Identifier: Apache-2.0
//
// Offsets are sums of one table entry a dimension on either side. The dimension whose neighbours
// are nearest in dst is the inner loop; its table is cut into pieces that are contiguous on both
// sides.
#include "engine/runtime/select_step.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/memory/zero_padding.h"
#include "engine/runtime/step_rows.h"

namespace tilewire::runtime {
namespace {

using graph::IndexRun;

constexpr int64_t kFill = -1;

// A piece of the inner dimension; src is kFill where nothing is copied.
struct Piece {
  int64_t src, dst, count;
};

// Where index i of dst comes from, for every i; kFill for none.
std::vector<int64_t> SourceIndices(const std::vector<IndexRun>& runs, int64_t size) {
  std::vector<int64_t> indices;
  for (const IndexRun& run : runs) {
    for (int64_t i = 0; i < run.count; ++i)
      indices.push_back(run.start < 0 ? kFill : run.start + i * run.step);
  }
  for (int64_t i = 0; runs.empty() && i < size; ++i) indices.push_back(i);
  return indices;
}

// Immutable.
class SelectStep final : public Primitive {
 public:
  SelectStep(PrimitiveInfo info, const graph::Select& select, const MemoryDesc& src,
             const MemoryDesc& dst)
      : Primitive(std::move(info)),
        fill_(select.fill),
        dst_(dst),
        rows_(dst),
        src_base_(src.offset0()),
        dst_base_(dst.offset0()),
        from_(dst.rank()),
        to_(dst.rank()) {
    const SeparableOffsets src_offsets(src), dst_offsets(dst);
    for (int d = 0; d < dst.rank(); ++d) {
      for (int64_t index : SourceIndices(select.from[d], src.dim(d)))
        from_[d].push_back(index == kFill ? kFill : src_offsets.At(d, index));
      for (int64_t i = 0; i < dst.dim(d); ++i) to_[d].push_back(dst_offsets.At(d, i));
    }
    SetPieces(from_[rows_.inner()], to_[rows_.inner()]);
  }

 private:
  void SetPieces(const std::vector<int64_t>& from, const std::vector<int64_t>& to) {
    for (size_t i = 0; i < to.size(); ++i) {
      if (!pieces_.empty()) {
        Piece& last = pieces_.back();
        const bool follows = from[i] == kFill
                                 ? last.src == kFill
                                 : last.src != kFill && from[i] == last.src + last.count;
        if (follows && to[i] == last.dst + last.count) {
          ++last.count;
          continue;
        }
      }
      pieces_.push_back({from[i], to[i], 1});
    }
  }

  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const override {
    const float* src = args.Get<const float>(kArgSrc) + src_base_;
    float* dst = args.Get<float>(kArgDst) + dst_base_;
    rows_.ForEach(team, [&](const Dims& index) { CopyRow(index, src, dst); });
    if (dst_.HasPadding()) ZeroPadding(dst_, args.Get<void>(kArgDst));
  }

  void CopyRow(const Dims& index, const float* src, float* dst) const {
    bool fill = false;
    for (int d = 0; d < static_cast<int>(index.size()); ++d) {
      if (d == rows_.inner()) continue;
      const int64_t from = from_[d][index[d]];
      fill = fill || from == kFill;
      src += from;
      dst += to_[d][index[d]];
    }
    for (const Piece& piece : pieces_) {
      if (fill || piece.src == kFill) {
        std::fill_n(dst + piece.dst, piece.count, fill_);
      } else if (piece.count == 1) {
        dst[piece.dst] = src[piece.src];
      } else {
        std::memcpy(dst + piece.dst, src + piece.src, piece.count * sizeof(float));
      }
    }
  }

  const float fill_;
  const MemoryDesc dst_;
  const StepRows rows_;
  const int64_t src_base_, dst_base_;
  std::vector<std::vector<int64_t>> from_, to_;  // offsets by index of dst, a table a dimension
  std::vector<Piece> pieces_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const Primitive>> CreateSelectStep(const graph::Select& select,
                                                                  const MemoryDesc& src,
                                                                  const MemoryDesc& dst) {
  ABSL_RETURN_IF_ERROR(CheckStep(src));
  ABSL_RETURN_IF_ERROR(CheckStep(dst));
  return std::make_shared<SelectStep>(StepInfo("runtime/select", {{kArgSrc, src}, {kArgDst, dst}}),
                                      select, src, dst);
}

absl::StatusOr<MemoryDesc> ViewOf(const graph::Select& select, const MemoryDesc& src) {
  Dims dims = src.dims(), offsets(dims.size(), 0);
  for (size_t d = 0; d < dims.size(); ++d) {
    if (select.from[d].empty()) continue;
    const IndexRun& run = select.from[d].front();
    if (select.from[d].size() > 1 || run.start < 0 || (run.step != 1 && run.count > 1))
      return absl::InvalidArgumentError("is not one box");
    dims[d] = run.count;
    offsets[d] = run.start;
  }
  return src.SubMemory(dims, offsets);
}

}  // namespace tilewire::runtime
