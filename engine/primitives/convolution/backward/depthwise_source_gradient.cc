// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/convolution/backward/depthwise_source_gradient.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/primitives/creation.h"
#include "engine/threading/ranges.h"
#include "engine/threading/stop.h"

namespace tilewire::convolution {
namespace {

constexpr int64_t kBlocksAtOnce = 16;  // whose weights are copied in a piece of work

// From a row of taps to the next one that reaches the same pixels, upwards, and from the row of
// diff_dst that it reaches them from to that of the next.
struct TapRowSteps {
  int64_t taps, diff_dst;
};
TapRowSteps StepsOfTapRows(const Geometry& geometry) {
  const int64_t common = std::gcd(geometry.tap_step[1], geometry.stride[1]);
  return {geometry.stride[1] / common, geometry.tap_step[1] / common};
}

// The rows of diff_src, with rows of taps in descending order, by elements.
std::vector<SourceRow> SourceRows(const Geometry& geometry, int64_t dst_row, int64_t tap_row) {
  std::vector<SourceRow> rows(geometry.in[1]);
  for (int64_t y = 0; y < geometry.in[1]; ++y) {
    for (int64_t tap = geometry.kernel[1] - 1; tap >= 0; --tap) {
      const int64_t reached = y + geometry.pad[1] - tap * geometry.tap_step[1];
      if (reached < 0 || reached % geometry.stride[1] != 0) continue;
      const int64_t output = reached / geometry.stride[1];
      if (output >= geometry.out[1]) break;
      if (rows[y].tap_rows++ == 0) {
        rows[y].diff_dst = output * dst_row * kFloatBytes;
        rows[y].weights = tap * tap_row * kFloatBytes;
      }
    }
  }
  return rows;
}

}  // namespace

// Pixel first + j * stride is reached by tap k from pixel j + (first + pad - k * step) / stride of
// diff_dst, where that is a whole number. Taps go down, so that these pixels go up.
std::vector<SourcePhase> SourcePhases(const Geometry& geometry, int d) {
  const int64_t stride = geometry.stride[d], step = geometry.tap_step[d];
  std::vector<SourcePhase> phases;
  for (int64_t first = 0; first < std::min(stride, geometry.in[d]); ++first) {
    SourcePhase phase = {.first = first, .pixels = DivUp(geometry.in[d] - first, stride)};
    for (int64_t tap = geometry.kernel[d] - 1; tap >= 0; --tap) {
      if ((first + geometry.pad[d] - tap * step) % stride == 0) phase.taps.push_back(tap);
    }
    phase.tap_step = step / std::gcd(step, stride);
    // Where there are no taps, one that reaches nothing.
    phase.pad = phase.taps.empty() ? -geometry.out[d]
                                   : (phase.taps[0] * step - first - geometry.pad[d]) / stride;
    phases.push_back(std::move(phase));
  }
  return phases;
}

absl::StatusOr<DepthwiseSourceGradient> DepthwiseSourceGradient::Create(
    absl::string_view name, const DepthwiseSourceProblem& problem) {
  DepthwiseSourceGradient gradient(problem);
  ABSL_RETURN_IF_ERROR(gradient.IsPlanar() ? gradient.CompilePlane(name)
                                           : gradient.AddPhases(name));
  return gradient;
}

// Whether an image has one plane, of whole vectors near each other, a row of whose taps fits in
// registers.
bool DepthwiseSourceGradient::IsPlanar() const {
  constexpr int64_t kLargestSpan = std::numeric_limits<int32_t>::max() / kFloatBytes / 2;
  const DepthwiseSourceProblem& p = problem_;
  const Geometry& geometry = p.geometry;
  const bool is_plane = geometry.out[0] == 1 && geometry.kernel[0] == 1 && geometry.in[0] == 1 &&
                        geometry.pad[0] == 0;
  const bool has_whole_vectors = TailChannels() == 0 || (!p.packed_diff_src && !p.packed_diff_dst);
  const auto is_near = [](int64_t stride, int64_t count) {
    const std::optional<int64_t> span = CheckedMul(stride, count);
    return span && *span <= kLargestSpan;
  };
  const TapRowSteps steps = StepsOfTapRows(geometry);
  return is_plane && has_whole_vectors &&
         DepthwiseSourcePlaneGenerator::Holds(p.unit, geometry.kernel[2], geometry.stride[2]) &&
         is_near(p.diff_src.spatial[1], 1) && is_near(p.diff_src.spatial[2], geometry.in[2]) &&
         is_near(p.diff_dst.spatial[1], steps.diff_dst) &&
         is_near(p.diff_dst.spatial[2], geometry.out[2]) &&
         is_near(p.weights_taps[1], geometry.kernel[1] * steps.taps);
}

absl::Status DepthwiseSourceGradient::CompilePlane(absl::string_view name) {
  const DepthwiseSourceProblem& p = problem_;
  const Geometry& geometry = p.geometry;
  const TapRowSteps steps = StepsOfTapRows(geometry);
  DepthwiseSourcePlane plane{.unit = p.unit};
  plane.src_pixels = geometry.in[2];
  plane.dst_pixels = geometry.out[2];
  plane.taps = geometry.kernel[2];
  plane.stride = geometry.stride[2];
  plane.tap_step = geometry.tap_step[2];
  plane.pad = geometry.pad[2];
  plane.src_pixel = p.diff_src.spatial[2] * kFloatBytes;
  plane.src_row = p.diff_src.spatial[1] * kFloatBytes;
  plane.dst_pixel = p.diff_dst.spatial[2] * kFloatBytes;
  plane.weights_tap = p.weights_taps[2] * kFloatBytes;
  plane.next_dst_row = steps.diff_dst * p.diff_dst.spatial[1] * kFloatBytes;
  plane.next_tap_row = -steps.taps * p.weights_taps[1] * kFloatBytes;
  plane.adds = p.post_ops.HasSum();
  rows_ = SourceRows(geometry, p.diff_dst.spatial[1], p.weights_taps[1]);
  ABSL_ASSIGN_OR_RETURN(plane_, jit::Compile<DepthwiseSourcePlaneGenerator>(name, plane));
  return absl::OkStatus();
}

absl::Status DepthwiseSourceGradient::AddPhases(absl::string_view name) {
  const std::vector<SourcePhase> depths = SourcePhases(problem_.geometry, 0),
                                 rows = SourcePhases(problem_.geometry, 1),
                                 pixels = SourcePhases(problem_.geometry, 2);
  for (const SourcePhase& depth : depths) {
    for (const SourcePhase& row : rows) {
      for (const SourcePhase& pixel : pixels)
        ABSL_RETURN_IF_ERROR(AddPhase(name, {&depth, &row, &pixel}));
    }
  }
  return absl::OkStatus();
}

int64_t DepthwiseSourceGradient::Blocks() const {
  return DivUp(problem_.geometry.groups, problem_.unit.lanes());
}

int64_t DepthwiseSourceGradient::TailChannels() const {
  return problem_.geometry.groups % problem_.unit.lanes();
}

absl::Status DepthwiseSourceGradient::AddPhase(absl::string_view name,
                                               const SourcePhase* const (&dims)[3]) {
  Phase phase{.weights = block_floats_};
  for (int d = 0; d < 3; ++d) phase.diff_src += dims[d]->first * problem_.diff_src.spatial[d];
  const Spatial& steps = problem_.weights_taps;
  for (int64_t depth : dims[0]->taps) {
    for (int64_t row : dims[1]->taps) {
      for (int64_t pixel : dims[2]->taps)
        phase.taps.push_back(depth * steps[0] + row * steps[1] + pixel * steps[2]);
    }
  }
  block_floats_ += static_cast<int64_t>(phase.taps.size()) * problem_.unit.lanes();
  const auto add = [&](int64_t channels, std::vector<DirectDriver>* to) -> absl::Status {
    ABSL_ASSIGN_OR_RETURN(DirectDriver driver,
                          DirectDriver::Create(name, ProblemOf(dims, channels)));
    to->push_back(std::move(driver));
    return absl::OkStatus();
  };
  if (problem_.geometry.groups >= problem_.unit.lanes())
    ABSL_RETURN_IF_ERROR(add(problem_.unit.lanes(), &phase.whole));
  if (TailChannels() != 0) ABSL_RETURN_IF_ERROR(add(TailChannels(), &phase.tail));
  phases_.push_back(std::move(phase));
  return absl::OkStatus();
}

// One block of channels of one image.
DirectProblem DepthwiseSourceGradient::ProblemOf(const SourcePhase* const (&dims)[3],
                                                 int64_t channels) const {
  DirectProblem problem{.unit = problem_.unit};
  problem.depthwise = true;
  problem.tap_channels = 1;
  problem.packed_src = problem_.packed_diff_dst;
  problem.packed_dst = problem_.packed_diff_src;
  problem.post_ops = problem_.post_ops;
  problem.src = problem_.diff_dst;
  problem.dst = problem_.diff_src;
  Geometry& geometry = problem.geometry;
  geometry.batch = geometry.ic = 1;
  geometry.oc = channels;
  for (int d = 0; d < 3; ++d) {
    geometry.in[d] = problem_.geometry.out[d];
    geometry.out[d] = dims[d]->pixels;
    geometry.kernel[d] = std::max<int64_t>(1, static_cast<int64_t>(dims[d]->taps.size()));
    geometry.tap_step[d] = dims[d]->tap_step;
    geometry.pad[d] = dims[d]->pad;
    problem.dst.spatial[d] *= problem_.geometry.stride[d];
  }
  return problem;
}

int64_t DepthwiseSourceGradient::code_bytes() const {
  int64_t bytes = plane_ == nullptr ? 0 : static_cast<int64_t>(plane_->code_bytes());
  for (const Phase& phase : phases_) {
    for (const auto* drivers : {&phase.whole, &phase.tail}) {
      for (const DirectDriver& driver : *drivers) bytes += driver.code_bytes();
    }
  }
  return bytes;
}

void DepthwiseSourceGradient::Run(const Operands& operands, float* scratchpad,
                                  const threading::Team& team) const {
  if (plane_ == nullptr) return RunPhases(operands, scratchpad, team);
  team.ParallelFor(problem_.geometry.batch * Blocks(), [&](int64_t index) {
    if (!threading::Stopped()) RunPlane(operands, index / Blocks(), index % Blocks());
  });
}

void DepthwiseSourceGradient::RunPlane(const Operands& operands, int64_t image,
                                       int64_t block) const {
  const ActivationStrides &src = problem_.diff_src, &dst = problem_.diff_dst;
  const DepthwiseSourcePlaneArgs args = {
      .diff_dst = operands.diff_dst + image * dst.image + block * dst.block,
      .weights = operands.weights + block * problem_.weights_block,
      .diff_src = operands.diff_src + image * src.image + block * src.block,
      .rows = rows_.data(),
      .count = static_cast<int64_t>(rows_.size())};
  plane_->entry<DepthwiseSourcePlaneGenerator::Function>()(&args);
}

void DepthwiseSourceGradient::RunPhases(const Operands& operands, float* scratchpad,
                                        const threading::Team& team) const {
  threading::ParallelForItems(team, Blocks(), kBlocksAtOnce, [&](int64_t block) {
    CopyWeights(operands.weights + block * problem_.weights_block,
                scratchpad + block * block_floats_);
  });
  team.ParallelFor(problem_.geometry.batch * Blocks(), [&](int64_t index) {
    const int64_t block = index % Blocks();
    RunBlock(operands, scratchpad + block * block_floats_, index / Blocks(), block);
  });
}

// The weights of a block, phase after phase.
void DepthwiseSourceGradient::CopyWeights(const float* weights, float* copy) const {
  const int64_t lanes = problem_.unit.lanes();
  for (const Phase& phase : phases_) {
    for (int64_t tap : phase.taps) copy = std::copy(weights + tap, weights + tap + lanes, copy);
  }
}

void DepthwiseSourceGradient::RunBlock(const Operands& operands, const float* weights,
                                       int64_t image, int64_t block) const {
  const ActivationStrides &src = problem_.diff_src, &dst = problem_.diff_dst;
  const bool is_tail = block == Blocks() - 1 && TailChannels() != 0;
  const float* const diff_dst = operands.diff_dst + image * dst.image + block * dst.block;
  float* const diff_src = operands.diff_src + image * src.image + block * src.block;
  for (const Phase& phase : phases_) {
    if (threading::Stopped()) return;
    (is_tail ? phase.tail : phase.whole)[0].Run(diff_dst, weights + phase.weights, nullptr,
                                                diff_src + phase.diff_src,
                                                threading::Team::Serial());
  }
}

}  // namespace tilewire::convolution
