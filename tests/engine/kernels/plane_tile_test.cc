// SPDX-License-Identifier: Apache-2.0
//
// Tiles of products of planes one after the other, as a piece of work has them. All numbers are
// small integers, so that sums are exact in any order.
#include "engine/kernels/planes/plane_tile.h"

#include <bit>
#include <memory>
#include <vector>

#include "engine/cpu/isa.h"
#include "engine/kernels/planes/plane_operands.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/support/tiles/tile_instruction.h"

namespace tilewire::testing {
namespace {

using ::testing::Each;

constexpr int kMostLines = 48, kNumbersOfLine = 32, kOutputsOfTile = 32;
constexpr float kUntouchedSum = 12345;

struct PlaneTileShape {
  int planes, rows, blocks, steps;
  int tail_lanes = 0;
  bool in_places = false;  // every third row is not stored, and the others lie apart
};

uint16_t Bf16Of(int number) {
  return static_cast<uint16_t>(std::bit_cast<uint32_t>(static_cast<float>(number)) >> 16);
}

// One tile of a product, dst[row][32 outputs]. Lines of a are [plane][step][line], where the steps
// of a row may be one line apart, as taps of a window are.
class PlaneTileCode {
 public:
  explicit PlaneTileCode(const PlaneTileShape& shape) : shape_(shape) {
    for (size_t i = 0; i < a_.size(); ++i) a_[i] = static_cast<int>(i * 37 % 11) - 5;
    for (size_t i = 0; i < b_.size(); ++i) b_[i] = static_cast<int>(i * 91 % 13) - 6;
    for (int number : a_) a_bits_.push_back(Bf16Of(number));
    for (int number : b_) b_bits_.push_back(Bf16Of(number));
    for (int i = 0; i < kOutputsOfTile; ++i) bias_.push_back(static_cast<float>(i * 3 - 20));
    for (int row = 0; row < kPlaneRows; ++row) places_.push_back(PlaceOf(row));
    code_ = GeneratePlaneTile("test/planes", Config()).value();
  }

  const jit::Generator& code() const { return *code_; }
  const std::vector<float>& dst() const { return dst_; }

  void Call(MatrixTiles* tiles) {
    const IntegerTileArgs args = {.src = reinterpret_cast<const std::byte*>(a_bits_.data()),
                                  .weights = reinterpret_cast<const std::byte*>(b_bits_.data()),
                                  .bias = reinterpret_cast<const std::byte*>(bias_.data()),
                                  .scales = nullptr,
                                  .compensation = nullptr,
                                  .dst = reinterpret_cast<std::byte*>(dst_.data()),
                                  .loops = {},
                                  .tiles = tiles,
                                  .places = places_.data()};
    code_->entry<IntegerTileFunction>()(&args);
  }

  std::vector<float> Expected() const {
    std::vector<float> expected(dst_.size(), kUntouchedSum);
    for (int row = 0; row < shape_.rows; ++row) {
      const int place = shape_.in_places ? places_[row] / 4 : row * kOutputsOfTile;
      for (int o = 0; places_[row] >= 0 && o < Outputs(); ++o)
        expected[place + o] = bias_[o] + static_cast<float>(SumOf(row, o));
    }
    return expected;
  }

 private:
  int32_t PlaceOf(int row) const {
    if (!shape_.in_places) return 0;
    return row % 3 == 2 ? -1 : (row + row / 4) * kOutputsOfTile * 4;
  }
  int Outputs() const {
    return shape_.blocks * 16 - (shape_.tail_lanes == 0 ? 0 : 16 - shape_.tail_lanes);
  }
  // Two channels of lines, of which each has taps that overlap; unevenly far apart.
  std::vector<int64_t> Steps() const {
    std::vector<int64_t> steps;
    for (int i = 0; i < shape_.steps; ++i)
      steps.push_back((i % 2 * kMostLines + i / 2) * kPlaneLineBytes);
    return steps;
  }

  PlaneTileConfig Config() const {
    PlaneTileConfig config{.planes = shape_.planes,
                           .epilogue = {.unit = VectorUnit::Of(cpu::Isa::kAmx),
                                        .blocks = shape_.blocks,
                                        .pixels = shape_.rows,
                                        .dst_pixel_bytes = kOutputsOfTile * 4,
                                        .dst_block_bytes = 64,
                                        .bias = true,
                                        .tail_lanes = shape_.tail_lanes,
                                        .packed_channels = true},
                           .steps = Steps(),
                           .plane_bytes = 2 * kMostLines * kPlaneLineBytes};
    if (shape_.in_places) config.rows = TileEndParts::Pixels::kInPlaces;
    return config;
  }

