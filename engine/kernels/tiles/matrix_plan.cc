// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/tiles/matrix_plan.h"

#include <algorithm>
#include <utility>

#include "engine/base/checked_math.h"

namespace tilewire {
namespace {

constexpr int kWholeTile = 4;  // products of a pair of planes
constexpr int kMostPixels = 32;

using Planes = std::pair<int, int>;  // of src and of weights

// From each to the next only one of the two changes.
std::vector<Planes> PairsOf(int planes) {
  if (planes == 1) return {{0, 0}};
  if (planes == 2) return {{1, 0}, {0, 0}, {0, 1}};
  return {{2, 0}, {1, 0}, {1, 1}, {0, 1}, {0, 2}, {0, 0}};
}

MatrixProduct After(const std::vector<MatrixProduct>& before, MatrixProduct product) {
  const MatrixProduct* last = before.empty() ? nullptr : &before.back();
  product.loads_weights = last == nullptr || last->block != product.block ||
                          last->weights_plane != product.weights_plane;
  product.loads_src =
      last == nullptr || last->half != product.half || last->src_plane != product.src_plane;
  return product;
}

}  // namespace

// The second block takes the pairs backwards, and so begins with the planes that the first one
// ended with.
std::vector<MatrixProduct> MatrixProductsOf(int blocks, int halves, int planes) {
  std::vector<MatrixProduct> products;
  std::vector<Planes> pairs = PairsOf(planes);
  int half = 0;
  for (int block = 0; block < blocks; ++block) {
    for (const auto& [src, weights] : pairs) {
      for (int i = 0; i < halves; ++i) {
        if (i > 0) half = 1 - half;
        products.push_back(After(products, {.block = block,
                                            .half = half,
                                            .parts = kWholeTile / (blocks * halves),
                                            .src_plane = src,
                                            .weights_plane = weights}));
      }
    }
    std::reverse(pairs.begin(), pairs.end());
  }
  return products;
}

int MatrixPartsOfStep(int planes) { return kWholeTile * static_cast<int>(PairsOf(planes).size()); }

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

// After as many of them, each of the pixels of a whole tile has had a product to end beside.
int MatrixStepsWithEnd(int64_t steps, int planes) {
  return static_cast<int>(std::min<int64_t>(steps, DivUp(kMostPixels, MatrixPartsOfStep(planes))));
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
