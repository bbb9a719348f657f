// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/convolution/backward/dense_pixels.h"

#include <algorithm>
#include <cstring>

#include "engine/base/checked_math.h"
#include "engine/primitives/convolution/backward/spread_pixels.h"

namespace tilewire::convolution {
namespace {

// How far ahead the second cache fetches: of lines with gaps between them the core by itself
// fetches too few, and too late.
constexpr int64_t kRowsAhead = 2;

// `kLanes` floats of each pixel, a number that the compiler knows; `ahead`: to what is fetched.
template <int64_t kLanes>
void CopyPixels(const float* src, int64_t step, int64_t pixels, int64_t ahead, float* copy) {
  for (int64_t p = 0; p < pixels; ++p) {
    __builtin_prefetch(src + p * step + ahead, /*rw=*/0, /*locality=*/2);
    std::memcpy(copy + p * kLanes, src + p * step, kLanes * sizeof(float));
  }
}

WeightsGradientProblem DenseProblem(WeightsGradientProblem problem) {
  Geometry& geometry = problem.geometry;
  const int64_t lanes = problem.unit.lanes();
  const Spatial& out = geometry.out;
  geometry.in = out;
  geometry.stride = {1, 1, 1};
  problem.src.spatial = {out[1] * out[2] * lanes, out[2] * lanes, lanes};
  problem.src.block = out[0] * problem.src.spatial[0];
  problem.src.group = DivUp(geometry.ic, lanes) * problem.src.block;
  problem.src.image = geometry.groups * problem.src.group;
  FlattenPixels(&geometry, problem.src.spatial, problem.dst.spatial);
  return problem;
}

}  // namespace

bool DensePixels::Take(const WeightsGradientProblem& problem) {
  return LeavesPixels(problem.geometry) && problem.src.channel == 1;
}

DensePixels::DensePixels(const WeightsGradientProblem& problem)
    : geometry_(problem.geometry), src_(problem.src), dense_(DenseProblem(problem)) {}

void DensePixels::Run(const float* src, float* copy, const threading::Team& team) const {
  team.ParallelFor(geometry_.batch * BlocksOfImage(),
                   [&](int64_t index) { CopyBlock(src, index, copy + index * dense_.src.block); });
}

void DensePixels::RunImage(const float* src, int64_t image, float* copy) const {
  for (int64_t i = 0; i < BlocksOfImage(); ++i)
    CopyBlock(src, image * BlocksOfImage() + i, copy + i * dense_.src.block);
}

int64_t DensePixels::BlocksOfImage() const {
  return geometry_.groups * DivUp(geometry_.ic, int64_t{dense_.unit.lanes()});
}

// Blocks are numbered through the groups of all images.
void DensePixels::CopyBlock(const float* src, int64_t index, float* copy) const {
  const int64_t lanes = dense_.unit.lanes(), blocks = DivUp(geometry_.ic, lanes);
  const int64_t block = index % blocks, group = index / blocks % geometry_.groups;
  src += index / BlocksOfImage() * src_.image + group * src_.group + block * src_.block;
  const int64_t channels = std::min(lanes, geometry_.ic - block * lanes);
  const int64_t row_floats = geometry_.out[2] * dense_.unit.lanes();
  for (int64_t depth = 0; depth < geometry_.out[0]; ++depth) {
    for (int64_t row = 0; row < geometry_.out[1]; ++row) {
      CopyRow(src + depth * geometry_.stride[0] * src_.spatial[0] +
                  row * geometry_.stride[1] * src_.spatial[1],
              copy, channels);
      copy += row_floats;
    }
  }
}

// No other channels are read than those of the group.
void DensePixels::CopyRow(const float* src, float* copy, int64_t channels) const {
  const int64_t step = geometry_.stride[2] * src_.spatial[2], pixels = geometry_.out[2];
  const int64_t ahead = kRowsAhead * geometry_.stride[1] * src_.spatial[1];
  if (channels == 16) return CopyPixels<16>(src, step, pixels, ahead, copy);
  if (channels == 8 && dense_.unit.lanes() == 8)
    return CopyPixels<8>(src, step, pixels, ahead, copy);
  for (int64_t p = 0; p < pixels; ++p)
    std::copy(src + p * step, src + p * step + channels, copy + p * dense_.unit.lanes());
}

}  // namespace tilewire::convolution
