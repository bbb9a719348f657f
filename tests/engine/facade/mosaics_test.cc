// SPDX-License-Identifier: Apache-2.0
//
// A concatenation of concatenations along another dimension: no tensor is copied into it, so that
// what is written first must be where the last one expects it.
#include <string>
#include <vector>

#include "tests/engine/facade/typed_model.h"

namespace tilewire::testing {
namespace {

const std::vector<int64_t> kTile = {2, 16, 4, 8};

// Tile i is x * (i + 1), made by a convolution.
OnnxBuilder Mosaic(int inner, int outer) {
  OnnxBuilder model;
  model.Input("x", kTile);
  for (int tile = 0; tile < 4; ++tile) {
    const std::string name = std::to_string(tile);
    std::vector<float> scaled(16 * 16, 0.0f);
    for (int c = 0; c < 16; ++c) scaled[17 * c] = static_cast<float>(tile + 1);
    model.Floats("w" + name, {16, 16, 1, 1}, scaled).Node("Conv", {"x", "w" + name}, {"t" + name});
  }
  model.Node("Concat", {"t0", "t1"}, {"a"}, {Int("axis", inner)});
  model.Node("Concat", {"t2", "t3"}, {"b"}, {Int("axis", inner)});
  model.Node("Concat", {"a", "b"}, {"y"}, {Int("axis", outer)});
  return model.Output("y");
}

// In row-major order.
std::vector<float> Expected(const std::vector<float>& x, int inner, int outer) {
  std::vector<int64_t> dims = kTile;
  for (int axis : {inner, outer}) dims[axis] *= 2;
  std::vector<float> expected;
  std::vector<int64_t> at(4, 0);
  for (int64_t n = dims[0] * dims[1] * dims[2] * dims[3], i = 0; i < n; ++i) {
    int64_t rest = i, from = 0;
    for (int d = 3; d >= 0; --d) {
      at[d] = rest % dims[d];
      rest /= dims[d];
    }
    for (int d = 0; d < 4; ++d) from = from * kTile[d] + at[d] % kTile[d];
    const int64_t tile = at[outer] / kTile[outer] * 2 + at[inner] / kTile[inner];
    expected.push_back(x[from] * static_cast<float>(tile + 1));
  }
  return expected;
}

TEST(MosaicsTest, EveryTileIsInItsPlace) {
  std::vector<float> x(2 * 16 * 4 * 8);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i + 1);
  for (int inner = 0; inner < 4; ++inner) {
    for (int outer = 0; outer < 4; ++outer) {
      if (inner == outer) continue;
      SCOPED_TRACE(::testing::Message() << inner << " inside " << outer);
      ExpectAnswer<float>(Mosaic(inner, outer), {Bytes(x)}, Expected(x, inner, outer));
    }
  }
}

}  // namespace
}  // namespace tilewire::testing
