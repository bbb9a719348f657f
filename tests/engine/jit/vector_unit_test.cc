// SPDX-License-Identifier: Apache-2.0
//
// Code that the units emit, run against plain loops: the same results on every unit, among them one
// that no instruction set's widest vectors are, 8 lanes with opmasks.
#include "engine/jit/vector_unit.h"

#include <array>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "engine/jit/generator.h"
#include "engine/jit/tail_mask.h"
#include "gtest/gtest.h"

namespace tilewire::jit {
namespace {

struct UnitCase {
  std::string name;
  cpu::Isa isa;
  int bytes;
  VectorUnit Unit() const { return VectorUnit::Of(isa).WithBytes(bytes); }
};

// void(const float* src, float* dst, int64_t count): whatever `body` emits.
class Snippet final : public Generator {
 public:
  using Body = std::function<void(Snippet*)>;
  Snippet(const VectorUnit& unit, Body body)
      : Generator("test/vector_unit"),
        tail_(this, unit, {.spare = rax, .opmask = k2}),
        body_(std::move(body)) {}

  TailMask tail_;

 private:
  void Emit() override {
    body_(this);
    vzeroupper();
    ret();
    tail_.EmitTable();
  }
  const Body body_;
};

class VectorUnitTest : public ::testing::TestWithParam<UnitCase> {
 protected:
  using Values = std::array<float, 32>;
  void SetUp() override {
    if (!cpu::Supports(GetParam().isa)) GTEST_SKIP() << "this CPU has no " << GetParam().name;
    for (size_t i = 0; i < src_.size(); ++i) src_[i] = 1.25f * i - 7.5f;
    dst_.fill(-1);
  }
  void Run(const Snippet::Body& body, int64_t count = 0) {
    const auto code = Compile<Snippet>(unit_, body);
    ASSERT_TRUE(code.ok()) << code.status();
    (*code)->entry<void (*)(const float*, float*, int64_t)>()(src_.data(), dst_.data(), count);
  }

