// SPDX-License-Identifier: Apache-2.0
//
// Tiles of all shapes one after the other, as a piece of work has them: the end of each runs inside
// the call of the next.
#include "engine/kernels/tiles/matrix_tile.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "engine/cpu/isa.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/support/tiles/tile_instruction.h"

namespace tilewire::testing {
namespace {

using ::testing::Each;

constexpr int kMostPixels = 40, kInputBlocks = 4, kMostSteps = 12;
constexpr int64_t kPixelBytes = kInputBlocks * kMatrixStepBytes;  // of src
constexpr int64_t kBlockBytes = kMostSteps * kMatrixWeightsBytes;
constexpr int32_t kUntouched = 123456789;

struct TileShape {
  int pixels, blocks, tail_lanes;
  int taps, input_blocks;
  bool apart;  // the second half of the pixels is stored elsewhere, and one between them is not
};

// One tile of s32 results, dst[pixel][2 blocks of 16].
class MatrixTile {
 public:
  explicit MatrixTile(const TileShape& shape) : shape_(shape) {
    for (size_t i = 0; i < src_.size(); ++i) src_[i] = static_cast<uint8_t>(i * 37 % 251);
    for (size_t i = 0; i < weights_.size(); ++i) weights_[i] = static_cast<int8_t>(i * 91 % 249);
    for (size_t i = 0; i < bias_.size(); ++i) bias_[i] = static_cast<float>(i) * 3 - 20;
    code_ = GenerateMatrixTile("test/tile", Config()).value();
  }

  const jit::Generator& code() const { return *code_; }

  void Call(MatrixTiles* tiles) {
    const IntegerTileArgs args = {.src = reinterpret_cast<const std::byte*>(src_.data()),
                                  .weights = reinterpret_cast<const std::byte*>(weights_.data()),
                                  .bias = reinterpret_cast<const std::byte*>(bias_.data()),
                                  .scales = nullptr,
                                  .compensation = nullptr,
                                  .dst = reinterpret_cast<std::byte*>(dst_.data()),
                                  .loops = {},
                                  .tiles = tiles};
    code_->entry<IntegerTileFunction>()(&args);
  }

  const std::vector<int32_t>& dst() const { return dst_; }

  std::vector<int32_t> Expected() const {
    std::vector<int32_t> expected(dst_.size(), kUntouched);
    for (const PixelRun& run : Runs()) {
      for (int i = 0; i < run.count; ++i) {
        for (int c = 0; c < Channels(); ++c) {
          expected[run.dst_bytes / 4 + i * 32 + c] =
              SumOf(run.first + i, c) + static_cast<int32_t>(bias_[c]);
        }
      }
    }
    return expected;
  }

 private:
  int Channels() const {
    return shape_.blocks * 16 - (shape_.tail_lanes == 0 ? 0 : 16 - shape_.tail_lanes);
  }

  std::vector<PixelRun> Runs() const {
    const int half = shape_.pixels / 2;
    if (!shape_.apart) return {{0, shape_.pixels, 0}};
    return {{0, half, 0}, {half + 1, shape_.pixels - half - 1, (half + 3) * 128}};
  }

  IntegerTileConfig Config() const {
    IntegerTileConfig config{.epilogue = {.unit = VectorUnit::Of(cpu::Isa::kAmx),
                                          .blocks = shape_.blocks,
                                          .pixels = shape_.pixels,
                                          .dst_pixel_bytes = 128,
                                          .dst_block_bytes = 64,
                                          .bias = true,
                                          .tail_lanes = shape_.tail_lanes,
                                          .dst_type = DataType::kS32,
                                          .packed_channels = true}};
    config.loops.src_pixel = kPixelBytes;
    config.loops.src_block = kMatrixStepBytes;
    config.loops.src_tap = {0, 0, kPixelBytes};
    config.loops.kernel = {1, 1, shape_.taps};
    config.loops.weights_oc_block = kBlockBytes;
    config.input_blocks = shape_.input_blocks;
    if (shape_.apart) config.runs = Runs();
    return config;
  }

  int32_t SumOf(int pixel, int channel) const {
    int32_t sum = 0;
    for (int step = 0; step < shape_.input_blocks * shape_.taps; ++step) {
      const int block = step / shape_.taps, tap = step % shape_.taps;
      for (int c = 0; c < kMatrixStepBytes; ++c) {
        const int64_t weight = channel / 16 * kBlockBytes + step * kMatrixWeightsBytes +
                               c / 4 * 64 + channel % 16 * 4 + c % 4;
        sum += src_[(pixel + tap) * kPixelBytes + block * kMatrixStepBytes + c] * weights_[weight];
      }
    }
    return sum;
  }

  const TileShape shape_;
  std::vector<uint8_t> src_ = std::vector<uint8_t>(kMostPixels * kPixelBytes);
  std::vector<int8_t> weights_ = std::vector<int8_t>(kMatrixBlocks * kBlockBytes);
  std::vector<float> bias_ = std::vector<float>(32);
  std::vector<int32_t> dst_ = std::vector<int32_t>(kMostPixels * 32, kUntouched);
  std::unique_ptr<const jit::Generator> code_;
};

class MatrixTileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!cpu::Supports(cpu::Isa::kAmx)) GTEST_SKIP() << "the CPU lacks amx";
  }
};

