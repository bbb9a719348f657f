// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/convolution/bf16/bf16_stage.h"

#include <algorithm>

#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"

namespace tilewire::convolution {
namespace {

constexpr int64_t kLanes = 16;

bool IsOneTapWithoutPadding(const Geometry& geometry) {
  bool reaches_inside = geometry.kernel == Spatial{1, 1, 1} && geometry.pad == Spatial{0, 0, 0};
  for (int d = 0; d < 3; ++d) {
    reaches_inside = reaches_inside && (geometry.out[d] - 1) * geometry.stride[d] < geometry.in[d];
  }
  return reaches_inside;
}

}  // namespace

Bf16Stage::Bf16Stage(const Geometry& geometry, const ActivationStrides& src)
    : channels_(geometry.ic), geometry_(geometry), src_(src) {
  if (IsOneTapWithoutPadding(geometry)) {
    for (int d = 0; d < 3; ++d) src_.spatial[d] *= geometry.stride[d];
    geometry_.in = geometry.out;
    geometry_.stride = {1, 1, 1};
  }
  geometry_.ic = DivUp(channels_, kPairNumbers);
  rows_ = geometry_.in;
  steps_ = src_.spatial;
  for (int d = 1; d >= 0; --d) {
    if (rows_[d] != 1 && steps_[d] != rows_[2] * steps_[2]) break;
    rows_[2] *= rows_[d];
    rows_[d] = 1;
  }
}

absl::StatusOr<Bf16Stage> Bf16Stage::Create(absl::string_view name, const Geometry& geometry,
                                            const ActivationStrides& src) {
  const auto bytes = CheckedProduct({geometry.groups, geometry.ic + kBf16LineNumbers,
                                     geometry.in[0], geometry.in[1], geometry.in[2], kPairBytes});
  if (!bytes) return ResourceExhausted("the rounded copy of src is too large");
  Bf16Stage stage(geometry, src);
  ABSL_ASSIGN_OR_RETURN(stage.rounding_, jit::Compile<Bf16Rounding>(name));
  return stage;
}

int64_t Bf16Stage::Blocks() const { return DivUp(channels_, kBf16LineNumbers); }

ActivationStrides Bf16Stage::CopiedStrides() const {
  const Spatial& in = geometry_.in;
  ActivationStrides strides;
  strides.spatial = {in[1] * in[2] * kLanes, in[2] * kLanes, kLanes};
  strides.block = in[0] * strides.spatial[0];
  strides.group = Blocks() * strides.block;
  strides.image = geometry_.groups * strides.group;
  return strides;
}

void Bf16Stage::Run(const float* src, int64_t images, std::byte* to,
                    const threading::Team& team) const {
  constexpr int64_t kLinesAtOnce = 512;
  const int64_t rows = rows_[0] * rows_[1], blocks = geometry_.groups * Blocks();
  const int64_t pieces = DivUp(rows * rows_[2], kLinesAtOnce);
  const bool by_rows = rows > 1;
  const int64_t at_once = by_rows ? DivUp(rows, pieces) : DivUp(rows_[2], pieces);
  const int64_t parts = DivUp(by_rows ? rows : rows_[2], at_once);
  team.ParallelFor(images * blocks * parts, [&](int64_t index) {
    const int64_t first = index % parts * at_once, block = index / parts % blocks;
    const int64_t image = index / parts / blocks;
    RunBlock(src + image * src_.image, block, first, at_once, to + image * ImageBytes());
  });
}

void Bf16Stage::RunBlock(const float* src, int64_t block, int64_t first, int64_t count,
                         std::byte* to) const {
  const int64_t group = block / Blocks(), channel = block % Blocks() * kBf16LineNumbers;
  const ActivationStrides strides = CopiedStrides();
  src += group * src_.group + channel / kLanes * src_.block;
  to += (group * strides.group + block % Blocks() * strides.block) * kPairBytes;
  const int64_t left = channels_ - channel;
  Bf16RoundingArgs args = {.src_step = steps_[2] * kFloatBytes,
                           .first_mask = Bf16Rounding::MaskOf(left, 0),
                           .second_mask = Bf16Rounding::MaskOf(left, kLanes)};
  const auto round = rounding_->entry<Bf16RoundingFunction>();
  const auto run = [&](const float* from, int64_t line, int64_t lines) {
    args.src = reinterpret_cast<const std::byte*>(from);
    args.second = reinterpret_cast<const std::byte*>(left > kLanes ? from + src_.block : from);
    args.dst = to + line * kBf16LineBytes;
    args.lines = lines;
    round(&args);
  };
  if (rows_[0] * rows_[1] == 1)
    return run(src + first * steps_[2], first, std::min(count, rows_[2] - first));
  for (int64_t row = first; row < std::min(first + count, rows_[0] * rows_[1]); ++row) {
    run(src + row / rows_[1] * steps_[0] + row % rows_[1] * steps_[1], row * rows_[2], rows_[2]);
  }
}

}  // namespace tilewire::convolution
