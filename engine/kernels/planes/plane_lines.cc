// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/planes/plane_lines.h"

#include <algorithm>
#include <cstring>

#include "engine/base/status_macros.h"

namespace tilewire {
namespace {

constexpr uint64_t kAllLanes = 0xFFFF;

constexpr uint64_t LowestLanes(int64_t count) { return (uint64_t{1} << count) - 1; }

}  // namespace

absl::StatusOr<std::unique_ptr<const PlaneLines>> PlaneLines::Create(
    absl::string_view name, const PlaneProductShape& shape) {
  std::unique_ptr<PlaneLines> lines(new PlaneLines(shape));
  if (shape.src_type == DataType::kBf16) return lines;
  ABSL_ASSIGN_OR_RETURN(
      lines->split_,
      jit::Compile<PlaneSplit>(name, shape.planes, PlaneSplit::SourceLines(shape.planes)));
  return lines;
}

int64_t PlaneLines::code_bytes() const {
  return split_ == nullptr ? 0 : static_cast<int64_t>(split_->code_bytes());
}

int64_t PlaneLines::bytes() const {
  if (shape_.ReadsInPlace()) return 0;
  const int64_t taps = shape_.strips.AreShared() ? 1 : shape_.taps;
  return taps * layout_.TapSteps() * StepBytes();
}

std::vector<int64_t> PlaneLines::Steps() const {
  const std::vector<int64_t>& taps = shape_.strips.taps;
  std::vector<int64_t> steps;
  for (int64_t tap = 0; tap < shape_.taps; ++tap) {
    const int64_t first = shape_.strips.AreShared() ? taps[tap] * kPlaneLineBytes
                                                    : tap * layout_.TapSteps() * StepBytes();
    const int64_t step_bytes = shape_.ReadsInPlace() ? shape_.src_block : StepBytes();
    for (int64_t step = 0; step < layout_.TapSteps(); ++step)
      steps.push_back(first + step * step_bytes);
  }
  return steps;
}

bool PlaneLines::Split(const PlaneRows& src, int64_t product, int64_t row, int64_t rows,
                       std::byte* to) const {
  bool beyond = false;
  const auto split = [&](const PlaneRows::Run& run) {
    std::byte* const first = to + run.first * kPlaneLineBytes;
    if (shape_.src_type == DataType::kBf16) return CopyRun(run, first);
    beyond |= SplitRun(run, first);
  };
  if (shape_.strips.AreShared()) {
    src.ForEachLine(product, row, rows, split);
    return beyond;
  }
  for (int64_t tap = 0; tap < shape_.taps; ++tap, to += layout_.TapSteps() * StepBytes())
    src.ForEachRun(product, row, static_cast<int>(rows), tap, split);
  return beyond;
}

bool PlaneLines::SplitRun(const PlaneRows::Run& run, std::byte* to) const {
  PlaneSplitArgs args = {.src = run.src,
                         .row_bytes = run.row_bytes,
                         .pair_bytes = shape_.src_block,
                         .step_bytes = 2 * shape_.src_block,
                         .rows = run.rows,
                         .steps = layout_.TapSteps(),
                         .first_mask = 0,
                         .second_mask = 0,
                         .dst = to,
                         .plane_bytes = PlaneBytes()};
  const auto function = split_->entry<PlaneSplitFunction>();
  if (run.src == nullptr) {
    function(&args);
    return false;
  }
  args.first_mask = args.second_mask = kAllLanes;
  const int64_t whole = shape_.channels / kPlaneStep, rest = shape_.channels % kPlaneStep;
  if (whole > 0) {
    args.steps = whole;
    function(&args);
  }
  if (rest == 0) return args.beyond != 0;
  args.src += whole * args.step_bytes;
  args.dst += whole * StepBytes();
  args.steps = 1;
  args.first_mask = LowestLanes(std::min<int64_t>(rest, kPlaneLanes));
  args.second_mask = LowestLanes(std::max<int64_t>(rest - kPlaneLanes, 0));
  function(&args);
  return args.beyond != 0;
}

void PlaneLines::CopyRun(const PlaneRows::Run& run, std::byte* to) const {
  for (int64_t step = 0; step < layout_.TapSteps(); ++step, to += StepBytes()) {
    const std::byte* from = run.src + step * shape_.src_block;
    if (run.src == nullptr) std::memset(to, 0, run.rows * kPlaneLineBytes);
    for (int row = 0; run.src != nullptr && row < run.rows; ++row, from += run.row_bytes)
      std::memcpy(to + row * kPlaneLineBytes, from, kPlaneLineBytes);
  }
}

uint32_t PlaneLines::BeyondRows(const PlaneRows& src, int64_t product, int64_t row,
                                int rows) const {
  uint32_t beyond = 0;
  for (int64_t tap = 0; tap < shape_.taps; ++tap) {
    src.ForEachRun(product, row, rows, tap, [&](const PlaneRows::Run& run) {
      if (run.src != nullptr) beyond |= BeyondRowsOf(run);
    });
  }
  return beyond;
}

uint32_t PlaneLines::BeyondRowsOf(const PlaneRows::Run& run) const {
  uint32_t rows = 0;
  for (int row = 0; row < run.rows; ++row) {
    bool beyond = false;
    for (int64_t c = 0; c < shape_.channels && !beyond; ++c) {
      const auto* block = reinterpret_cast<const float*>(run.src + row * run.row_bytes +
                                                         c / kPlaneLanes * shape_.src_block);
      beyond = IsBeyondPlanes(block[c % kPlaneLanes]);
    }
    if (beyond) rows |= 1u << (run.first + row);
  }
  return rows;
}

}  // namespace tilewire
