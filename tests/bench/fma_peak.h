// SPDX-License-Identifier: Apache-2.0
//
// GFLOP/s of a loop of independent fused multiply-adds in registers on one core: the limit of f32
// arithmetic at the clock that the machine grants at this moment. With AVX-512 where the CPU has
// it, else AVX2.
#ifndef TESTS_BENCH_FMA_PEAK_H_
#define TESTS_BENCH_FMA_PEAK_H_

namespace tilewire::bench {

double MeasureFmaPeak();

}  // namespace tilewire::bench

#endif  // TESTS_BENCH_FMA_PEAK_H_
