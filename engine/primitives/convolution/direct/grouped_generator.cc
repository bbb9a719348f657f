// SPDX-License-Identifier: Apache-2.0
//
// Vector registers: the sums, then the weights of some taps, then indices of lanes, which stay in
// registers where the unit has masks or a step has one source, and what remains takes turns as x.
// Where the unit has no masks, the parts of x that are from several sources are joined by AND and
// OR, with masks from the step.
#include "engine/primitives/convolution/direct/grouped_generator.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>
#include <vector>

namespace tilewire::convolution {
namespace {

constexpr int kFewestTurns = 2;  // registers that hold x, or a part of it

// Weights of so many taps are in registers at once.
int TapsAtOnce(const VectorUnit& unit, int64_t kernel_width) {
  const int64_t most = unit.has_masks() ? 7 : 3;
  return static_cast<int>(std::min(most, kernel_width));
}

int IndexRegisters(const VectorUnit& unit, int sources) { return unit.has_masks() ? sources : 1; }

class GroupedGenerator final : public jit::Generator {
 public:
  GroupedGenerator(absl::string_view name, const GroupedConfig& config)
      : Generator(name),
        config_(config),
        unit_(config.epilogue.unit),
        pixels_(config.epilogue.pixels),
        first_weights_(pixels_),
        first_index_(first_weights_ + TapsAtOnce(unit_, config.loops.kernel[2])),
        first_turn_(first_index_ + IndexRegisters(unit_, config.kind.MostSources())),
        epilogue_(this, config.epilogue,
                  {.dst = src_row_,
                   .bias = weights_row_,
                   .spare = rax,
                   .scratch = unit_.RegistersFrom(pixels_),
                   .slopes = weights_row_}) {}

 private:
  // A pixel of src by its distance from tap 0 of the tile's first output, and the outputs and taps
  // that read it.
  using Reads = std::map<int64_t, std::vector<std::pair<int, int64_t>>>;

  void Emit() override {
    Xbyak::Label finish;
    Preamble();
    for (int pixel = 0; pixel < pixels_; ++pixel) unit_.Zero(this, Sum(pixel));
    cmp(Argument(offsetof(GroupedArgs, loops) + offsetof(TapLoopArgs, full_blocks)), 0);
    je(finish, T_NEAR);
    mov(src_depth_, Argument(offsetof(GroupedArgs, src)));
    mov(weights_depth_, Argument(offsetof(GroupedArgs, weights)));
    ReduceDepth();
    L(finish);
    Finish();
    Postamble();
    epilogue_.EmitTables();
  }

  void ReduceDepth() {
    Xbyak::Label loop;
    const bool has_depth = config_.loops.kernel[0] > 1;
    if (has_depth)
      mov(depths_left_, Argument(offsetof(GroupedArgs, loops) + offsetof(TapLoopArgs, depth_taps)));
    L(loop);
    mov(src_row_, src_depth_);
    mov(weights_row_, weights_depth_);
    ReduceRows();
    if (!has_depth) return;
    add(src_depth_, static_cast<int>(config_.loops.src_tap[0]));
    add(weights_depth_, static_cast<int>(config_.weights_depth));
    dec(depths_left_);
    jnz(loop, T_NEAR);
  }

  void ReduceRows() {
    Xbyak::Label loop;
    const bool has_height = config_.loops.kernel[1] > 1;
    if (has_height)
      mov(rows_left_, Argument(offsetof(GroupedArgs, loops) + offsetof(TapLoopArgs, height_taps)));
    L(loop);
    mov(table_, Argument(offsetof(GroupedArgs, table)));
    mov(steps_, ptr[table_ + offsetof(StepTable, steps)]);
    for (int i = 0; i < StepForm::kForms; ++i) {
      if (config_.kind.Has(StepForm::At(i))) ReduceSteps(StepForm::At(i));
    }
    if (!has_height) return;
    add(src_row_, static_cast<int>(config_.loops.src_tap[1]));
    add(weights_row_, static_cast<int>(config_.weights_row));
    dec(rows_left_);
    jnz(loop, T_NEAR);
  }

