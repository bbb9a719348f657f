// SPDX-License-Identifier: Apache-2.0
#include "tests/support/tiles/tile_emulator.h"

#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstring>

#include "engine/cpu/tiles.h"
#include "tests/support/tiles/tile_instruction.h"
#include "tests/support/tiles/tile_unit.h"
#include "tests/support/vex/scalar_step.h"

namespace tilewire::testing {
namespace {

// The handler runs on the stack of the code that it interrupts, as Linux leaves what lies below
// that code's stack pointer alone; so it needs nothing from the threads.
__attribute__((tls_model("initial-exec"))) thread_local constinit TileUnit unit;
struct sigaction action_before;
bool is_installed = false;

using Registers = greg_t*;

bool LoadConfigFrom(const std::byte* address) {
  TileConfig config;
  std::memcpy(&config, address, sizeof(config));
  return unit.LoadConfig(config);
}

bool StoreConfigTo(std::byte* address) {
  const TileConfig config = unit.Config();
  std::memcpy(address, &config, sizeof(config));
  return true;
}

bool Execute(const TileInstruction& what, Registers registers) {
  std::byte* const address = AddressWithoutIndex(what, registers, what.length);
  const int64_t index = IndexOf(what, registers);
  switch (what.operation) {
    case TileOperation::kLoadConfig:
      return LoadConfigFrom(address + index);
    case TileOperation::kStoreConfig:
      return StoreConfigTo(address + index);
    case TileOperation::kRelease:
      unit.Release();
      return true;
    case TileOperation::kZero:
      return unit.Zero(what.tile);
    case TileOperation::kLoad:
      return unit.Load(what.tile, address, index);
    case TileOperation::kStore:
      return unit.Store(what.tile, address, index);
    case TileOperation::kMultiplyBytes:
      return unit.MultiplyBytes(what.tile, what.a, what.b, what.a_is_signed, what.b_is_signed);
    case TileOperation::kMultiplyBf16:
      return unit.MultiplyBf16(what.tile, what.a, what.b);
  }
  return false;
}

// Runs the instruction on tiles at RIP, if there is one that the hardware runs.
bool Step(Registers registers, std::optional<TileInstruction>* instruction) {
  *instruction = DecodeTileInstruction(reinterpret_cast<const uint8_t*>(registers[REG_RIP]));
  if (!*instruction || !Execute(**instruction, registers)) return false;
  registers[REG_RIP] += (*instruction)->length;
  return true;
}

// Runs all instructions on tiles that follow each other, and what computes their addresses: signals
// take longer than most of them.
void OnIllegalInstruction(int, siginfo_t*, void* context) {
  Registers registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  std::optional<TileInstruction> instruction;
  if (Step(registers, &instruction)) {
    while (Step(registers, &instruction) || StepScalar(registers)) {
    }
    return;
  }
  constexpr char kMessage[] = "tile emulator: an instruction that faults on hardware too\n";
  if (instruction) (void)!write(STDERR_FILENO, kMessage, sizeof(kMessage) - 1);
  sigaction(SIGILL, &action_before, nullptr);  // which gets the instruction, executed once more
}

// Before the initialisers of any test, which may ask for BestIsa().
__attribute__((constructor(101))) void Install() {
  if (cpu::RequestTiles(cpu::kThisMachine).granted()) return;
  struct sigaction action = {};
  action.sa_sigaction = OnIllegalInstruction;
  action.sa_flags = SA_SIGINFO;
  is_installed = sigaction(SIGILL, &action, &action_before) == 0;
  if (!is_installed) return;
  static constexpr cpu::TileMachine kEmulated = {.cpuid =
                                                     [](uint32_t, uint32_t) {
                                                       return std::array<uint32_t, 4>{1, 0, 0, ~0u};
                                                     },
                                                 .xcr0 = [] { return ~uint64_t{0}; },
                                                 .request = [] { return 0; }};
  cpu::UseTileMachine(kEmulated);
}

}  // namespace

bool TilesAreEmulated() { return is_installed; }

}  // namespace tilewire::testing
