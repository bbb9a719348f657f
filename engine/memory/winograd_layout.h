// SPDX-License-Identifier: Apache-2.0
//
// Weights of a 3x3 convolution as Winograd's F(tile x tile, 3x3) multiplies them: for each of the
// (tile + 2)^2 points a matrix of input channels times output channels,
//
//   U[point][i][o] = (G w[o][i] G^T)[point]
//
// cut into panels of `panel_blocks` blocks of `lanes` output channels, the last of which may be
// narrower: [panel][point][input channel][output channel of the panel]. Input channels are rounded
// up to `lanes`, output channels to a block, with zeros. The original weights cannot be recovered.
//
// Or these matrices, point after point, split into planes of bf16 (plane_layout.h), whose groups
// are the panels.
//
// Value type. Source: Lavin & Gray, "Fast algorithms for convolutional neural networks" (2015).
#ifndef ENGINE_MEMORY_WINOGRAD_LAYOUT_H_
#define ENGINE_MEMORY_WINOGRAD_LAYOUT_H_

#include <algorithm>
#include <cstdint>

#include "engine/base/checked_math.h"
#include "engine/memory/plane_layout.h"

namespace tilewire {

struct WinogradLayout {
  int tile = 0;  // outputs along a side: 2 or 4
  int lanes = 0;
  int panel_blocks = 0;
  int planes = 0;  // of each number, 0: it is f32

  bool operator==(const WinogradLayout&) const = default;

  int points() const { return (tile + 2) * (tile + 2); }
  int64_t PaddedInputs(int64_t ic) const { return RoundUp(ic, lanes); }
  int64_t Blocks(int64_t oc) const { return DivUp(oc, lanes); }
  int64_t Panels(int64_t oc) const { return DivUp(Blocks(oc), panel_blocks); }
  int64_t BlocksOfPanel(int64_t oc, int64_t panel) const {
    return std::min<int64_t>(panel_blocks, Blocks(oc) - panel * panel_blocks);
  }
  int64_t Elements(int64_t oc, int64_t ic) const {
    return points() * PaddedInputs(ic) * Blocks(oc) * lanes;
  }
  // Element offset of a panel's matrix for one point.
  int64_t MatrixOffset(int64_t oc, int64_t ic, int64_t panel, int64_t point) const {
    const int64_t column = PaddedInputs(ic) * lanes;  // elements of one output block
    return (panel * panel_blocks * points() + point * BlocksOfPanel(oc, panel)) * column;
  }
  PlaneLayout Planes(int64_t oc, int64_t ic) const {
    return {.planes = planes,
            .matrices = points(),
            .outputs = oc,
            .taps = 1,
            .channels = PaddedInputs(ic)};
  }
  int64_t SizeBytes(int64_t oc, int64_t ic) const {
    return planes > 0 ? Planes(oc, ic).SizeBytes()
                      : Elements(oc, ic) * static_cast<int64_t>(sizeof(float));
  }
};

}  // namespace tilewire

#endif  // ENGINE_MEMORY_WINOGRAD_LAYOUT_H_
