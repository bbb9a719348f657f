// SPDX-License-Identifier: Apache-2.0
#include "engine/cpu/machine.h"

#include "engine/cpu/tiles.h"
#include "gtest/gtest.h"

namespace tilewire::cpu {
namespace {

using Registers = std::array<uint32_t, 4>;

// Answers of CPUs to leaves 0, 1 and that of their caches.
Registers Milan(uint32_t leaf, uint32_t subleaf) {
  constexpr Registers kCaches[] = {{0x4121, 0x01c0003f, 63, 0},
                                   {0x4122, 0x01c0003f, 63, 0},
                                   {0x4143, 0x01c0003f, 1023, 2},
                                   {0x3c163, 0x03c0003f, 32767, 1}};
  if (leaf == 0) return {16, 0x68747541, 0x444d4163, 0x69746e65};
  if (leaf == 1) return {0x00a00f11, 0, 0, 0};
  return leaf == 0x8000001D && subleaf < 4 ? kCaches[subleaf] : Registers{};
}
Registers Genoa(uint32_t leaf, uint32_t) {
  if (leaf == 0) return {16, 0x68747541, 0x444d4163, 0x69746e65};
  return leaf == 1 ? Registers{0x00a10f11, 0, 0, 0} : Registers{};
}
Registers CascadeLake(uint32_t leaf, uint32_t subleaf) {
  if (leaf == 0) return {22, 0x756e6547, 0x6c65746e, 0x49656e69};
  if (leaf == 1) return {0x00050657, 0, 0, 0};
  return leaf == 4 && subleaf == 0 ? Registers{0x1c004121, 0x01c0003f, 63, 0} : Registers{};
}
Registers WithTiles(uint32_t leaf, uint32_t signature) {
  if (leaf == 0) return {32, 0x756e6547, 0x6c65746e, 0x49656e69};
  if (leaf == 1) return {signature, 0, 0, 0};
  return leaf == 7 ? Registers{0, 0, 0, 1u << 24} : Registers{};
}
Registers SapphireRapids(uint32_t leaf, uint32_t) { return WithTiles(leaf, 0x000806f8); }
Registers GraniteRapids(uint32_t leaf, uint32_t) { return WithTiles(leaf, 0x000a06d1); }
// As a hypervisor showed it.
Registers RocketLakeWithTiles(uint32_t leaf, uint32_t) { return WithTiles(leaf, 0x000a0671); }
Registers RocketLake(uint32_t leaf, uint32_t subleaf) {
  return leaf == 7 ? Registers{} : RocketLakeWithTiles(leaf, subleaf);
}
Registers Nothing(uint32_t, uint32_t) { return {}; }

struct Case {
  CpuidFunction cpuid;
  const char* kind;
  double fmas_of_64_bytes;  // that convolutions reach
  int64_t first_cache;
  double fmas_of_32_bytes = 2, hidden_reading = 0, spilling = 1;
};

TEST(MachineTest, IsTheOneThatCpuidTells) {
  constexpr Case kCases[] = {
      {Milan, "Zen 3", 2, 32 << 10, 1.84, 0.5, 1.43},
      {Genoa, "Zen 4", 1, 0},
      {CascadeLake, "Skylake-SP", 2, 32 << 10},
      {SapphireRapids, "Sapphire Rapids", 1.72, 0, 2.06, 0.15, 0.75},
      {GraniteRapids, "Granite Rapids", 1.72, 0, 2.06, 0.15, 0.75},
      {RocketLake, "Rocket Lake", 1, 0},
      {RocketLakeWithTiles, "Sapphire Rapids", 1.72, 0, 2.06, 0.15, 0.75},
      {Nothing, "other", 2, 0},
  };
  for (const Case& one : kCases) {
    SCOPED_TRACE(one.kind);
    const Machine machine = MachineOf(one.cpuid);
    EXPECT_EQ(machine.kind, one.kind);
    EXPECT_EQ(machine.FmasPerCycle(64), one.fmas_of_64_bytes);
    EXPECT_EQ(machine.FmasPerCycle(32), one.fmas_of_32_bytes);
    EXPECT_EQ(machine.cache_bytes[0], one.first_cache);
    EXPECT_EQ(machine.hidden_reading, one.hidden_reading);
    EXPECT_EQ(machine.spilling, one.spilling);
  }
}

TEST(MachineTest, TheLongerHidesAShareOfTheShorter) {
  const Machine half = {.hidden_reading = 0.5};
  EXPECT_EQ(Machine{}.WhileReading(100, 40), 140);
  EXPECT_EQ(half.WhileReading(100, 40), 120);
  EXPECT_EQ(half.WhileReading(40, 100), 120);
}

TEST(MachineTest, LargeTensorsTakeCyclesWhereTheyWereMeasured) {
  constexpr double kSmall = 256 << 10, kLarge = 512 << 10;
  EXPECT_EQ(Machine{}.TensorCycles(kLarge, kLarge), 0);
  const Machine zen3 = MachineOf(Milan);
  EXPECT_EQ(zen3.TensorCycles(kSmall, kSmall), 0);
  EXPECT_DOUBLE_EQ(zen3.TensorCycles(kLarge, kSmall), 0.08 * kLarge);
  EXPECT_DOUBLE_EQ(zen3.TensorCycles(kLarge, kLarge), 0.6 * kLarge);
}

// Below 1, so that rows of bf16 in vectors are dearer than those of f32.
TEST(MachineTest, VectorsGainNothingFromBf16BesideTiles) {
  EXPECT_EQ(MachineOf(SapphireRapids).bf16_gain, 0.55);
  EXPECT_EQ(MachineOf(Genoa).bf16_gain, 1.75);
}

TEST(MachineTest, HasTheCachesOfCpuidWithoutThoseOfInstructions) {
  const std::array<int64_t, 3> expected = {32 << 10, 512 << 10, 32 << 20};
  EXPECT_EQ(MachineOf(Milan).cache_bytes, expected);
}

TEST(MachineTest, ThisOneIsAskedByCpuid) {
  const Machine& machine = ThisMachine();
  EXPECT_EQ(machine.kind, MachineOf(kThisMachine.cpuid).kind);
  EXPECT_EQ(&machine, &ThisMachine());
}

}  // namespace
}  // namespace tilewire::cpu