  const VectorUnit unit_ = GetParam().Unit();
  const int lanes_ = unit_.lanes();
  Values src_, dst_;
};

// The other lanes of memory are neither written nor, as zeros in the register show, read.
TEST_P(VectorUnitTest, TailsTouchTheirLanesOnly) {
  for (int count = 1; count < lanes_; ++count) {
    for (const bool constant : {true, false}) {
      dst_.fill(-1);
      Run(
          [&](Snippet* g) {
            constant ? g->tail_.Set(count) : g->tail_.Set(g->rdx);
            g->tail_.Load(unit_.Vector(1), g->ptr[g->rdi]);
            g->tail_.Store(g->ptr[g->rsi], unit_.Vector(1));
            g->vmovups(g->ptr[g->rsi + 64], unit_.Vector(1));
          },
          count);
      for (int i = 0; i < lanes_; ++i) {
        EXPECT_EQ(dst_[i], i < count ? src_[i] : -1) << count << " lanes, lane " << i;
        EXPECT_EQ(dst_[16 + i], i < count ? src_[i] : 0) << count << " lanes, lane " << i;
      }
    }
  }
}

TEST_P(VectorUnitTest, TailsReplaceTheOtherLanes) {
  Run([&](Snippet* g) {
    g->tail_.Set(3);
    unit_.Broadcast(g, unit_.Vector(1), 5, g->rax);
    for (int i : {2, 3}) g->vmovups(unit_.Vector(i), g->ptr[g->rdi]);
    g->tail_.ZeroOthers(unit_.Vector(2));
    g->tail_.ReplaceOthers(unit_.Vector(3), unit_.Vector(1));
    g->vmovups(g->ptr[g->rsi], unit_.Vector(2));
    g->vmovups(g->ptr[g->rsi + 64], unit_.Vector(3));
  });
  for (int i = 0; i < lanes_; ++i) {
    EXPECT_EQ(dst_[i], i < 3 ? src_[i] : 0);
    EXPECT_EQ(dst_[16 + i], i < 3 ? src_[i] : 5);
  }
}

TEST_P(VectorUnitTest, ComputesLaneByLane) {
  Run([&](Snippet* g) {
    const Xbyak::Xmm v = unit_.Vector(1), zero = unit_.Vector(2), sign = unit_.Vector(3);
    g->vmovups(v, g->ptr[g->rdi]);
    g->vmovups(sign, v);
    unit_.Round(g, v, 1);
    unit_.Zero(g, zero);
    unit_.TakeWhereNegative(g, v, sign, zero, g->k1);
    g->vmovups(g->ptr[g->rsi], v);
    unit_.BroadcastBits(g, zero, 0x80000000, g->rax);
    unit_.And(g, v, sign, zero);
    unit_.BroadcastBits(g, sign, 0x3F800000, g->rax);
    unit_.Or(g, v, v, sign);
    g->vmovups(g->ptr[g->rsi + 64], v);
  });
  for (int i = 0; i < lanes_; ++i) {
    EXPECT_EQ(dst_[i], src_[i] < 0 ? 0 : std::floor(src_[i]));
    EXPECT_EQ(dst_[16 + i], src_[i] < 0 ? -1 : 1);
  }
}

TEST_P(VectorUnitTest, FoldsAllLanes) {
  Run([&](Snippet* g) {
    const Xbyak::Xmm v = unit_.Vector(1), half = unit_.Vector(2);
    g->vmovups(v, g->ptr[g->rdi]);
    unit_.FoldLanes(g, v, half, [&] { g->vaddps(v, v, half); });
    g->vmovss(g->ptr[g->rsi], Xbyak::Xmm(1));
  });
  float sum = 0;
  for (int i = 0; i < lanes_; ++i) sum += src_[i];
  EXPECT_EQ(dst_[0], sum);
}

TEST_P(VectorUnitTest, GathersByIndex) {
  std::vector<int32_t> indices(16);
  for (int i = 0; i < 16; ++i) indices[i] = (7 * i + 3) % 16;
  Run([&](Snippet* g) {
    g->mov(g->rax, reinterpret_cast<uint64_t>(indices.data()));
    g->vmovups(unit_.Vector(2), g->ptr[g->rax]);
    unit_.Gather(g, unit_.Vector(1), g->rdi, unit_.Vector(2), 4, 8, g->k1, 3);
    g->vmovups(g->ptr[g->rsi], unit_.Vector(1));
  });
  for (int i = 0; i < lanes_; ++i) EXPECT_EQ(dst_[i], src_[indices[i] + 2]);
}

INSTANTIATE_TEST_SUITE_P(AllUnits, VectorUnitTest,
                         ::testing::Values(UnitCase{"avx2", cpu::Isa::kAvx2, 32},
                                           UnitCase{"avx512", cpu::Isa::kAvx512, 64},
                                           UnitCase{"avx512_of_8_lanes", cpu::Isa::kAvx512, 32},
                                           UnitCase{"avx512_vnni", cpu::Isa::kAvx512Vnni, 64}),
                         [](const auto& info) { return info.param.name; });

TEST(VectorUnit, FeaturesFollowTheInstructionSet) {
  EXPECT_EQ(VectorUnit::Of(cpu::Isa::kAvx2), VectorUnit(32, 16, 0));
  EXPECT_EQ(VectorUnit::Of(cpu::Isa::kAvx2Vnni), VectorUnit(32, 16, VectorUnit::kDotProducts));
  EXPECT_EQ(VectorUnit::Of(cpu::Isa::kAvx512), VectorUnit(64, 32, VectorUnit::kMasks));
  EXPECT_EQ(VectorUnit::Of(cpu::Isa::kAvx512Vnni),
            VectorUnit(64, 32, VectorUnit::kMasks | VectorUnit::kDotProducts));
}

}  // namespace
}  // namespace tilewire::jit
