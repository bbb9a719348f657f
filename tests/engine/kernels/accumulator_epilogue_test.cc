// SPDX-License-Identifier: Apache-2.0
//
// Sums that a kernel keeps outside of the vector registers, as a matrix unit does, reach the
// epilogue through memory: a tile of more s32 sums than there are registers is finished in several
// passes, and every element is that of the scalar epilogue. A destination of bf16 is written in
// lines of two blocks, whichever of them a tile has.
#include "engine/kernels/tiles/accumulator_epilogue.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/cpu/isa.h"
#include "engine/jit/generator.h"
#include "engine/kernels/tiles/scalar_epilogue.h"
#include "engine/memory/narrow_floats.h"
#include "gtest/gtest.h"
#include "tests/support/random_tensor.h"

namespace tilewire::testing {
namespace {

constexpr int kPixels = 48, kPixelsPerPass = 3, kBlocks = 2;

struct SumsArgs {
  const int32_t* sums;  // [pixel][block][lane]
  const float* bias;
  const float* scales;
  uint8_t* dst;  // [pixel][block][lane]
};

class FinishSums final : public jit::Generator {
 public:
  FinishSums(const VectorUnit& unit, const PostOps& post_ops)
      : Generator("test/finish_sums"),
        unit_(unit),
        config_(ConfigOf(unit, post_ops)),
        epilogue_(this, config_,
                  {.dst = rsi,
                   .bias = rdx,
                   .spare = rax,
                   .scratch = config_.FreeVectors(),
                   .scales = rcx}) {}

 private:
  static EpilogueConfig ConfigOf(const VectorUnit& unit, const PostOps& post_ops) {
    return {.unit = unit,
            .blocks = kBlocks,
            .pixels = kPixelsPerPass,
            .dst_pixel_bytes = kBlocks * unit.lanes(),
            .dst_block_bytes = unit.lanes(),
            .bias = true,
            .post_ops = post_ops,
            .dst_type = DataType::kU8,
            .scales = true};
  }

  void Emit() override {
    Xbyak::Label pass;
    mov(r8, ptr[rdi + offsetof(SumsArgs, sums)]);
    mov(rdx, ptr[rdi + offsetof(SumsArgs, bias)]);
    mov(rcx, ptr[rdi + offsetof(SumsArgs, scales)]);
    mov(rsi, ptr[rdi + offsetof(SumsArgs, dst)]);
    mov(r9, kPixels / kPixelsPerPass);
    L(pass);
    epilogue_.LoadSums({r8, unit_.bytes(), kBlocks * unit_.bytes()});
    epilogue_.FinishIntegers();
    add(r8, kPixelsPerPass * kBlocks * unit_.bytes());
    add(rsi, kPixelsPerPass * kBlocks * unit_.lanes());
    dec(r9);
    jnz(pass, T_NEAR);
    vzeroupper();
    ret();
    epilogue_.EmitTables();
  }

  const VectorUnit unit_;
  const EpilogueConfig config_;
  AccumulatorEpilogue epilogue_;
};

class SumsInMemoryTest : public ::testing::TestWithParam<std::pair<std::string, cpu::Isa>> {};

TEST_P(SumsInMemoryTest, FinishAsInTheScalarEpilogue) {
  const cpu::Isa isa = GetParam().second;
  if (!cpu::Supports(isa)) GTEST_SKIP() << "this CPU has no " << GetParam().first;
  const VectorUnit unit = VectorUnit::Of(isa);
  const int channels = kBlocks * unit.lanes();
  PostOps post_ops;
  ASSERT_TRUE(post_ops.Append(EltwisePostOp{{EltwiseAlgorithm::kClip, -3, 200}}).ok());
  std::vector<int32_t> sums(kPixels * channels);
  for (size_t i = 0; i < sums.size(); ++i) sums[i] = static_cast<int32_t>(i * 7919 % 4001) - 2000;
  ScalarEpilogue scalar;
  scalar.bias_type = DataType::kF32;
  scalar.dst_type = DataType::kU8;
  scalar.attributes.post_ops = post_ops;
  scalar.attributes.output_scales = {.mask = 2, .scales = {}};
  std::vector<float> bias;
  for (int c = 0; c < channels; ++c) {
    bias.push_back(0.5f * c - 3);
    scalar.attributes.output_scales.scales.push_back(0.0625f * (c % 5 + 1));
  }
  const auto code = jit::Compile<FinishSums>(unit, post_ops);
  ASSERT_TRUE(code.ok()) << code.status();
  std::vector<uint8_t> dst(sums.size(), 0xAA), expected(sums.size());
  const SumsArgs args = {sums.data(), bias.data(), scalar.attributes.output_scales.scales.data(),
                         dst.data()};
  (*code)->entry<void (*)(const SumsArgs*)>()(&args);
  for (size_t i = 0; i < sums.size(); ++i) {
    const int c = static_cast<int>(i) % channels;
    scalar.Store(static_cast<float>(sums[i]), c, bias.data(), c, expected.data(), i);
  }
  EXPECT_EQ(dst, expected);
}

struct LinesArgs {
  const float* sums;  // [block][pixel][lane]
  uint16_t* dst;      // of the first block, in [line][pixel][32]
};

class StoreLines final : public jit::Generator {
 public:
  explicit StoreLines(const EpilogueConfig& config)
      : Generator("test/store_lines"),
        config_(config),
        epilogue_(this, config,
                  {.dst = rsi, .bias = rdx, .spare = rax, .scratch = config.FreeVectors()}) {}

