// SPDX-License-Identifier: Apache-2.0
#include "engine/cpu/machine.h"

#include <algorithm>

#include "absl/types/span.h"
#include "engine/cpu/tiles.h"

namespace tilewire::cpu {
namespace {

// CPUs of a vendor whose family and model, with their extensions, lie within bounds.
struct Known {
  uint32_t vendor;  // EBX of leaf 0
  uint32_t family, first_model, last_model;
  absl::string_view kind;
  double fmas_of_32_bytes, fmas_of_64_bytes, bf16_gain, hidden_reading = 0, spilling = 1;
};

constexpr uint32_t kIntel = 0x756e6547, kAmd = 0x68747541;  // "Genu", "Auth"

// The first that fits counts. Rates of registers that a CPU lacks are of no account. Skylake-SP is
// Cascade Lake and Cooper Lake, too; some have one unit for 64 bytes, which CPUID does not tell.
// Hypervisors show the model of another CPU beside the extensions of this one: a Rocket Lake with
// matrix tiles was met.
constexpr Known kKnown[] = {
    {kAmd, 0x17, 0x00, 0x2f, "Zen", 1, 1, 1.75},
    {kAmd, 0x17, 0x30, 0xff, "Zen 2", 2, 2, 1.75},
    {kAmd, 0x19, 0x10, 0x1f, "Zen 4", 2, 1, 1.75},
    {kAmd, 0x19, 0x60, 0x7f, "Zen 4", 2, 1, 1.75},
    {kAmd, 0x19, 0xa0, 0xaf, "Zen 4", 2, 1, 1.75},
    {kAmd, 0x19, 0x00, 0xff, "Zen 3", 2, 2, 1.75, 0.5, 1.43},
    {kAmd, 0x1a, 0x00, 0xff, "Zen 5", 2, 2, 1.75},
    {kIntel, 6, 0x55, 0x55, "Skylake-SP", 2, 2, 1},
    {kIntel, 6, 0x6a, 0x6c, "Ice Lake-SP", 2, 2, 1},
    {kIntel, 6, 0x7d, 0x7e, "Ice Lake", 2, 1, 1},
    {kIntel, 6, 0x8c, 0x8d, "Tiger Lake", 2, 1, 1},
    {kIntel, 6, 0xa7, 0xa7, "Rocket Lake", 2, 1, 1},
};

// CPUs with matrix tiles; any other model with tiles counts as the first.
constexpr Known kKnownWithTiles[] = {
    {kIntel, 6, 0x8f, 0x8f, "Sapphire Rapids", 2, 2, 1},
    {kIntel, 6, 0xcf, 0xcf, "Emerald Rapids", 2, 2, 1},
    {kIntel, 6, 0xad, 0xae, "Granite Rapids", 2, 2, 1},
};

// Leaves that list caches in the same form, each a subleaf, until one of type 0.
constexpr uint32_t kCachesOfIntel = 4, kCachesOfAmd = 0x8000001D;

std::array<int64_t, 3> CacheBytes(CpuidFunction cpuid, uint32_t leaf) {
  constexpr uint32_t kMostCaches = 16, kInstructions = 2;
  std::array<int64_t, 3> bytes{0, 0, 0};
  for (uint32_t index = 0; index < kMostCaches; ++index) {
    const auto [eax, ebx, ecx, edx] = cpuid(leaf, index);
    const uint32_t type = eax & 31, level = eax >> 5 & 7;
    if (type == 0) break;
    if (type == kInstructions || level < 1 || level > bytes.size()) continue;
    const int64_t ways = (ebx >> 22) + 1, partitions = (ebx >> 12 & 1023) + 1,
                  line = (ebx & 4095) + 1, sets = int64_t{ecx} + 1;
    bytes[level - 1] = ways * partitions * line * sets;
  }
  return bytes;
}

struct Signature {
  uint32_t vendor, family, model;
};

Signature SignatureOf(CpuidFunction cpuid) {
  const uint32_t bits = cpuid(1, 0)[0], base = bits >> 8 & 15;
  return {.vendor = cpuid(0, 0)[1],
          .family = base == 15 ? base + (bits >> 20 & 255) : base,
          .model = (bits >> 12 & 0xf0) | (bits >> 4 & 15)};
}

const Known* FindIn(absl::Span<const Known> all, const Signature& cpu) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const Known& one) {
    return one.vendor == cpu.vendor && one.family == cpu.family && one.first_model <= cpu.model &&
           cpu.model <= one.last_model;
  });
  return found == all.end() ? nullptr : &*found;
}

// Null for a CPU that is not known.
const Known* Find(CpuidFunction cpuid) {
  constexpr uint32_t kFeatures = 7, kTiles = 1u << 24;
  const Signature cpu = SignatureOf(cpuid);
  if ((cpuid(kFeatures, 0)[3] & kTiles) == 0) return FindIn(kKnown, cpu);
  const Known* known = FindIn(kKnownWithTiles, cpu);
  return known == nullptr ? &kKnownWithTiles[0] : known;
}

}  // namespace

Machine MachineOf(CpuidFunction cpuid) {
  Machine machine;
  if (const Known* known = Find(cpuid); known != nullptr) {
    machine.kind = known->kind;
    machine.fmas_of_32_bytes = known->fmas_of_32_bytes;
    machine.fmas_of_64_bytes = known->fmas_of_64_bytes;
    machine.bf16_gain = known->bf16_gain;
    machine.hidden_reading = known->hidden_reading;
    machine.spilling = known->spilling;
  }
  const bool is_amd = cpuid(0, 0)[1] == kAmd;
  machine.cache_bytes = CacheBytes(cpuid, is_amd ? kCachesOfAmd : kCachesOfIntel);
  return machine;
}

const Machine& ThisMachine() {
  static const Machine machine = MachineOf(kThisMachine.cpuid);
  return machine;
}

}  // namespace tilewire::cpu
