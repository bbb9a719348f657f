// SPDX-License-Identifier: Apache-2.0
//
// The width taps of a tile, grouped by the pixels that read them: a tap that some pixels read from
// the padding is emitted for the other pixels only. Pure; thread-safe.
#ifndef ENGINE_KERNELS_TILES_TAP_RUNS_H_
#define ENGINE_KERNELS_TILES_TAP_RUNS_H_

#include <cstdint>
#include <vector>

namespace tilewire {

// Taps along one dimension: [begin, end).
struct TapRange {
  int64_t begin, end;
};

// Consecutive width taps that are read by the same pixels, [first_pixel, end_pixel). end_pixel is 0
// where no pixel reads them.
struct TapRun {
  int first_pixel = 0, end_pixel = 0;
  int taps = 0;
};

// `taps`: for each pixel, the width taps of `kernel_width` that lie inside src.
std::vector<TapRun> TapRuns(const std::vector<TapRange>& taps, int64_t kernel_width);

}  // namespace tilewire

#endif  // ENGINE_KERNELS_TILES_TAP_RUNS_H_
