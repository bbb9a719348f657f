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
  Machine machine;  // but for its caches
};

constexpr uint32_t kIntel = 0x756e6547, kAmd = 0x68747541;  // "Genu", "Auth"

constexpr Machine kZen3 = {.kind = "Zen 3",
                           .reached_of_32_bytes = 0.92,
                           .hidden_reading = 0.5,
                           .spilling = 1.43,
                           .cycles_of_byte_read = 0.08,
                           .cycles_of_byte_written = 0.52};

// FMAs of 64 bytes lower the clock by 7 %. VDPBF16PS issues every other cycle.
constexpr Machine WithTiles(absl::string_view kind) {
  return {.kind = kind,
          .reached_of_32_bytes = 1.03,
          .reached_of_64_bytes = 0.86,
          .bf16_gain = 0.55,
          .hidden_reading = 0.15,
          .transform_of_16_points = 0.73,
          .transform_of_36_points = 1.34,
          .spilling = 0.75,
          .cycles_of_byte_written = 0.14};
}

// A CPU of which nothing but the rates of its units is known; those of registers that it lacks are
// of no account.
constexpr Machine Unmeasured(absl::string_view kind, double fmas_of_32_bytes,
                             double fmas_of_64_bytes, double bf16_gain) {
  return {.kind = kind,
          .fmas_of_32_bytes = fmas_of_32_bytes,
          .fmas_of_64_bytes = fmas_of_64_bytes,
          .bf16_gain = bf16_gain};
}

// The first that fits counts. Skylake-SP is Cascade Lake and Cooper Lake, too; some have one unit
// for 64 bytes, which CPUID does not tell. Hypervisors show the model of another CPU beside the
// extensions of this one: a Rocket Lake with matrix tiles was met.
constexpr Known kKnown[] = {
    {kAmd, 0x17, 0x00, 0x2f, Unmeasured("Zen", 1, 1, 1.75)},
    {kAmd, 0x17, 0x30, 0xff, Unmeasured("Zen 2", 2, 2, 1.75)},
    {kAmd, 0x19, 0x10, 0x1f, Unmeasured("Zen 4", 2, 1, 1.75)},
    {kAmd, 0x19, 0x60, 0x7f, Unmeasured("Zen 4", 2, 1, 1.75)},
    {kAmd, 0x19, 0xa0, 0xaf, Unmeasured("Zen 4", 2, 1, 1.75)},
    {kAmd, 0x19, 0x00, 0xff, kZen3},
    {kAmd, 0x1a, 0x00, 0xff, Unmeasured("Zen 5", 2, 2, 1.75)},
    {kIntel, 6, 0x55, 0x55, Unmeasured("Skylake-SP", 2, 2, 1)},
    {kIntel, 6, 0x6a, 0x6c, Unmeasured("Ice Lake-SP", 2, 2, 1)},
    {kIntel, 6, 0x7d, 0x7e, Unmeasured("Ice Lake", 2, 1, 1)},
    {kIntel, 6, 0x8c, 0x8d, Unmeasured("Tiger Lake", 2, 1, 1)},
    {kIntel, 6, 0xa7, 0xa7, Unmeasured("Rocket Lake", 2, 1, 1)},
};

// CPUs with matrix tiles. Any other model with tiles counts as the first: so did the CPU that was
// measured. All have the same units.
constexpr Known kKnownWithTiles[] = {
    {kIntel, 6, 0x8f, 0x8f, WithTiles("Sapphire Rapids")},
    {kIntel, 6, 0xcf, 0xcf, WithTiles("Emerald Rapids")},
    {kIntel, 6, 0xad, 0xae, WithTiles("Granite Rapids")},
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
  const Known* known = Find(cpuid);
  Machine machine = known == nullptr ? Machine{} : known->machine;
  const bool is_amd = cpuid(0, 0)[1] == kAmd;
  machine.cache_bytes = CacheBytes(cpuid, is_amd ? kCachesOfAmd : kCachesOfIntel);
  return machine;
}

const Machine& ThisMachine() {
  static const Machine machine = MachineOf(kThisMachine.cpuid);
  return machine;
}

}  // namespace tilewire::cpu
