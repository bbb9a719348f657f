// SPDX-License-Identifier: Apache-2.0
//
// An instruction set: the set of CPU features that code may use. An implementation names the set
// it needs, a CPU has the set it has, and a cap (`max_isa`) is the set that is allowed, so that
// narrower code can be tested and forced. Sets are ordered only by inclusion: AVX2 with VNNI and
// AVX-512 include AVX2, and neither includes the other.
//
//   if (cpu::BestIsa().Includes(cpu::Isa::kAvx512)) ...   // this CPU may run AVX-512 code
//   const cpu::Isa used = max_isa & cpu::BestIsa();       // what is both allowed and present
//
// Thread-safe: all functions are pure or ask the machine once.
#ifndef ENGINE_CPU_ISA_H_
#define ENGINE_CPU_ISA_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tilewire::cpu {

// A value. The named sets are complete: each holds every feature that it builds on.
class Isa {
 public:
  static const Isa kBaseline;    // x86-64: the reference loops
  static const Isa kAvx2;        // AVX2, FMA, F16C, BMI2
  static const Isa kAvx2Vnni;    // kAvx2 and VNNI on 256-bit registers (AVX-VNNI)
  static const Isa kAvx512;      // kAvx2 and AVX-512 F, BW, DQ, VL
  static const Isa kAvx512Vnni;  // kAvx512 and AVX-512 VNNI
  static const Isa kAvx512Bf16;  // kAvx512Vnni and AVX-512 BF16
  static const Isa kAvx512Fp16;  // kAvx512Bf16 and AVX-512 FP16
  static const Isa kAmx;         // kAvx512Bf16 and tiles of s8, u8 and bf16 (AMX)

  constexpr Isa() = default;  // kBaseline

  // Whether every feature of `other` is in this set.
  constexpr bool Includes(Isa other) const { return (bits_ & other.bits_) == other.bits_; }
  constexpr uint32_t bits() const { return bits_; }  // equal for equal sets: for keys

  friend constexpr bool operator==(Isa, Isa) = default;
  friend constexpr Isa operator&(Isa a, Isa b) { return Isa(a.bits_ & b.bits_); }
  friend constexpr Isa operator|(Isa a, Isa b) { return Isa(a.bits_ | b.bits_); }

 private:
  explicit constexpr Isa(uint32_t bits) : bits_(bits) {}
  constexpr Isa With(int feature) const { return Isa(bits_ | 1u << feature); }

  uint32_t bits_ = 0;
};

inline constexpr Isa Isa::kBaseline = Isa();
inline constexpr Isa Isa::kAvx2 = kBaseline.With(0);
inline constexpr Isa Isa::kAvx2Vnni = kAvx2.With(1);
inline constexpr Isa Isa::kAvx512 = kAvx2.With(2);
inline constexpr Isa Isa::kAvx512Vnni = kAvx512.With(3);
inline constexpr Isa Isa::kAvx512Bf16 = kAvx512Vnni.With(4);
inline constexpr Isa Isa::kAvx512Fp16 = kAvx512Bf16.With(5);
inline constexpr Isa Isa::kAmx = kAvx512Bf16.With(6);

struct NamedIsa {
  absl::string_view name;
  Isa isa;
};

// The named sets, each after those that it includes. As a cap, a name allows its set.
inline constexpr NamedIsa kNamedIsas[] = {
    {"baseline", Isa::kBaseline},      {"avx2", Isa::kAvx2},
    {"avx2_vnni", Isa::kAvx2Vnni},     {"avx512", Isa::kAvx512},
    {"avx512_vnni", Isa::kAvx512Vnni}, {"avx512_bf16", Isa::kAvx512Bf16},
    {"avx512_fp16", Isa::kAvx512Fp16}, {"amx", Isa::kAmx},
};

// "baseline", "avx2", ...: the last of the named sets that `isa` includes.
constexpr absl::string_view IsaName(Isa isa) {
  absl::string_view name;
  for (const NamedIsa& named : kNamedIsas) {
    if (isa.Includes(named.isa)) name = named.name;
  }
  return name;
}

// The names of all named sets that `isa` includes, in their order.
std::vector<std::string> FeatureNames(Isa isa);

// All names, in the order in which the sets include each other, with `separator` between them.
std::string IsaNames(absl::string_view separator);

// The set of a name above, which as a cap is what the name allows; "best" is BestIsa().
//   kInvalidArgument  any other name; the message lists these
absl::StatusOr<Isa> ParseIsa(absl::string_view name);

// Every feature that this CPU has and the operating system saves the registers of, no more than the
// set that the environment variable TILEWIRE_MAX_ISA names (another value of it is ignored here;
// the server refuses it). The first call asks Linux for the registers of tiles, if the CPU has
// them and that variable allows them: tiles count only if they are granted (tiles.h says why a
// program should make that call early).
Isa BestIsa();

// Features that BestIsa() counts as present because this process runs their instructions in
// software, as tests do. To be called before BestIsa() is.
void CountAsPresent(Isa features);

// Why this process may not use the tiles that the CPU has, as a line for a log; empty where it may,
// or where there are none to use.
std::string TileRefusal();

inline bool Supports(Isa isa) { return BestIsa().Includes(isa); }

}  // namespace tilewire::cpu

#endif  // ENGINE_CPU_ISA_H_
