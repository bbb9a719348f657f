// SPDX-License-Identifier: Apache-2.0
#include "engine/cpu/isa.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace tilewire::cpu {
namespace {

// What each name stands for, and so what it allows as a cap. A set stands after those it includes.
constexpr struct {
  absl::string_view name;
  Isa isa;
} kNamed[] = {
    {"baseline", Isa::kBaseline},      {"avx2", Isa::kAvx2},
    {"avx2_vnni", Isa::kAvx2Vnni},     {"avx512", Isa::kAvx512},
    {"avx512_vnni", Isa::kAvx512Vnni}, {"avx512_bf16", Isa::kAvx512Bf16},
    {"avx512_fp16", Isa::kAvx512Fp16}, {"amx", Isa::kAmx},
};

// Linux keeps the registers of tiles only for processes that asked for them.
bool HasTilePermission() {
  constexpr int kGetPermission = 0x1022;             // ARCH_GET_XCOMP_PERM
  constexpr uint64_t kTileData = uint64_t{1} << 18;  // XFEATURE_XTILEDATA
  uint64_t granted = 0;
  return syscall(SYS_arch_prctl, kGetPermission, &granted) == 0 && (granted & kTileData) != 0;
}

// GCC reads CPUID, and XCR0 for the registers that the operating system saves.
Isa CpuIsa() {
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") ||
      !__builtin_cpu_supports("f16c") || !__builtin_cpu_supports("bmi2")) {
    return Isa::kBaseline;
  }
  const Isa avx2 = __builtin_cpu_supports("avxvnni") ? Isa::kAvx2Vnni : Isa::kAvx2;
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl")) {
    return avx2;
  }
  if (!__builtin_cpu_supports("avx512vnni")) return avx2 | Isa::kAvx512;
  if (!__builtin_cpu_supports("avx512bf16")) return avx2 | Isa::kAvx512Vnni;
  if (!__builtin_cpu_supports("avx512fp16")) return avx2 | Isa::kAvx512Bf16;
  const bool amx = __builtin_cpu_supports("amx-tile") && __builtin_cpu_supports("amx-int8") &&
                   __builtin_cpu_supports("amx-bf16") && HasTilePermission();
  return avx2 | (amx ? Isa::kAmx : Isa::kAvx512Fp16);
}

Isa CappedIsa() {
  const Isa best = CpuIsa();
  const char* cap = std::getenv("TILEWIRE_MAX_ISA");
  if (cap == nullptr) return best;
  for (const auto& named : kNamed) {
    if (named.name == cap) return best & named.isa;
  }
  return best;
}

}  // namespace

absl::string_view IsaName(Isa isa) {
  absl::string_view name;
  for (const auto& named : kNamed) {
    if (isa.Includes(named.isa)) name = named.name;
  }
  return name;
}

std::string IsaNames(absl::string_view separator) {
  std::string names;
  for (const auto& named : kNamed)
    absl::StrAppend(&names, names.empty() ? "" : separator, named.name);
  return names;
}

absl::StatusOr<Isa> ParseIsa(absl::string_view name) {
  if (name == "best") return BestIsa();
  for (const auto& named : kNamed) {
    if (named.name == name) return named.isa;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("instruction set '", name, "' is not one of ", IsaNames(", "), ", best"));
}

Isa BestIsa() {
  static const Isa best = CappedIsa();
  return best;
}

}  // namespace tilewire::cpu
