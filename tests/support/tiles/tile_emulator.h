// SPDX-License-Identifier: Apache-2.0
//
// Matrix tiles (AMX) on a machine without them. A test that depends on this library runs generated
// code on tiles on every CPU with AVX-512 BF16: where the machine has no tiles, or the system
// grants none, each instruction on them faults, and a handler of SIGILL computes what it would have
// done with the bit model of tile_unit.h, on tiles of the thread that it came from. Such a process
// finds cpu::Isa::kAmx in cpu::BestIsa(). Where there are tiles, nothing is replaced, and the same
// tests run on the hardware.
//
// An instruction that faults on the hardware too, an illegal encoding or tiles that do not fit each
// other, ends the process, with a line that says so.
#ifndef TESTS_SUPPORT_TILES_TILE_EMULATOR_H_
#define TESTS_SUPPORT_TILES_TILE_EMULATOR_H_

namespace tilewire::testing {

// Whether this process computes tiles in software. It is decided before main() begins.
bool TilesAreEmulated();

}  // namespace tilewire::testing

#endif  // TESTS_SUPPORT_TILES_TILE_EMULATOR_H_
