// SPDX-License-Identifier: Apache-2.0
//
// Step l merges the vectors whose numbers differ in bit l: the one with a 0 there keeps the lanes
// for vectors of dst with a 0 in that bit, the other one keeps the rest. Before step l vector i
// holds lanes of 2^l sources for S / 2^l vectors of dst: 16 / S lanes of each source for each
// vector, which is always 16 in all. After the last step it is vector i of dst.
#include "engine/kernels/moves/lane_transpose.h"

#include <array>
#include <cstddef>
#include <map>
#include <utility>

#include "engine/base/status_macros.h"

namespace tilewire {
namespace {

constexpr int kLanes = 16;
constexpr int kVectorBytes = 64;

using Lanes = std::array<int, kLanes>;  // the indices of a permutation, or the place of each lane

class LaneTransposeGenerator final : public jit::Generator {
 public:
  LaneTransposeGenerator(absl::string_view name, absl::Span<const LaneTransposePattern> patterns)
      : Generator(name), patterns_(patterns.begin(), patterns.end()) {}

  const std::vector<size_t>& entries() const { return entries_; }  // of the patterns, in bytes

 private:
  // A vector in a register, and the place in dst (vector * 16 + lane) where each lane belongs.
  struct Holder {
    Xbyak::Zmm vector;
    Lanes places;
  };

  const Xbyak::Reg64 args_ = rdi, sources_ = rsi, dsts_ = rdx, bytes_ = r8;
  const Xbyak::Reg64 at_ = rcx;  // bytes of the run already done
  const Xbyak::Reg64 block_ = r9;

  const std::vector<LaneTransposePattern> patterns_;
  std::vector<size_t> entries_;
  std::map<Lanes, Xbyak::Label> tables_;

  void Emit() override {
    for (const LaneTransposePattern& pattern : patterns_) {
      align(16);
      entries_.push_back(getSize());
      EmitFunction(pattern);
    }
    align(kVectorBytes);
    for (auto& [indices, label] : tables_) {
      L(label);
      for (int index : indices) dd(index);
    }
  }

  void EmitFunction(const LaneTransposePattern& pattern) {
    mov(sources_, ptr[args_ + offsetof(LaneGatherArgs, sources)]);
    mov(dsts_, ptr[args_ + offsetof(LaneGatherArgs, dsts)]);
    mov(bytes_, ptr[args_ + offsetof(LaneGatherArgs, bytes)]);
    xor_(at_, at_);
    Xbyak::Label pixel;
    L(pixel);
    std::vector<Holder> holders = Load(pattern);
    const int count = static_cast<int>(holders.size());
    Xbyak::Zmm free(count), indices(count + 1);
    for (int bit = 1; bit < count; bit *= 2) {
      for (int i = 0; i < count; ++i) {
        if ((i & bit) == 0)
          Exchange(bit, bit * 2 == count, &holders[i], &holders[i | bit], &free, indices);
      }
    }
    for (int i = 0; i < count; ++i) {
      mov(block_, ptr[dsts_ + i * static_cast<int>(sizeof(void*))]);
      vmovups(ptr[block_ + at_], holders[i].vector);
    }
    add(at_, kVectorBytes);
    cmp(at_, bytes_);
    jb(pixel, T_NEAR);
    vzeroupper();
    ret();
  }

  std::vector<Holder> Load(const LaneTransposePattern& pattern) {
    std::vector<Holder> holders(pattern.size());
    for (size_t dst = 0; dst < pattern.size(); ++dst) {
      for (int lane = 0; lane < kLanes; ++lane) {
        const LaneSource& from = pattern[dst][lane];
        holders[from.source].places[from.lane] = static_cast<int>(dst) * kLanes + lane;
      }
    }
    for (size_t i = 0; i < holders.size(); ++i) {
      holders[i].vector = Xbyak::Zmm(static_cast<int>(i));
      mov(block_, ptr[sources_ + static_cast<int>(i * sizeof(void*))]);
      vmovups(holders[i].vector, ptr[block_ + at_]);
    }
    return holders;
  }

  // `low` keeps the lanes for vectors of dst without `bit`. In the last step lanes go to their
  // final place.
  void Exchange(int bit, bool last, Holder* low, Holder* high, Xbyak::Zmm* free,
                const Xbyak::Zmm& indices) {
    Lanes permutations[2], places[2];
    int counts[2] = {0, 0};
    for (int i = 0; i < 2 * kLanes; ++i) {
      const int place = (i < kLanes ? low : high)->places[i % kLanes];
      const int side = (place / kLanes & bit) != 0;
      const int to = last ? place % kLanes : counts[side]++;
      permutations[side][to] = i;
      places[side][to] = place;
    }
    vmovups(*free, ptr[rip + tables_[permutations[0]]]);
    vmovups(indices, ptr[rip + tables_[permutations[1]]]);
    vpermi2d(*free, low->vector, high->vector);
    vpermt2d(low->vector, indices, high->vector);
    const Xbyak::Zmm unused = high->vector;
    *high = {low->vector, places[1]};
    *low = {*free, places[0]};
    *free = unused;
  }
};

}  // namespace

bool IsLaneTranspose(const LaneGatherConfig& config, const LaneTransposePattern& pattern) {
  const int count = static_cast<int>(pattern.size());
  if (!config.unit.has_masks() || config.unit.lanes() < kLanes || config.lanes != kLanes ||
      config.element_bytes != 4 || count < 2 || count > kLanes || kLanes % count != 0) {
    return false;
  }
  for (const LanePattern& dst : pattern) {
    std::array<int, kLanes> taken = {};
    for (const LaneSource& lane : dst) {
      if (lane.source < 0 || lane.source >= count) return false;
      if (++taken[lane.source] > kLanes / count) return false;
    }
  }
  return true;
}

absl::StatusOr<LaneGather> CompileLaneTranspose(absl::string_view name,
                                                absl::Span<const LaneTransposePattern> patterns) {
  ABSL_ASSIGN_OR_RETURN(auto code, jit::Compile<LaneTransposeGenerator>(name, patterns));
  return LaneGather::Of(std::move(code));
}

}  // namespace tilewire
