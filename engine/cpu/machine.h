// SPDX-License-Identifier: Apache-2.0
//
// One core of a CPU as numbers: what estimates of the time that code takes are made of. They are
// cycles of the core, whatever its clock.
//
//   const cpu::Machine& machine = cpu::ThisMachine();
//   const double cycles = fmas / machine.FmasPerCycle(unit.bytes()) +
//                         weights_bytes / machine.MemoryBytesPerCycle(unit.bytes());
//
// Every number follows from CPUID alone, and never from a measurement at run time: estimates choose
// between implementations whose results differ in their last bits, and a CPU gives the same bits in
// every process. Caches depend on what a hypervisor shows, so that estimates leave them out.
//
// Thread-safe: values and pure functions; ThisMachine() asks the CPU once.
// Sources: Intel's optimization manual (248966), AMD's for families 17h, 19h and 1Ah; what
// tests/bench/on_this_cpu.sh measured is in tests/bench/figures.
#ifndef ENGINE_CPU_MACHINE_H_
#define ENGINE_CPU_MACHINE_H_

#include <algorithm>
#include <array>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace tilewire::cpu {

// A product of two matrix tiles (AMX) of 16 rows of 64 bytes, on every CPU that has them.
inline constexpr double kTileProductCycles = 16;

struct Machine {
  absl::string_view kind = "other";  // "Zen 3"
  // Multiplications and additions of vectors of f32 per cycle, in registers of 32 and of 64 bytes.
  double fmas_of_32_bytes = 2, fmas_of_64_bytes = 2;
  // The share of these rates that convolutions reach beside what their estimates expect, in cycles
  // of the clock under registers of 32 bytes, which wider ones may slow down. 1 until it has been
  // measured.
  double reached_of_32_bytes = 1, reached_of_64_bytes = 1;
  // Products of pairs of bf16 in vectors take the time of f32 products divided by this, loads and
  // stores of a convolution included. 1 where VDPBF16PS issues at half the rate of FMAs.
  double bf16_gain = 1.75;
  // Bytes that a core reads from memory, while the others read, too, in the time of such an FMA.
  // One figure for all kinds until tests/bench/on_this_cpu.sh has measured them: the choice between
  // arithmetic and reading is the same on all.
  double memory_bytes_per_fma = 2.7778;
  // The share of the shorter one of computing and reading weights that the longer one hides, as
  // caches read ahead. 0, that is one after the other, until it has been measured.
  double hidden_reading = 0;
  // The instructions that one counts for in Winograd's transforms of 16 and of 36 points, and
  // beside that where numbers do not fit into 16 registers and go through memory in between. 1
  // until it has been measured.
  double transform_of_16_points = 1, transform_of_36_points = 1, spilling = 1;
  // Cycles in which a byte of a large tensor is read and written. 0, as if the first caches held
  // all tensors, until it has been measured.
  double cycles_of_byte_read = 0, cycles_of_byte_written = 0;
  // Bytes, of one core or of all that share the cache; 0 where CPUID does not tell.
  std::array<int64_t, 3> cache_bytes{0, 0, 0};

  constexpr double FmasPerCycle(int register_bytes) const {
    return register_bytes > 32 ? fmas_of_64_bytes * reached_of_64_bytes
                               : fmas_of_32_bytes * reached_of_32_bytes;
  }
  constexpr double MemoryBytesPerCycle(int register_bytes) const {
    return memory_bytes_per_fma * FmasPerCycle(register_bytes);
  }
  // Cycles of both, where `computing` takes numbers in the order in which `reading` brings them.
  constexpr double WhileReading(double computing, double reading) const {
    return computing + reading - hidden_reading * std::min(computing, reading);
  }
  // Cycles for the tensors of which so many bytes are read and written.
  constexpr double TensorCycles(double read, double written) const {
    constexpr double kCached = 256 << 10;
    return (read > kCached ? read * cycles_of_byte_read : 0) +
           (written > kCached ? written * cycles_of_byte_written : 0);
  }
};

// EAX, EBX, ECX, EDX of a leaf and a subleaf; zeros for a leaf that the CPU lacks.
using CpuidFunction = std::array<uint32_t, 4> (*)(uint32_t leaf, uint32_t subleaf);

// The machine of a CPU that answers so.
Machine MachineOf(CpuidFunction cpuid);

const Machine& ThisMachine();

}  // namespace tilewire::cpu

#endif  // ENGINE_CPU_MACHINE_H_
