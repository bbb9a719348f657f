// SPDX-License-Identifier: Apache-2.0
//
// Sums that a kernel keeps outside of the vector registers, as a matrix unit does, reach the
// epilogue through memory: a tile of more s32 sums than there are registers is finished in several
// passes, and every element is that of the scalar epilogue.
#include "engine/kernels/accumulator_epilogue.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/cpu/isa.h"
#include "engine/jit/generator.h"
#include "engine/kernels/scalar_epilogue.h"
#include "gtest/gtest.h"

namespace tilewire {
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

class SumsInMemoryTest : public testing::TestWithParam<std::pair<std::string, cpu::Isa>> {};

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

INSTANTIATE_TEST_SUITE_P(AllUnits, SumsInMemoryTest,
                         testing::Values(std::pair("avx2", cpu::Isa::kAvx2),
                                         std::pair("avx512", cpu::Isa::kAvx512)),
                         [](const auto& info) { return info.param.first; });

}  // namespace
}  // namespace tilewire
