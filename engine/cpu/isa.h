// SPDX-License-Identifier: Apache-2.0
//
// Instruction sets as levels: each includes all before it. An implementation names the level it
// needs; creation takes a cap (`max_isa`), so that a lower level can be tested and forced.
// Thread-safe: all functions are pure or read the CPU once.
#ifndef ENGINE_CPU_ISA_H_
#define ENGINE_CPU_ISA_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tilewire::cpu {

enum class Isa : uint8_t {
  kBaseline = 0,  // x86-64: the reference loops
  kAvx2,          // AVX2, FMA, F16C, BMI2
  kAvx512,        // AVX-512 F, BW, DQ, VL
  kAvx512Vnni,    // and VNNI
  kAvx512Bf16,    // and BF16
};

// "baseline", "avx2", "avx512", "avx512_vnni", "avx512_bf16".
absl::string_view IsaName(Isa isa);

// kInvalidArgument  not one of the names above, nor "best"; the message lists them
absl::StatusOr<Isa> ParseIsa(absl::string_view name);

// The highest level of this CPU whose registers the operating system saves, no higher than the
// level that the environment variable TILEWIRE_MAX_ISA names (another value of it is ignored here;
// the server refuses it).
Isa BestIsa();

inline bool Supports(Isa isa) { return isa <= BestIsa(); }

}  // namespace tilewire::cpu

#endif  // ENGINE_CPU_ISA_H_
