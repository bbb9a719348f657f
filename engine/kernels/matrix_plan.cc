// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/matrix_plan.h"

#include <algorithm>

#include "engine/base/checked_math.h"

namespace tilewire {
namespace {

// After as many steps of four products, each of the 32 pixels has had one to end beside.
constexpr int64_t kMostStepsWithEnd = 8;

}  // namespace

std::vector<MatrixProduct> MatrixProductsOf(int blocks, int halves) {
  std::vector<MatrixProduct> products;
  const int parts = kMatrixPartsOfStep / (blocks * halves);
  for (int block = 0; block < blocks; ++block) {
    for (int i = 0; i < halves; ++i) {
      const int half = block % 2 == 0 ? i : halves - 1 - i;
      const bool has_src = !products.empty() && products.back().half == half;
      products.push_back({block, half, /*loads_weights=*/i == 0, !has_src, parts});
    }
  }
  return products;
}

std::vector<int64_t> MatrixStepsOf(const TapLoops& loops, int64_t input_blocks) {
  const auto& [depth, height, width] = loops.kernel;
  std::vector<int64_t> steps;
  for (int64_t i = 0; i < input_blocks * depth * height * width; ++i) {
    const int64_t w = i % width, h = i / width % height, d = i / width / height % depth;
    steps.push_back(i / width / height / depth * loops.src_block + d * loops.src_tap[0] +
                    h * loops.src_tap[1] + w * loops.src_tap[2]);
  }
  return steps;
}

int MatrixStepsWithEnd(int64_t steps) {
  return static_cast<int>(std::min(steps, kMostStepsWithEnd));
}

std::vector<std::vector<PixelRun>> MatrixEndOf(const std::vector<PixelRun>& runs,
                                               int64_t dst_pixel_bytes, int parts) {
  int pixels = 0;
  for (const PixelRun& run : runs) pixels += run.count;
  const int of_part = DivUp(pixels, parts);
  std::vector<std::vector<PixelRun>> end(parts);
  int ended = 0;
  for (PixelRun run : runs) {
    while (run.count > 0) {
      const int count = std::min(run.count, of_part - ended % of_part);
      end[ended / of_part].push_back({run.first, count, run.dst_bytes});
      run = {run.first + count, run.count - count, run.dst_bytes + count * dst_pixel_bytes};
      ended += count;
    }
  }
  return end;
}

}  // namespace tilewire
