// SPDX-License-Identifier: Apache-2.0
//
// Copies what both sides keep together in one piece. An offset is a sum of one table entry per
// dimension on either side. The dimension whose neighbours are nearest in dst is the inner loop;
// its table is cut into pieces that are contiguous on both sides.
#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/kernels/elements/element_conversion.h"
#include "engine/kernels/moves/tensor_rows.h"
#include "engine/memory/element_types.h"
#include "engine/memory/separable_offsets.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/select/implementations.h"
#include "engine/primitives/single_source.h"

namespace tilewire::select {
namespace {

// A piece of the inner dimension; src is kFill where nothing is copied.
struct Piece {
  int64_t src, dst, count;
};

// Immutable. Element: an integer of the size of an element.
template <typename Element>
class RunCopy final : public SingleSource<Element> {
 public:
  RunCopy(PrimitiveInfo info, const SelectDesc& desc)
      : SingleSource<Element>(std::move(info), /*spoils_padding=*/true),
        dst_(desc.dst),
        beside_(BesideRows(desc)),
        rows_(desc.dst, beside_),
        from_(desc.dst.rank()),
        to_(desc.dst.rank()) {
    StoreElement(dst_.data_type(), desc.fill, &fill_, 0);
    const SeparableOffsets src_offsets(desc.src), dst_offsets(dst_);
    for (int d = 0; d < dst_.rank(); ++d) {
      for (int64_t index : SourceIndices(desc, d))
        from_[d].push_back(index == kFill ? kFill : src_offsets.At(d, index));
      for (int64_t i = 0; i < dst_.dim(d); ++i) to_[d].push_back(dst_offsets.At(d, i));
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
  static int BesideRows(const SelectDesc& desc) {
    const MemoryDesc &src = desc.src, &dst = desc.dst;
    constexpr int64_t kShort = 64, kLargestTable = 1 << 16;
    if (!src.IsPlain() || !dst.IsPlain()) return kNone;
    const int inner = NearestDimension(dst);
    const bool is_whole = desc.from[inner].empty() && src.stride(inner) == 1;
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

  void RunOn(const Element* src, Element* dst, const threading::Team& team) const override {
    rows_.ForEach(team, [&](const Dims& index) { CopyRow(index, src, dst); });
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

  Element fill_ = 0;  // the bits
  const MemoryDesc dst_;
  const int beside_;  // the dimension that rows run along beside the nearest one
  const TensorRows rows_;
  std::vector<std::vector<int64_t>> from_, to_;  // offsets by index of dst, one table per dimension
  std::vector<Piece> pieces_;
};

template <typename Element>
std::unique_ptr<Primitive> MakeRunCopy(const Request<SelectDesc>& request) {
  PrimitiveInfo info = InfoOf(request);
  for (int64_t size : request.desc.dst.dims()) {
    info.code_bytes += 2 * size * static_cast<int64_t>(sizeof(int64_t));  // the tables
  }
  return std::make_unique<RunCopy<Element>>(std::move(info), request.desc);
}

}  // namespace

absl::StatusOr<SelectDesc> ResolveRunCopy(const Request<SelectDesc>& request) {
  ABSL_ASSIGN_OR_RETURN(SelectDesc resolved, ResolveReference(request));
  ABSL_RETURN_IF_ERROR(TensorRows::RequireTables(resolved.src));
  ABSL_RETURN_IF_ERROR(TensorRows::RequireTables(resolved.dst));
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateRunCopy(const Request<SelectDesc>& request) {
  return VisitBytes(request.desc.dst.data_type(),
                    [&](auto element) { return MakeRunCopy<decltype(element)>(request); });
}

}  // namespace tilewire::select
