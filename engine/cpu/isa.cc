// SPDX-License-Identifier: Apache-2.0
#include "engine/cpu/isa.h"

#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/cpu/tiles.h"

namespace tilewire::cpu {
namespace {

Isa in_software;  // CountAsPresent()

// All but tiles. GCC reads CPUID, and XCR0 for the registers that the operating system saves.
Isa VectorIsa() {
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
  return avx2 | Isa::kAvx512Fp16;
}

// The sets that TILEWIRE_MAX_ISA allows.
Isa AllowedIsa() {
  const char* cap = std::getenv("TILEWIRE_MAX_ISA");
  Isa all;
  for (const auto& named : kNamedIsas) {
    if (cap != nullptr && named.name == cap) return named.isa;
    all = all | named.isa;
  }
  return all;
}

struct Detected {
  Isa isa;
  TileAccess tiles;
};

Detected AskMachine() {
  const Isa allowed = AllowedIsa(), vectors = VectorIsa() | in_software;
  Detected machine = {vectors & allowed, {}};
  if (!allowed.Includes(Isa::kAmx) || !vectors.Includes(Isa::kAvx512Bf16)) return machine;
  machine.tiles = RequestTiles(UsedTileMachine());
  if (machine.tiles.granted()) machine.isa = (vectors | Isa::kAmx) & allowed;
  return machine;
}

const Detected& ThisProcess() {
  static const Detected machine = AskMachine();
  return machine;
}

}  // namespace

std::vector<std::string> FeatureNames(Isa isa) {
  std::vector<std::string> names;
  for (const NamedIsa& named : kNamedIsas) {
    if (isa.Includes(named.isa)) names.emplace_back(named.name);
  }
  return names;
}

std::string IsaNames(absl::string_view separator) {
  std::string names;
  for (const auto& named : kNamedIsas)
    absl::StrAppend(&names, names.empty() ? "" : separator, named.name);
  return names;
}

absl::StatusOr<Isa> ParseIsa(absl::string_view name) {
  if (name == "best") return BestIsa();
  for (const auto& named : kNamedIsas) {
    if (named.name == name) return named.isa;
  }
  return InvalidArgument("instruction set '", name, "' is not one of ", IsaNames(", "), ", best");
}

Isa BestIsa() { return ThisProcess().isa; }

void CountAsPresent(Isa features) { in_software = in_software | features; }

std::string TileRefusal() {
  const TileAccess& tiles = ThisProcess().tiles;
  if (!tiles.present || tiles.granted()) return "";
  return absl::StrCat("the system does not grant the CPU's matrix tiles (AMX): ",
                      std::strerror(tiles.error), "; running without them");
}

}  // namespace tilewire::cpu