constexpr TileShape kWhole = {32, 2, 0, 3, 4, false};

// Calls them one after the other.
void ExpectEndsInsideNextCalls(const std::vector<TileShape>& shapes) {
  std::vector<std::unique_ptr<MatrixTile>> tiles;
  for (const TileShape& shape : shapes) tiles.push_back(std::make_unique<MatrixTile>(shape));
  MatrixTiles shared;
  for (size_t i = 0; i < tiles.size(); ++i) {
    tiles[i]->Call(&shared);
    EXPECT_THAT(tiles[i]->dst(), Each(kUntouched)) << i;
    if (i > 0) {
      EXPECT_EQ(tiles[i - 1]->dst(), tiles[i - 1]->Expected()) << i - 1;
    }
  }
  FinishMatrixTiles(&shared);
  EXPECT_EQ(tiles.back()->dst(), tiles.back()->Expected());
}

TEST_F(MatrixTileTest, TheEndOfEachRunsInsideTheNextCall) {
  struct {
    const char* why;
    int taps, input_blocks;
  } const steps[] = {{"more steps than have parts of an end, some far apart", 3, 4},
                     {"more steps, evenly apart", 9, 1},
                     {"as many steps", 2, 4},
                     {"few steps", 3, 1},
                     {"one step", 1, 1}};
  for (const auto& [why, taps, input_blocks] : steps) {
    SCOPED_TRACE(why);
    ExpectEndsInsideNextCalls({{32, 2, 0, taps, input_blocks, false},
                               {32, 2, 0, taps, input_blocks, false},
                               {17, 1, 0, taps, input_blocks, false},
                               {32, 2, 5, taps, input_blocks, false},
                               {3, 1, 0, taps, input_blocks, false},
                               {27, 2, 11, taps, input_blocks, true},
                               {16, 2, 0, taps, input_blocks, false},
                               {31, 2, 0, taps, input_blocks, true},
                               {32, 2, 0, taps, input_blocks, false}});
  }
}

TEST_F(MatrixTileTest, NothingIsDueAfterTheLast) {
  MatrixTile tile(kWhole);
  MatrixTiles shared;
  FinishMatrixTiles(&shared);
  tile.Call(&shared);
  FinishMatrixTiles(&shared);
  EXPECT_EQ(shared.parts, nullptr);
}

// The parts are called (call rax: FF D0) between the first 32 products, one after each.
TEST_F(MatrixTileTest, PartsOfTheEndStandBetweenProducts) {
  const MatrixTile tile(kWhole);
  const auto* code = tile.code().entry<const uint8_t*>();
  int products = 0, parts = 0;
  for (size_t i = 0; parts < 32 && i + 16 < tile.code().code_bytes();) {
    const auto instruction = DecodeTileInstruction(code + i);
    if (instruction && instruction->operation == TileOperation::kMultiplyBytes) {
      ++products;
      EXPECT_LE(products, parts + 1);
    }
    if (code[i] == 0xFF && code[i + 1] == 0xD0) {
      ++parts;
      EXPECT_EQ(parts, products);
    }
    i += instruction ? instruction->length : 1;
  }
  EXPECT_EQ(products, 32);
}

// The instructions on tiles that follow the first `products` products.
std::vector<TileInstruction> TileInstructionsAfter(int products, const jit::Generator& code) {
  const auto* bytes = code.entry<const uint8_t*>();
  std::vector<TileInstruction> found;
  for (size_t i = 0; i + 16 < code.code_bytes();) {
    const auto instruction = DecodeTileInstruction(bytes + i);
    i += instruction ? instruction->length : 1;
    if (!instruction) continue;
    if (products == 0) found.push_back(*instruction);
    if (instruction->operation == TileOperation::kMultiplyBytes && products > 0) --products;
  }
  return found;
}

// Its loop stores a tile that no product uses; tiles that end beside all of their steps do not.
TEST_F(MatrixTileTest, LongTilesKeepStoresAwake) {
  constexpr int kBesideEnd = 32, kOfLoop = 4, kIdle = 7;
  const MatrixTile tile(kWhole);
  const std::vector<TileInstruction> after =
      TileInstructionsAfter(kBesideEnd + kOfLoop, tile.code());
  ASSERT_FALSE(after.empty());
  EXPECT_EQ(after[0].operation, TileOperation::kStore);
  EXPECT_EQ(after[0].tile, kIdle);
  const MatrixTile short_tile({32, 2, 0, 2, 4, false});
  for (const TileInstruction& each : TileInstructionsAfter(0, short_tile.code())) {
    EXPECT_FALSE(each.operation == TileOperation::kStore && each.tile == kIdle);
  }
}

}  // namespace
}  // namespace tilewire::testing
