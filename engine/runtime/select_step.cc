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

#include "absl/strings/str_cat.h"
#include "engine/memory/index_walk.h"
#include "engine/memory/separable_offsets.h"
#include "engine/memory/zero_padding.h"

namespace tilewire::runtime {
namespace {

using graph::IndexRun;

constexpr int64_t kLargestTable = int64_t{1} << 24;
constexpr int64_t kElementsAtOnce = 16384;  // in one piece of work
constexpr int64_t kFill = -1;

// A piece of the inner dimension; src is kFill where nothing is copied.
struct Piece {
  int64_t src, dst, count;
};

int NearestDimension(const MemoryDesc& desc) {
  if (!desc.inner_blocks().empty()) return desc.inner_blocks().back().dim;
  int best = 0;
  for (int d = 1; d < desc.rank(); ++d) {
    const bool counts = desc.dim(d) > 1 || desc.dim(best) == 1;
    if (counts && (desc.stride(d) <= desc.stride(best) || desc.dim(best) == 1)) best = d;
  }
  return best;
}

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
        src_base_(src.offset0()),
        dst_base_(dst.offset0()) {
    const SeparableOffsets src_offsets(src), dst_offsets(dst);
    const int inner = NearestDimension(dst);
    for (int d = 0; d < dst.rank(); ++d) {
      std::vector<int64_t> from = SourceIndices(select.from[d], src.dim(d)), to(dst.dim(d));
      for (int64_t i = 0; i < dst.dim(d); ++i) {
        if (from[i] != kFill) from[i] = src_offsets.At(d, from[i]);
        to[i] = dst_offsets.At(d, i);
      }
      if (d == inner) {
        SetPieces(from, to);
      } else {
        outer_.push_back(dst.dim(d));
        outer_src_.push_back(std::move(from));
        outer_dst_.push_back(std::move(to));
      }
    }
    rows_at_once_ = std::max<int64_t>(1, kElementsAtOnce / dst.dim(inner));
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
    const int64_t rows = *tilewire::ElementCount(outer_);
    team.ParallelFor(DivUp(rows, rows_at_once_), [&](int64_t task) {
      const int64_t begin = task * rows_at_once_, end = std::min(rows, begin + rows_at_once_);
      Dims index(outer_.size(), 0);
      int64_t rest = begin;
      for (size_t d = outer_.size(); d-- > 0; rest /= outer_[d]) index[d] = rest % outer_[d];
      for (int64_t row = begin; row < end; ++row) {
        CopyRow(index, src, dst);
        NextIndex(outer_, &index);
      }
    });
    if (dst_.HasPadding()) ZeroPadding(dst_, args.Get<void>(kArgDst));
  }

  void CopyRow(const Dims& index, const float* src, float* dst) const {
    bool fill = false;
    for (size_t d = 0; d < index.size(); ++d) {
      const int64_t from = outer_src_[d][index[d]];
      fill = fill || from == kFill;
      src += from;
      dst += outer_dst_[d][index[d]];
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
  const int64_t src_base_, dst_base_;
  Dims outer_;  // sizes of all dimensions but the inner one
  std::vector<std::vector<int64_t>> outer_src_, outer_dst_;
  std::vector<Piece> pieces_;
  int64_t rows_at_once_ = 1;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const Primitive>> CreateSelectStep(const graph::Select& select,
                                                                  const MemoryDesc& src,
                                                                  const MemoryDesc& dst) {
  if (src.data_type() != DataType::kF32 || dst.data_type() != DataType::kF32)
    return absl::UnimplementedError("elements are selected of f32 only");
  for (int d = 0; d < dst.rank(); ++d) {
    if (src.dim(d) > kLargestTable || dst.dim(d) > kLargestTable) {
      return absl::UnimplementedError(
          absl::StrCat("elements are selected of dimensions up to ", kLargestTable, ", not from ",
                       DimsToString(src.dims()), " to ", DimsToString(dst.dims())));
    }
  }
  PrimitiveInfo info;
  info.name = "runtime/select";
  info.kind = PrimitiveKind::kReorder;
  info.args = {{kArgSrc, src}, {kArgDst, dst}};
  info.scratchpad_mode = ScratchpadMode::kUser;
  return std::make_shared<SelectStep>(std::move(info), select, src, dst);
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
