// SPDX-License-Identifier: Apache-2.0
#include "engine/jit/loop_count.h"

#include <cstddef>

#include "engine/jit/tail_mask.h"
#include "engine/jit/vector_unit.h"
#include "gtest/gtest.h"
#include "xbyak/xbyak.h"

namespace tilewire::jit {
namespace {

struct Args {
  const float* src;
  LoopCount rows;
};

TEST(LoopCountTest, GeneratedCodeReadsANumber) {
  const Args args = {nullptr, 3};
  EXPECT_EQ(*reinterpret_cast<const int64_t*>(reinterpret_cast<const std::byte*>(&args) +
                                              offsetof(Args, rows)),
            3);
  EXPECT_EQ(args.rows * 2, 6);
  EXPECT_EQ(LoopCount(), 1);
}

TEST(LoopCountDeathTest, RefusesALoopWithoutTurns) {
  for (const int64_t count : {int64_t{0}, int64_t{-1}}) {
    EXPECT_DEATH((Args{nullptr, count}), "one turn at least");
  }
}

// Generators number registers and lanes by sizes that they are given.
TEST(RegistersDeathTest, RefusesThoseThatTheUnitLacks) {
  const VectorUnit avx2 = VectorUnit::Of(cpu::Isa::kAvx2);
  const VectorUnit avx512 = VectorUnit::Of(cpu::Isa::kAvx512);
  EXPECT_EQ(avx512.Vector(16).getIdx(), 16);
  EXPECT_DEATH(avx2.Vector(16), "a register that the unit has");
  EXPECT_DEATH(avx2.Wide(-1), "a register that the unit has");
  EXPECT_DEATH(avx512.RegistersFrom(33), "a register that the unit has");
}

TEST(RegistersDeathTest, RefusesMoreLanesThanAVectorHas) {
  Xbyak::CodeGenerator code;
  TailMask tail(&code, VectorUnit::Of(cpu::Isa::kAvx2), {.spare = code.rax, .opmask = code.k2});
  tail.Set(8);
  EXPECT_DEATH(tail.Set(9), "as many lanes");
}

}  // namespace
}  // namespace tilewire::jit
