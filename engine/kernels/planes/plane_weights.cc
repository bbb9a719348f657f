// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/planes/plane_weights.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace tilewire {
namespace {

constexpr uint64_t kAllOutputs = 0xFFFF;

// Lines are pairs of channels: `run` splits some of them, of so many steps.
class TapSplit {
 public:
  TapSplit(const PlaneSplit& split, const PlaneLayout& layout, const WeightsBlock& from,
           const std::byte* tap, std::byte* to)
      : split_(split), layout_(layout), from_(from), tap_(tap), to_(to) {}

  // Returns whether some number is beyond planes.
  bool Run() {
    layout_.HasNeighboursAsPairs() ? SplitNeighbours() : SplitBlocks();
    return beyond_;
  }

 private:
  // Lines from `channel` and `line` of a step on, which have both numbers of their pairs, or the
  // first one, or none.
  void SplitLines(int64_t channel, int64_t line, int64_t lines, int64_t numbers, int64_t steps) {
    if (lines == 0 || steps == 0) return;
    const bool neighbours = layout_.HasNeighboursAsPairs();
    PlaneSplitArgs args = {
        .src = tap_ + channel / kPlaneLanes * from_.block + channel % kPlaneLanes * from_.channel,
        .row_bytes = neighbours ? 2 * from_.channel : from_.channel,
        .pair_bytes = neighbours ? from_.channel : from_.block,
        .step_bytes = 2 * from_.block,
        .rows = lines,
        .steps = steps,
        .first_mask = numbers > 0 ? kAllOutputs : 0,
        .second_mask = numbers > 1 ? kAllOutputs : 0,
        .dst = to_ + channel / kPlaneStep * layout_.StepBytes() + line * kPlaneLineBytes};
    split_.entry<PlaneSplitFunction>()(&args);
    beyond_ |= args.beyond != 0;
  }

  // A pair is of a channel and the one 16 after it.
  void SplitBlocks() {
    const int64_t steps = layout_.channels / kPlaneStep, rest = layout_.channels % kPlaneStep;
    SplitLines(0, 0, kPlaneLanes, 2, steps);
    if (rest == 0) return;
    const int64_t first = steps * kPlaneStep, singles = std::min<int64_t>(rest, kPlaneLanes);
    const int64_t pairs = rest - singles;
    SplitLines(first, 0, pairs, 2, 1);
    SplitLines(first + pairs, pairs, singles - pairs, 1, 1);
    SplitLines(first, singles, kPlaneLanes - singles, 0, 1);
  }

  // The lines of each block of channels are half of a step's.
  void SplitNeighbours() {
    constexpr int64_t kHalf = kPlaneLanes / 2;
    const int64_t steps = layout_.channels / kPlaneStep;
    for (int64_t half : {0, 1}) {
      SplitLines(half * kPlaneLanes, half * kHalf, kHalf, 2, steps);
      const int64_t first = steps * kPlaneStep + half * kPlaneLanes;
      if (steps * kPlaneStep == layout_.channels) continue;
      const int64_t rest = std::clamp<int64_t>(layout_.channels - first, 0, kPlaneLanes);
      const int64_t pairs = rest / 2, singles = rest % 2;
      SplitLines(first, half * kHalf, pairs, 2, 1);
      SplitLines(first + 2 * pairs, half * kHalf + pairs, singles, 1, 1);
      SplitLines(first, half * kHalf + pairs + singles, kHalf - pairs - singles, 0, 1);
    }
  }

  const PlaneSplit& split_;
  const PlaneLayout& layout_;
  const WeightsBlock& from_;
  const std::byte* const tap_;
  std::byte* const to_;
  bool beyond_ = false;
};

// Where the first plane of an output's number is among the lines of its block.
int64_t PlaceOf(const PlaneLayout& layout, int64_t tap, int64_t channel, int64_t output) {
  constexpr int64_t kNumberBytes = 2, kPairBytes = 4;
  const int64_t of_step = channel % kPlaneStep;
  const bool neighbours = layout.HasNeighboursAsPairs();
  const int64_t line = neighbours ? of_step / 2 : of_step % kPlaneLanes;
  const int64_t number = neighbours ? of_step % 2 : of_step / kPlaneLanes;
  return (tap * layout.TapSteps() + channel / kPlaneStep) * layout.StepBytes() +
         line * kPlaneLineBytes + output * kPairBytes + number * kNumberBytes;
}

void StorePlane(float number, std::byte* to) {
  const auto upper = static_cast<uint16_t>(std::bit_cast<uint32_t>(number) >> 16);
  std::memcpy(to, &upper, sizeof(upper));
}

float LoadPlane(const std::byte* from) {
  uint16_t upper;
  std::memcpy(&upper, from, sizeof(upper));
  return std::bit_cast<float>(uint32_t{upper} << 16);
}

float CutOff(float number) {
  return std::bit_cast<float>(std::bit_cast<uint32_t>(number) & 0xFFFF0000);
}

void HoldNumber(const PlaneLayout& layout, float number, std::byte* to) {
  float planes[3] = {number, 0, 0};
  if (std::isnan(number)) {
    planes[0] = std::bit_cast<float>(0x7FC00000u);
  } else if (std::isfinite(number)) {
    planes[0] = layout.planes == 1 ? std::copysign(INFINITY, number) : CutOff(number);
    planes[1] = layout.planes == 1 ? 0 : CutOff(number - planes[0]);
    planes[2] = number - planes[0] - planes[1];  // of three
  }
  for (int plane = 0; plane < layout.planes; ++plane)
    StorePlane(planes[plane], to + plane * kPlaneStepBytes);
}

}  // namespace

bool SplitWeights(const PlaneSplit& split, const PlaneLayout& layout, const WeightsBlock& from,
                  std::byte* lines) {
  bool beyond = false;
  for (int64_t tap = 0; tap < layout.taps; ++tap) {
    TapSplit tap_split(split, layout, from, from.begin + tap * from.tap,
                       lines + tap * layout.TapSteps() * layout.StepBytes());
    beyond |= tap_split.Run();
  }
  return beyond;
}

void HoldBeyond(const PlaneLayout& layout, const WeightsBlock& from, std::byte* lines) {
  for (int64_t tap = 0; tap < layout.taps; ++tap) {
    for (int64_t channel = 0; channel < layout.channels; ++channel) {
      const auto* numbers = reinterpret_cast<const float*>(from.begin + tap * from.tap +
                                                           channel / kPlaneLanes * from.block +
                                                           channel % kPlaneLanes * from.channel);
      for (int64_t output = 0; output < kPlaneLanes; ++output) {
        if (IsBeyondPlanes(numbers[output]))
          HoldNumber(layout, numbers[output], lines + PlaceOf(layout, tap, channel, output));
      }
    }
  }
}

void RestoreWeights(const PlaneLayout& layout, const std::byte* lines, float* to) {
  for (int64_t tap = 0; tap < layout.taps; ++tap) {
    for (int64_t channel = 0; channel < layout.channels; ++channel) {
      const int64_t row = (channel / kPlaneLanes * layout.taps + tap) * kPlaneLanes;
      float* const numbers = to + (row + channel % kPlaneLanes) * kPlaneLanes;
      for (int64_t output = 0; output < kPlaneLanes; ++output) {
        const std::byte* const first = lines + PlaceOf(layout, tap, channel, output);
        numbers[output] = 0;
        for (int plane = layout.planes - 1; plane >= 0; --plane)
          numbers[output] += LoadPlane(first + plane * kPlaneStepBytes);
      }
    }
  }
}

}  // namespace tilewire
