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

// Immutable. Element: what has the size of an element.
template <typename Element>
class SelectStep final : public Primitive {
 public:
  SelectStep(PrimitiveInfo info, const graph::Select& select, const MemoryDesc& src,
             const MemoryDesc& dst)
      : Primitive(std::move(info)),
        fill_(static_cast<Element>(select.fill)),
        dst_(dst),
        beside_(BesideRows(select, src, dst)),
        rows_(dst, beside_),
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
    if (beside_ == kNone) {
      SetPieces(from_[rows_.inner()], to_[rows_.inner()]);
    } else {
      SetPiecesOfBoth(from_[beside_], to_[beside_], from_[rows_.inner()], to_[rows_.inner()]);
    }
  }

 private:
  static constexpr int kNone = -1;

  // Where the nearest dimension is short and whole, the one around it makes longer rows: a pixel's
  // few channels, and the pixels.
  static int BesideRows(const graph::Select& select, const MemoryDesc& src, const MemoryDesc& dst) {
    constexpr int64_t kShort = 64, kLargestTable = 1 << 16;
    if (!src.IsPlain() || !dst.IsPlain()) return kNone;
    const int inner = NearestDimension(dst);
    const bool is_whole = select.from[inner].empty() && src.stride(inner) == 1;
    if (!is_whole || dst.stride(inner) != 1 || dst.dim(inner) > kShort) return kNone;
    for (int d = 0; d < dst.rank(); ++d) {
      const bool follows = d != inner && dst.stride(d) == dst.dim(inner) && dst.dim(d) > 1;
      if (follows && dst.dim(d) * dst.dim(inner) <= kLargestTable) return d;
    }
    return kNone;
  }

  void SetPiecesOfBoth(const std::vector<int64_t>& outer_from, const std::vector<int64_t>& outer_to,
                       const std::vector<int64_t>& inner_from,
                       const std::vector<int64_t>& inner_to) {
    std::vector<int64_t> from, to;
    for (size_t i = 0; i < outer_to.size(); ++i) {
      for (size_t k = 0; k < inner_to.size(); ++k) {
        from.push_back(outer_from[i] == kFill ? kFill : outer_from[i] + inner_from[k]);
        to.push_back(outer_to[i] + inner_to[k]);
      }
    }
    SetPieces(from, to);
  }

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
    const auto* src = args.Get<const Element>(kArgSrc) + src_base_;
    auto* dst = args.Get<Element>(kArgDst) + dst_base_;
    rows_.ForEach(team, [&](const Dims& index) { CopyRow(index, src, dst); });
    if (dst_.HasPadding()) ZeroPadding(dst_, args.Get<void>(kArgDst));
  }

  void CopyRow(const Dims& index, const Element* src, Element* dst) const {
    bool fill = false;
    for (int d = 0; d < static_cast<int>(index.size()); ++d) {
      if (d == rows_.inner() || d == beside_) continue;
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
        std::memcpy(dst + piece.dst, src + piece.src, piece.count * sizeof(Element));
      }
    }
  }

  const Element fill_;
  const MemoryDesc dst_;
  const int beside_;  // the dimension that rows run along beside the nearest one
  const StepRows rows_;
  const int64_t src_base_, dst_base_;
  std::vector<std::vector<int64_t>> from_, to_;  // offsets by index of dst, a table a dimension
  std::vector<Piece> pieces_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const Primitive>> CreateSelectStep(const graph::Select& select,
                                                                  const MemoryDesc& src,
                                                                  const MemoryDesc& dst) {
  ABSL_RETURN_IF_ERROR(CheckStepSizes(src));
  ABSL_RETURN_IF_ERROR(CheckStepSizes(dst));
  PrimitiveInfo info = StepInfo("runtime/select", {{kArgSrc, src}, {kArgDst, dst}});
  if (src.data_type() == DataType::kF32)
    return std::make_shared<SelectStep<float>>(std::move(info), select, src, dst);
  if (src.data_type() == DataType::kS8)
    return std::make_shared<SelectStep<int8_t>>(std::move(info), select, src, dst);
  if (src.data_type() == DataType::kU8)
    return std::make_shared<SelectStep<uint8_t>>(std::move(info), select, src, dst);
  return absl::UnimplementedError("select takes f32, u8 and s8 only");
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
