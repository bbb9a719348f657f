// SPDX-License-Identifier: Apache-2.0
//
// Prints the GFLOP/s of one core over some seconds: two of these at once tell what the machine
// grants two busy cores.
#include <algorithm>
#include <cstdio>
#include <vector>

#include "absl/time/clock.h"
#include "engine/jit/fma_peak.h"

int main() {
  std::vector<double> samples;
  const absl::Time end = absl::Now() + absl::Seconds(2);
  while (absl::Now() < end) samples.push_back(tilewire::jit::MeasureFmaPeak());
  std::nth_element(samples.begin(), samples.begin() + samples.size() / 2, samples.end());
  std::printf("%.1f\n", samples[samples.size() / 2]);
}