  void ReduceSteps(const StepForm& form) {
    Xbyak::Label loop;
    const StepLayout layout(unit_, form);
    mov(steps_left_, ptr[table_ + offsetof(StepTable, counts) +
                         form.index() * static_cast<int>(sizeof(int64_t))]);
    L(loop);
    for (int s = 0; s < form.sources; ++s) LoadSource(layout, s, form);
    mov(weights_, ptr[steps_ + layout.weights()]);
    add(weights_, weights_row_);
    if (config_.kind.is_split && unit_.has_masks())
      kmovw(all_lanes_, ptr[steps_ + layout.all_lanes()]);
    const int at_once = TapsAtOnce(unit_, config_.loops.kernel[2]);
    for (int64_t tap = 0; tap < config_.loops.kernel[2]; tap += at_once)
      ReduceTaps(layout, form, {tap, std::min(tap + at_once, config_.loops.kernel[2])});
    add(steps_, layout.size());
    dec(steps_left_);
    jnz(loop, T_NEAR);
  }

  void LoadSource(const StepLayout& layout, int s, const StepForm& form) {
    mov(sources_[s], ptr[steps_ + layout.offset(s)]);
    add(sources_[s], src_row_);
    const bool holds_index = unit_.has_masks() || form.sources == 1;
    if (holds_index && !form.broadcasts) vmovups(Index(s), ptr[steps_ + layout.indices(s)]);
    if (unit_.has_masks() && NeedsLanes(form)) kmovw(LanesOf(s), ptr[steps_ + layout.lanes(s)]);
  }

  // Where one source has all lanes, those of the padding may hold anything: ZeroTail() follows.
  bool NeedsLanes(const StepForm& form) const { return form.sources > 1 || config_.kind.is_split; }
  // Whether broadcasts are operands of multiplications.
  bool Embeds(const StepForm& form) const {
    return form.broadcasts && unit_.has_masks() && config_.loops.kernel[2] == 1;
  }

  void ReduceTaps(const StepLayout& layout, const StepForm& form, const TapRange& taps) {
    const Reads reads = ReadsOf(taps);
    if (reads.empty()) return;
    for (int64_t tap = taps.begin; tap < taps.end; ++tap) LoadWeights(layout, taps, tap);
    for (const auto& [offset, outputs] : reads) {
      if (Embeds(form)) {
        MultiplyBroadcasts(form, outputs[0].first, static_cast<int>(offset));
        continue;
      }
      const Xbyak::Xmm x = unit_.has_masks() ? JoinUnderMasks(form, static_cast<int>(offset))
                                             : JoinByAnd(layout, form, static_cast<int>(offset));
      for (const auto& [pixel, tap] : outputs)
        vfmadd231ps(Sum(pixel), Weights(tap - taps.begin), x);
    }
  }

  void MultiplyBroadcasts(const StepForm& form, int pixel, int offset) {
    for (int s = 0; s < form.sources; ++s) {
      const Xbyak::Xmm sum = Sum(pixel);
      vfmadd231ps(NeedsLanes(form) ? sum | LanesOf(s) : sum, Weights(0),
                  ptr_b[sources_[s] + offset]);
    }
  }

  Reads ReadsOf(const TapRange& taps) const {
    Reads reads;
    for (int pixel = 0; pixel < pixels_; ++pixel) {
      const TapRange& valid = config_.loops.taps[pixel];
      for (int64_t tap = std::max(taps.begin, valid.begin); tap < std::min(taps.end, valid.end);
           ++tap) {
        reads[pixel * config_.loops.src_pixel + tap * config_.loops.src_tap[2]].push_back(
            {pixel, tap});
      }
    }
    return reads;
  }

  // Zeros in lanes that another step is for, which then adds zero to their sums.
  void LoadWeights(const StepLayout& layout, const TapRange& taps, int64_t tap) {
    const Xbyak::Xmm to = Weights(tap - taps.begin);
    const Xbyak::Address from = ptr[weights_ + static_cast<int>(tap * config_.weights_tap)];
    const bool is_split = config_.kind.is_split;
    vmovups(is_split && unit_.has_masks() ? to | all_lanes_ | T_z : to, from);
    if (is_split && !unit_.has_masks()) vandps(to, to, ptr[steps_ + layout.all_lanes()]);
  }

