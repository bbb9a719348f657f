// SPDX-License-Identifier: Apache-2.0
#include "engine/cpu/tiles.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace tilewire::cpu {
namespace {

constexpr uint32_t kFeatureLeaf = 7, kTileLeaf = 0x1D;
constexpr uint32_t kTileBits = 1u << 24 | 1u << 25 | 1u << 22;           // AMX-TILE, INT8, BF16
constexpr uint64_t kSavedState = uint64_t{1} << 17 | uint64_t{1} << 18;  // XTILECFG, XTILEDATA

std::array<uint32_t, 4> Cpuid(uint32_t leaf, uint32_t subleaf) {
  std::array<uint32_t, 4> result{};
  if (__get_cpuid_count(leaf, subleaf, &result[0], &result[1], &result[2], &result[3]) == 0) {
    return {};
  }
  return result;
}

uint64_t Xcr0() {
  constexpr uint32_t kOsXsave = 1u << 27;
  if ((Cpuid(1, 0)[2] & kOsXsave) == 0) return 0;
  uint32_t low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t{high} << 32 | low;
}

int Request() {
  constexpr int kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr int kTileData = 18;               // XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0 ? 0 : errno;
}

const TileMachine* used_machine = &kThisMachine;

}  // namespace

constexpr TileMachine kThisMachine = {.cpuid = Cpuid, .xcr0 = Xcr0, .request = Request};

TileAccess RequestTiles(const TileMachine& machine) {
  TileAccess access;
  access.present = (machine.cpuid(kFeatureLeaf, 0)[3] & kTileBits) == kTileBits &&
                   (machine.xcr0() & kSavedState) == kSavedState &&
                   machine.cpuid(kTileLeaf, 0)[0] >= 1;
  if (access.present) access.error = machine.request();
  return access;
}

const TileMachine& UsedTileMachine() { return *used_machine; }
void UseTileMachine(const TileMachine& machine) { used_machine = &machine; }

}  // namespace tilewire::cpu