 private:
  void Emit() override {
    mov(rsi, ptr[rdi + offsetof(LinesArgs, dst)]);
    mov(rdi, ptr[rdi + offsetof(LinesArgs, sums)]);
    epilogue_.LoadSums({rdi, config_.pixels * config_.unit.bytes(), config_.unit.bytes()});
    epilogue_.ApplyPostOps(/*skip_sum=*/false);
    epilogue_.ZeroTail();
    epilogue_.Store();
    vzeroupper();
    ret();
    epilogue_.EmitTables();
  }

  const EpilogueConfig config_;
  AccumulatorEpilogue epilogue_;
};

struct LinesCase {
  const char* why;
  int blocks;
  bool begins_inside_line, pads_line;
  int tail_lanes;
};

constexpr LinesCase kLinesCases[] = {
    {"a line", 2, false, false, 0},
    {"the first half of a line, whose other half another tile writes", 1, false, false, 0},
    {"the second half", 1, true, false, 0},
    {"the last half, alone in its line", 1, false, true, 0},
    {"a part of the last half", 1, false, true, 5},
    {"a line and a half", 3, false, false, 0},
    {"half a line, then a whole one with a tail", 3, true, false, 7},
    {"half a line, a whole one, and the last half", 4, true, true, 3},
    {"two lines with a tail", 4, false, false, 1},
};

class LinesTest : public ::testing::TestWithParam<LinesCase> {};

TEST_P(LinesTest, HoldTheRoundedSumsAndNothingElseIsWritten) {
  constexpr int kLinePixels = 3, kLanes = 16, kLine = 32, kLines = 3;
  constexpr uint16_t kBefore = 0x4048;  // 3.125
  if (!cpu::Supports(cpu::Isa::kAvx512Bf16)) GTEST_SKIP() << "the CPU lacks avx512_bf16";
  const LinesCase& lines = GetParam();
  EpilogueConfig config{.unit = VectorUnit::Of(cpu::Isa::kAvx512Bf16),
                        .blocks = lines.blocks,
                        .pixels = kLinePixels,
                        .dst_pixel_bytes = kLine * 2,
                        .dst_block_bytes = kLinePixels * kLine * 2,
                        .tail_lanes = lines.tail_lanes,
                        .dst_type = DataType::kBf16,
                        .begins_inside_line = lines.begins_inside_line,
                        .pads_line = lines.pads_line};
  ASSERT_TRUE(config.post_ops.Append(SumPostOp{.scale = 0.5f}).ok());
  const auto sums = RandomFloats(lines.blocks * kLinePixels * kLanes, 3);
  const int first = lines.begins_inside_line ? 1 : 0;
  std::vector<uint16_t> dst(kLines * kLinePixels * kLine, kBefore), expected = dst;
  const auto at = [&](int half, int pixel, int lane) {
    return ((half / 2) * kLinePixels + pixel) * kLine + half % 2 * kLanes + lane;
  };
  for (int i = 0; i < static_cast<int>(sums.size()); ++i) {
    const int block = i / kLanes / kLinePixels, pixel = i / kLanes % kLinePixels, lane = i % kLanes;
    const bool is_last = block == lines.blocks - 1;
    const bool is_tail = is_last && lines.tail_lanes != 0 && lane >= lines.tail_lanes;
    expected[at(first + block, pixel, lane)] =
        is_tail ? 0 : ToBf16(sums[i] + 0.5f * WidenBf16(kBefore));
    if (is_last && lines.pads_line) expected[at(first + block + 1, pixel, lane)] = 0;
  }
  const auto code = jit::Compile<StoreLines>(config);
  ASSERT_TRUE(code.ok()) << code.status();
  const LinesArgs args = {sums.data(), dst.data() + first * kLanes};
  (*code)->entry<void (*)(const LinesArgs*)>()(&args);
  EXPECT_EQ(dst, expected) << lines.why;
}

INSTANTIATE_TEST_SUITE_P(AllTiles, LinesTest, ::testing::ValuesIn(kLinesCases));

INSTANTIATE_TEST_SUITE_P(AllUnits, SumsInMemoryTest,
                         ::testing::Values(std::pair("avx2", cpu::Isa::kAvx2),
                                           std::pair("avx512", cpu::Isa::kAvx512)),
                         [](const auto& info) { return info.param.first; });

}  // namespace
}  // namespace tilewire::testing
