// SPDX-License-Identifier: Apache-2.0
#include "engine/cpu/isa.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace tilewire::cpu {
namespace {

constexpr std::array<absl::string_view, 5> kNames = {"baseline", "avx2", "avx512", "avx512_vnni",
                                                     "avx512_bf16"};

// GCC's CPUID reading includes the check that the operating system saves the registers (XCR0).
Isa CpuIsa() {
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("f16c") && __builtin_cpu_supports("bmi2");
  if (!avx2) return Isa::kBaseline;
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (!avx512) return Isa::kAvx2;
  if (!__builtin_cpu_supports("avx512vnni")) return Isa::kAvx512;
  return __builtin_cpu_supports("avx512bf16") ? Isa::kAvx512Bf16 : Isa::kAvx512Vnni;
}

Isa CappedIsa() {
  const Isa best = CpuIsa();
  const char* cap = std::getenv("TILEWIRE_MAX_ISA");
  if (cap == nullptr) return best;
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == cap) return std::min(best, static_cast<Isa>(i));
  }
  return best;
}

}  // namespace

absl::string_view IsaName(Isa isa) { return kNames[static_cast<size_t>(isa)]; }

absl::StatusOr<Isa> ParseIsa(absl::string_view name) {
  if (name == "best") return BestIsa();
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<Isa>(i);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("instruction set '", name,
                   "' is not one of baseline, avx2, avx512, avx512_vnni, avx512_bf16, best"));
}

Isa BestIsa() {
  static const Isa best = CappedIsa();
  return best;
}

}  // namespace tilewire::cpu