  int SumOf(int row, int output) const {
    int sum = 0;
    const std::vector<int64_t> steps = Steps();
    for (size_t step = 0; step < steps.size(); ++step) {
      for (int i = 0; i < shape_.planes; ++i) {
        for (int j = 0; i + j < shape_.planes; ++j) {
          const int64_t a = (steps[step] / kPlaneLineBytes + i * 2 * kMostLines + row) * 32;
          const int64_t b = (static_cast<int64_t>(step) * shape_.planes + j) * 1024 +
                            output / 16 * 512 + output % 16 * 2;
          for (int n = 0; n < kNumbersOfLine; ++n) sum += a_[a + n] * b_[b + n / 2 * 32 + n % 2];
        }
      }
    }
    return sum;
  }

  const PlaneTileShape shape_;
  std::vector<int> a_ = std::vector<int>(3 * 2 * kMostLines * kNumbersOfLine);
  std::vector<int> b_ = std::vector<int>(12 * 3 * 1024);
  std::vector<uint16_t> a_bits_, b_bits_;
  std::vector<float> bias_;
  std::vector<int32_t> places_;
  std::vector<float> dst_ = std::vector<float>(kMostLines * kOutputsOfTile, kUntouchedSum);
  std::unique_ptr<const jit::Generator> code_;
};

class PlaneTileTest : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (!cpu::Supports(cpu::Isa::kAmx)) GTEST_SKIP() << "the CPU lacks amx";
  }
};

TEST_P(PlaneTileTest, TheEndOfEachRunsInsideTheNextCall) {
  const int planes = GetParam();
  for (const int steps : {1, 2, 3, 8, 12}) {
    SCOPED_TRACE(steps);
    std::vector<std::unique_ptr<PlaneTileCode>> tiles;
    for (const PlaneTileShape& shape :
         {PlaneTileShape{planes, 32, 2, steps}, PlaneTileShape{planes, 17, 1, steps},
          PlaneTileShape{planes, 32, 2, steps, 0, true}, PlaneTileShape{planes, 32, 2, steps, 5},
          PlaneTileShape{planes, 11, 2, steps, 0, true}, PlaneTileShape{planes, 3, 1, steps, 9},
          PlaneTileShape{planes, 27, 1, steps, 0, true}, PlaneTileShape{planes, 16, 2, steps}})
      tiles.push_back(std::make_unique<PlaneTileCode>(shape));
    MatrixTiles shared;
    for (size_t i = 0; i < tiles.size(); ++i) {
      tiles[i]->Call(&shared);
      EXPECT_THAT(tiles[i]->dst(), Each(kUntouchedSum)) << i;
      if (i > 0) {
        EXPECT_EQ(tiles[i - 1]->dst(), tiles[i - 1]->Expected()) << i - 1;
      }
    }
    FinishMatrixTiles(&shared);
    EXPECT_EQ(tiles.back()->dst(), tiles.back()->Expected());
  }
}

TEST_P(PlaneTileTest, AnEndMayRunBeforeTheNextCall) {
  PlaneTileCode first({GetParam(), 32, 2, 3}), second({GetParam(), 32, 2, 3});
  MatrixTiles shared;
  first.Call(&shared);
  EndMatrixTile(&shared);
  EXPECT_EQ(first.dst(), first.Expected());
  EXPECT_EQ(shared.parts, nullptr);
  second.Call(&shared);
  FinishMatrixTiles(&shared);
  EXPECT_EQ(second.dst(), second.Expected());
}

// The parts are called (call rax: FF D0) one after each product of the first steps.
TEST_P(PlaneTileTest, PartsOfTheEndStandBetweenProducts) {
  const PlaneTileCode tile({GetParam(), 32, 2, 12});
  const auto* code = tile.code().entry<const uint8_t*>();
  const int wanted = MatrixStepsWithEnd(12, GetParam()) * MatrixPartsOfStep(GetParam());
  int products = 0, parts = 0;
  for (size_t i = 0; parts < wanted && i + 16 < tile.code().code_bytes();) {
    const auto instruction = DecodeTileInstruction(code + i);
    if (instruction && instruction->operation == TileOperation::kMultiplyBf16) {
      ++products;
      EXPECT_LE(products, parts + 1);
    }
    if (code[i] == 0xFF && code[i + 1] == 0xD0) {
      ++parts;
      EXPECT_EQ(parts, products);
    }
    i += instruction ? instruction->length : 1;
  }
  EXPECT_EQ(products, wanted);
  EXPECT_GE(wanted, kPlaneRows);
}

INSTANTIATE_TEST_SUITE_P(Planes, PlaneTileTest, ::testing::Values(1, 2, 3));

}  // namespace
}  // namespace tilewire::testing
