// SPDX-License-Identifier: Apache-2.0
//
// GFLOP/s of a loop of independent fused multiply-adds in registers on one core: the limit of f32
// arithmetic at the clock that the machine grants at this moment, with the vectors of `isa`. Takes
// about a millisecond of the calling thread. 0 below AVX2, or where no code can be made.
// Thread-safe.
#ifndef ENGINE_JIT_FMA_PEAK_H_
#define ENGINE_JIT_FMA_PEAK_H_

#include "engine/cpu/isa.h"

namespace tilewire::jit {

double MeasureFmaPeak(cpu::Isa isa = cpu::BestIsa());

}  // namespace tilewire::jit

#endif  // ENGINE_JIT_FMA_PEAK_H_
