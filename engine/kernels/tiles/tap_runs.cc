// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/tiles/tap_runs.h"

#include <algorithm>

namespace tilewire {

std::vector<TapRun> TapRuns(const std::vector<TapRange>& taps, int64_t kernel_width) {
  const int pixels = static_cast<int>(taps.size());
  std::vector<TapRun> runs;
  for (int64_t tap = 0; tap < kernel_width; ++tap) {
    TapRun run{.first_pixel = pixels, .end_pixel = 0, .taps = 1};
    for (int pixel = 0; pixel < pixels; ++pixel) {
      if (tap < taps[pixel].begin || tap >= taps[pixel].end) continue;
      run.first_pixel = std::min(run.first_pixel, pixel);
      run.end_pixel = pixel + 1;
    }
    if (!runs.empty() && runs.back().first_pixel == run.first_pixel &&
        runs.back().end_pixel == run.end_pixel) {
      ++runs.back().taps;
    } else {
      runs.push_back(run);
    }
  }
  return runs;
}

}  // namespace tilewire
