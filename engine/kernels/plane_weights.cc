// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/plane_weights.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace tilewire {
namespace {

constexpr uint64_t kAllOutputs = 0xFFFF;

// Lines are pairs of channels, of which the last step may have fewer.
bool SplitTap(const PlaneSplit& split, const PlaneLayout& layout, PlaneSplitArgs args,
              std::byte* to) {
  args.beyond = 0;
  args.dst = to;
  const int64_t steps = layout.channels / kPlaneStep, rest = layout.channels % kPlaneStep;
  const auto run = [&](int64_t lines, int64_t count, uint64_t first, uint64_t second) {
    if (lines == 0 || count == 0) return;
    args.rows = lines;
    args.steps = count;
    args.first_mask = first;
    args.second_mask = second;
    split.entry<PlaneSplitFunction>()(&args);
    args.src += lines * args.row_bytes;
    args.dst += lines * kPlaneLineBytes;
  };
  run(kPlaneLanes, steps, kAllOutputs, kAllOutputs);
  if (rest == 0) return args.beyond != 0;
  if (steps > 0) args.src += steps * args.step_bytes - kPlaneLanes * args.row_bytes;
  args.dst = to + steps * layout.StepBytes();
  const int64_t singles = std::min<int64_t>(rest, kPlaneLanes), pairs = rest - singles;
  run(pairs, 1, kAllOutputs, kAllOutputs);
  run(singles - pairs, 1, kAllOutputs, 0);
  run(kPlaneLanes - singles, 1, 0, 0);
  return args.beyond != 0;
}

// Where the first plane of an output's number is among the lines of its block.
int64_t PlaceOf(const PlaneLayout& layout, int64_t tap, int64_t channel, int64_t output) {
  constexpr int64_t kNumberBytes = 2, kPairBytes = 4;
  return (tap * layout.TapSteps() + channel / kPlaneStep) * layout.StepBytes() +
         channel % kPlaneLanes * kPlaneLineBytes + output * kPairBytes +
         channel % kPlaneStep / kPlaneLanes * kNumberBytes;
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
    planes[1] = layout.planes == 1 ? 0 : number - planes[0];
  }
  for (int plane = 0; plane < layout.planes; ++plane)
    StorePlane(planes[plane], to + plane * kPlaneStepBytes);
}

}  // namespace

bool SplitWeights(const PlaneSplit& split, const PlaneLayout& layout, const WeightsBlock& from,
                  std::byte* lines) {
  bool beyond = false;
  for (int64_t tap = 0; tap < layout.taps; ++tap) {
    const PlaneSplitArgs args = {.src = from.begin + tap * from.tap,
                                 .row_bytes = from.channel,
                                 .pair_bytes = from.block,
                                 .step_bytes = 2 * from.block};
    beyond |= SplitTap(split, layout, args, lines + tap * layout.TapSteps() * layout.StepBytes());
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
        if (IsBeyondPlanes(numbers[output], layout.planes))
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