  // The lanes of a source, and what others have in theirs.
  void Take(const StepForm& form, const Xbyak::Ymm& to, const Xbyak::Ymm& index, int s,
            int offset) {
    const Xbyak::Address from = ptr[sources_[s] + offset];
    form.broadcasts ? vbroadcastss(to, from) : vpermps(to, index, from);
  }

  Xbyak::Xmm JoinUnderMasks(const StepForm& form, int offset) {
    const Xbyak::Ymm x = NextTurn();
    for (int s = 0; s < form.sources; ++s) {
      const Xbyak::Ymm to = s > 0 ? x | LanesOf(s) : NeedsLanes(form) ? x | LanesOf(s) | T_z : x;
      Take(form, to, Index(s), s, offset);
    }
    return x;
  }

  Xbyak::Xmm JoinByAnd(const StepLayout& layout, const StepForm& form, int offset) {
    const Xbyak::Ymm x = NextTurn();
    for (int s = 0; s < form.sources; ++s) {
      const Xbyak::Ymm part = s == 0 ? x : TurnBeside(x);
      const bool loads_index = form.sources > 1 && !form.broadcasts;
      if (loads_index) vmovups(part, ptr[steps_ + layout.indices(s)]);
      Take(form, part, loads_index ? part : Index(0), s, offset);
      if (NeedsLanes(form)) vandps(part, part, ptr[steps_ + layout.lanes(s)]);
      if (s > 0) vorps(x, x, part);
    }
    return x;
  }

  void Finish() {
    mov(src_row_, Argument(offsetof(GroupedArgs, dst)));
    mov(weights_row_, Argument(offsetof(GroupedArgs, bias)));
    epilogue_.AddBias();
    if (config_.epilogue.post_ops.Slopes() != nullptr)
      mov(weights_row_, Argument(offsetof(GroupedArgs, slopes)));
    epilogue_.ApplyPostOps(/*skip_sum=*/false);
    epilogue_.ZeroTail();
    epilogue_.Store();
  }

  Xbyak::Address Argument(size_t offset) { return qword[args_ + static_cast<int>(offset)]; }
  Xbyak::Xmm Sum(int pixel) const { return unit_.Vector(pixel); }
  Xbyak::Xmm Weights(int64_t i) const { return unit_.Vector(first_weights_ + static_cast<int>(i)); }
  Xbyak::Ymm Index(int source) const { return unit_.Wide(first_index_ + source); }
  Xbyak::Opmask LanesOf(int source) const { return Xbyak::Opmask(k3.getIdx() + source); }
  Xbyak::Ymm NextTurn() {
    turn_ = (turn_ + 1) % (unit_.registers() - first_turn_);
    return unit_.Wide(first_turn_ + turn_);
  }
  Xbyak::Ymm TurnBeside(const Xbyak::Ymm& x) {
    const Xbyak::Ymm next = NextTurn();
    return next.getIdx() == x.getIdx() ? NextTurn() : next;
  }

  const Xbyak::Reg64 args_ = rdi;
  const Xbyak::Reg64 src_row_ = rsi, weights_row_ = rdx;  // later: dst, and bias or slopes
  const Xbyak::Reg64 src_depth_ = rbp, weights_depth_ = r15;
  const Xbyak::Reg64 rows_left_ = rcx, depths_left_ = rbx;
  const Xbyak::Reg64 table_ = rax, steps_ = r8, steps_left_ = r9;
  const Xbyak::Reg64 weights_ = r10;  // of the step
  const Xbyak::Reg64 sources_[StepForm::kMostSources] = {r11, r12, r13, r14};
  const Xbyak::Opmask all_lanes_ = k7;

  const GroupedConfig config_;
  const VectorUnit unit_;
  const int pixels_;
  const int first_weights_, first_index_, first_turn_;
  int turn_ = 0;
  AccumulatorEpilogue epilogue_;
};

}  // namespace

int MostGroupedPixels(const VectorUnit& unit, int64_t kernel_width, int sources, int scratch) {
  const int beside = TapsAtOnce(unit, kernel_width) + IndexRegisters(unit, sources) + kFewestTurns;
  return unit.registers() - std::max(beside, scratch);
}

absl::StatusOr<std::unique_ptr<const jit::Generator>> GenerateGrouped(absl::string_view name,
                                                                      const GroupedConfig& config) {
  return jit::Compile<GroupedGenerator>(name, config);
}

}  // namespace tilewire::convolution
