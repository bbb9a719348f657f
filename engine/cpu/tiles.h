// SPDX-License-Identifier: Apache-2.0
//
// Whether this process may use matrix tiles (AMX): eight registers of 16 rows of 64 bytes. All of
// these must hold:
//
//   CPUID 7.0 EDX bits 24, 25, 22   the CPU has tiles, their products of bytes and of bf16
//   XCR0 bits 17, 18                the operating system saves their configuration and contents
//   CPUID 1D.0 EAX >= 1             there is a configuration that can be loaded: a hypervisor may
//                                   show the bits above without one, and then every use faults
//   arch_prctl(ARCH_REQ_XCOMP_PERM) Linux (5.16 and newer) grants the registers to the process
//
// The grant holds for all threads, also those that exist already, and for forked processes. It is
// refused (ENOSPC) while a thread has an alternate signal stack that is too small for the
// registers, so that it is to be asked for early, before libraries install such stacks. Without it
// the first instruction on tiles ends in SIGILL.
//
// Thread-safe, but for UseTileMachine().
// Source: Intel SDM volume 1, chapter 18; docs.kernel.org/arch/x86/xstate.html.
#ifndef ENGINE_CPU_TILES_H_
#define ENGINE_CPU_TILES_H_

#include <array>
#include <cstdint>

namespace tilewire::cpu {

// The questions to the machine, so that its answers can be replaced.
struct TileMachine {
  // EAX, EBX, ECX, EDX; zeros for a leaf that the CPU lacks.
  std::array<uint32_t, 4> (*cpuid)(uint32_t leaf, uint32_t subleaf);
  uint64_t (*xcr0)();  // 0 where it cannot be read
  int (*request)();    // asks the operating system for the registers: 0, or errno
};

// How the real machine answers.
extern const TileMachine kThisMachine;

struct TileAccess {
  bool present = false;  // the CPU and the operating system have tiles
  int error = 0;         // errno of the request, which is made only if they have

  bool granted() const { return present && error == 0; }
};

// Asks everything in the order above, and no further than the first no.
TileAccess RequestTiles(const TileMachine& machine);

// The machine that BestIsa() asks. Another one may be set before BestIsa() is first called.
const TileMachine& UsedTileMachine();
void UseTileMachine(const TileMachine& machine);

}  // namespace tilewire::cpu

#endif  // ENGINE_CPU_TILES_H_
