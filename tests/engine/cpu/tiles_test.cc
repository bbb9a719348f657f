// SPDX-License-Identifier: Apache-2.0
#include "engine/cpu/tiles.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "engine/cpu/isa.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tilewire::cpu {
namespace {

using ::testing::ExitedWithCode;
using ::testing::IsEmpty;

using Registers = std::array<uint32_t, 4>;

constexpr uint32_t kTiles = 1u << 24, kBytes = 1u << 25, kBf16 = 1u << 22;

Registers WithFeatures(uint32_t features, uint32_t leaf, uint32_t palettes) {
  if (leaf == 7) return {0, 0, 0, features};
  return leaf == 0x1D ? Registers{palettes, 0, 0, 0} : Registers{};
}

int requests = 0;  // how often a machine below was asked
int Grant() {
  ++requests;
  return 0;
}

constexpr TileMachine kComplete = {
    .cpuid = [](uint32_t leaf, uint32_t) { return WithFeatures(kTiles | kBytes | kBf16, leaf, 1); },
    .xcr0 = [] { return uint64_t{0x600E7}; },
    .request = Grant};

TEST(TilesTest, AreGrantedWhereAllIsThere) {
  requests = 0;
  EXPECT_TRUE(RequestTiles(kComplete).granted());
  EXPECT_EQ(requests, 1);
}

// Whatever is missing, the operating system is not even asked.
TEST(TilesTest, AreAbsentWithoutAnyOneOfTheConditions) {
  TileMachine no_bytes = kComplete, no_bf16 = kComplete, no_tiles = kComplete;
  no_bytes.cpuid = [](uint32_t leaf, uint32_t) { return WithFeatures(kTiles | kBf16, leaf, 1); };
  no_bf16.cpuid = [](uint32_t leaf, uint32_t) { return WithFeatures(kTiles | kBytes, leaf, 1); };
  no_tiles.cpuid = [](uint32_t leaf, uint32_t) { return WithFeatures(kBytes | kBf16, leaf, 1); };
  TileMachine no_palette = kComplete, no_contents = kComplete, no_configuration = kComplete;
  no_palette.cpuid = [](uint32_t leaf, uint32_t) { return WithFeatures(~0u, leaf, 0); };
  no_contents.xcr0 = [] { return uint64_t{0x200E7}; };
  no_configuration.xcr0 = [] { return uint64_t{0x400E7}; };
  requests = 0;
  for (const TileMachine& machine :
       {no_bytes, no_bf16, no_tiles, no_palette, no_contents, no_configuration}) {
    EXPECT_FALSE(RequestTiles(machine).present);
    EXPECT_FALSE(RequestTiles(machine).granted());
  }
  EXPECT_EQ(requests, 0);
}

TEST(TilesTest, ARefusalIsKnownByItsError) {
  TileMachine machine = kComplete;
  machine.request = [] { return ENOSPC; };
  const TileAccess access = RequestTiles(machine);
  EXPECT_TRUE(access.present);
  EXPECT_FALSE(access.granted());
  EXPECT_EQ(access.error, ENOSPC);
}

// A filter like those of containers: arch_prctl fails with EACCES.
bool ForbidArchPrctl() {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_arch_prctl, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program = {.len = std::size(code), .filter = code};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// Each runs in a process that has asked for nothing yet, because the answers are kept.
class TilesOfAProcessTest : public ::testing::Test {
 protected:
  static constexpr int kGoesWithout = 0, kUsesTiles = 1, kSilent = 2, kNoFilter = 3;

  void SetUp() override {
    if (!__builtin_cpu_supports("avx512bf16")) GTEST_SKIP() << "the CPU lacks avx512_bf16";
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    unsetenv("TILEWIRE_MAX_ISA");
  }

  static int Outcome() {
    if (BestIsa().Includes(Isa::kAmx)) return kUsesTiles;
    return TileRefusal().find(std::strerror(EACCES)) != std::string::npos ? kGoesWithout : kSilent;
  }
  static int OutcomeUnderAFilter() {
    static TileMachine filtered = kComplete;
    filtered.request = kThisMachine.request;
    UseTileMachine(filtered);
    return ForbidArchPrctl() ? Outcome() : kNoFilter;
  }
  static int OutcomeUnderACap() {
    setenv("TILEWIRE_MAX_ISA", "avx512_bf16", 1);
    requests = 0;
    UseTileMachine(kComplete);
    return requests + Outcome();
  }
};

TEST_F(TilesOfAProcessTest, AFilterThatRefusesThemMakesItGoWithout) {
  EXPECT_EXIT(_exit(OutcomeUnderAFilter()), ExitedWithCode(kGoesWithout), "");
}

TEST_F(TilesOfAProcessTest, AGrantIsPartOfTheBestSet) {
  EXPECT_EXIT((UseTileMachine(kComplete), _exit(Outcome())), ExitedWithCode(kUsesTiles), "");
}

TEST_F(TilesOfAProcessTest, ACapBelowThemAsksForNothing) {
  EXPECT_EXIT(_exit(OutcomeUnderACap()), ExitedWithCode(kSilent), "");
}

TEST(TilesTest, ThisMachineAnswersAsItsOperatingSystemDoes) {
  const TileAccess access = RequestTiles(kThisMachine);
  constexpr int kGetPermission = 0x1022;  // ARCH_GET_XCOMP_PERM
  uint64_t granted = 0;
  const bool known = syscall(SYS_arch_prctl, kGetPermission, &granted) == 0;
  if (access.granted()) {
    EXPECT_TRUE(known);
    EXPECT_NE(granted & uint64_t{1} << 18, 0u);
  } else {
    EXPECT_EQ(known ? granted & uint64_t{1} << 18 : 0, 0u);
  }
  if (!access.present) {
    EXPECT_THAT(TileRefusal(), IsEmpty());
  }
}

}  // namespace
}  // namespace tilewire::cpu
