// SPDX-License-Identifier: Apache-2.0
//
// Regions of images, each pooled to bins of one size:
//
//   dst[r, c, i, j] = mean or maximum over the samples of bin (i, j) of region r of src at (y, x)
//
// Region r is (x1, y1, x2, y2) = rois[r] * scale - offset, of image batches[r]. Where `aligned`,
// the offset is 0.5, else 0 and a region has at least one pixel in each direction. A bin has a grid
// of samples_per_bin samples each way, or, where that is 0, of as many as it has pixels, rounded
// up. src between pixels is bilinear; beyond the border pixel by up to one it is the border's,
// further out 0. The maximum is that of the four weighted pixels of each sample, as ONNX has it.
//
// Shapes    src [N, C, H, W], rois [R, 4], batches [R], dst [R, C, bins high, bins wide].
// Types     src, rois and dst: f32; batches: s64.
// Layouts   any; dst may be `any`: that of src. Not in place.
// Arguments kArgMultipleSrc + 0 (src), + 1 (rois), + 2 (batches), kArgDst.
// Execute   kInvalidArgument for an image outside [0, N), a region that is not finite, or one of
//           more than kMostSamples samples along a bin; nothing is written then.
// Threads   immutable; see primitive.h. A result is the sum of its samples in one order.
// Wire      not offered: only models use it.
// Source    ONNX, RoiAlign, opsets 10 to 22; He et al., Mask R-CNN (2017).
#ifndef ENGINE_PRIMITIVES_ROI_ALIGN_ROI_ALIGN_H_
#define ENGINE_PRIMITIVES_ROI_ALIGN_ROI_ALIGN_H_

#include "engine/primitives/fields.h"
#include "engine/primitives/implementation.h"

namespace tilewire {

struct RoiAlignDesc {
  bool takes_maximum = false;
  bool aligned = true;
  float scale = 1;
  int64_t samples_per_bin = 0;
  MemoryDesc src, rois, batches, dst;
};
TILEWIRE_FIELDS(RoiAlignDesc, takes_maximum, aligned, scale, samples_per_bin, src, rois, batches,
                dst);

//   kInvalidArgument  a scale that is not positive and finite, samples outside [0, 4096], dims or
//                     types that do not fit
TILEWIRE_PRIMITIVE_FUNCTIONS(RoiAlign);

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_ROI_ALIGN_ROI_ALIGN_H_
