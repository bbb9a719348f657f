// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/lrn/block_neighbours.h"

#include "engine/base/status_macros.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/lrn/implementations.h"

namespace tilewire::lrn {
namespace {

Xbyak::Ymm AsYmm(const Xbyak::Xmm& vector) { return Xbyak::Ymm(vector.getIdx()); }

absl::Status RequireBlocksOfPixels(const MemoryDesc& md, int64_t lanes) {
  if (md.inner_blocks() != InnerBlocks{{1, lanes}}) {
    return Unimplemented("takes channels in blocks of ", lanes, ", not ", md.ToString());
  }
  int64_t step = lanes;
  for (int d = md.rank() - 1; d >= 2; --d) {
    if (md.dim(d) != 1 && md.stride(d) != step) {
      return Unimplemented("pixels do not follow each other");
    }
    step *= md.dim(d);
  }
  return absl::OkStatus();
}

}  // namespace

NeighbourSums::NeighbourSums(Xbyak::CodeGenerator* generator, const VectorUnit& unit, int reach,
                             int first)
    : g_(generator),
      unit_(unit),
      reach_(reach),
      middle_(unit.Vector(first)),
      sum_(unit.Vector(first + 1)),
      low_(unit.Vector(first + 2)),
      high_(unit.Vector(first + 3)),
      shifted_(unit.Vector(first + 4)),
      low_middle_(unit.Vector(first + 5)),
      middle_high_(unit.Vector(first + 6)) {}

void NeighbourSums::EmitSum(bool squares) {
  squares_ = squares;
  squares ? g_->vmulps(sum_, middle_, middle_) : g_->vmovaps(sum_, middle_);
  if (!ShiftsVectors()) {
    // The high half of one and the low half of the next.
    g_->vperm2f128(AsYmm(low_middle_), AsYmm(low_), AsYmm(middle_), 0x21);
    g_->vperm2f128(AsYmm(middle_high_), AsYmm(middle_), AsYmm(high_), 0x21);
  }
  for (int shift = 1; shift <= reach_; ++shift) EmitNeighbours(shift);
}

// The values `shift` channels before, and those as far after.
void NeighbourSums::EmitNeighbours(int shift) {
  if (ShiftsVectors()) {
    const int lanes = unit_.lanes();
    g_->valignd(shifted_, middle_, low_, (lanes - shift) % lanes);
    Add(shift == lanes ? low_ : shifted_);
    g_->valignd(shifted_, high_, middle_, shift % lanes);
    Add(shift == lanes ? high_ : shifted_);
    return;
  }
  AddShifted(shift, low_, low_middle_, middle_);
  AddShifted(8 - shift, middle_, middle_high_, high_);
}

// Adds the eight values `shift` (0 to 8) left of `right`; `between` is the middle of left, right.
void NeighbourSums::AddShifted(int shift, const Xbyak::Xmm& left, const Xbyak::Xmm& between,
                               const Xbyak::Xmm& right) {
  if (shift % 4 == 0) {
    Add(shift == 0 ? right : shift == 4 ? between : left);
    return;
  }
  if (shift < 4) {
    g_->vpalignr(shifted_, right, between, 16 - 4 * shift);
  } else {
    g_->vpalignr(shifted_, between, left, 32 - 4 * shift);
  }
  Add(shifted_);
}

void NeighbourSums::Add(const Xbyak::Xmm& values) {
  squares_ ? g_->vfmadd231ps(sum_, values, values) : g_->vaddps(sum_, sum_, values);
}

absl::Status RequireBlocked(const LrnDesc& desc, std::initializer_list<const MemoryDesc*> tensors,
                            const VectorUnit& unit) {
  const int64_t lanes = unit.lanes();
  if (desc.algorithm != LrnAlgorithm::kAcrossChannels) {
    return Unimplemented("not across channels");
  }
  if (ReachOf(desc) > lanes) {
    return Unimplemented("local_size ", desc.local_size, " reaches beyond the next ", lanes,
                         " channels");
  }
  for (const MemoryDesc* tensor : tensors)
    ABSL_RETURN_IF_ERROR(RequireBlocksOfPixels(*tensor, lanes));
  return absl::OkStatus();
}

}  // namespace tilewire::lrn
