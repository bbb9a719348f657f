// SPDX-License-Identifier: Apache-2.0
//
// How benchmarks measure: time of the calling thread on its core, so that what others take away
// from a shared core does not count, and medians.
#ifndef TESTS_BENCH_STOPWATCH_H_
#define TESTS_BENCH_STOPWATCH_H_

#include <time.h>

#include <algorithm>
#include <vector>

namespace tilewire::bench {

template <typename Function>
double Seconds(Function function) {
  const auto now = [] {
    timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec + 1e-9 * time.tv_nsec;
  };
  const double start = now();
  function();
  return now() - start;
}

inline double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

}  // namespace tilewire::bench

#endif  // TESTS_BENCH_STOPWATCH_H_
