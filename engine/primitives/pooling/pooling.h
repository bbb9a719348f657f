// SPDX-License-Identifier: Apache-2.0
//
// Pooling over 1 to 3 spatial dimensions:
//
//   max                  dst = max of the window's elements inside src
//   avg_include_padding  dst = sum of them / window size
//   avg_exclude_padding  dst = sum of them / their number
//
// Backward data:
//
//   max                  diff_src[i] = sum of diff_dst over the windows whose maximum stood at i:
//                        the first of equals in row-major order, a NaN before all numbers
//   averages             diff_src[i] = sum of diff_dst over the windows that hold i, each divided
//                        by what forward divides it by
//
// Training saves where each maximum stood, its number in the window (padding counts), as the
// workspace: u8 up to 256 taps, else s32, in the layout of dst.
//
// Arguments kArgSrc, kArgDst, and kArgWorkspace of a maximum for training; backward kArgDiffDst and
//          that kArgWorkspace (both read), kArgDiffSrc. The fields src and dst are then the layouts
//          of diff_src and diff_dst.
// Shapes   src [N,C,(D,(H,))W], dst [N,C,...] with size (in + pl + pr - kernel) / stride + 1. A
//          caller that rounds up (ONNX's ceil_mode) gives the larger dst, and padding_right follows
//          from it. A window lies at least partly inside src.
// Layouts  src as given; dst may be `any`: the layout of src. Backward src may be `any`, too: the
//          layout of dst; with both, row-major.
// Types    src and dst have one type: f32, u8, s8, s32. Integers are added in s32 (which wraps
//          around), divided in f32, rounded to nearest even. Backward, and the
//          maximum for training, take f32.
// NaN      The max of a window with a NaN is NaN.
// Source   tests/engine/rows.txt P06.
#ifndef ENGINE_PRIMITIVES_POOLING_POOLING_H_
#define ENGINE_PRIMITIVES_POOLING_POOLING_H_

#include "engine/primitives/fields.h"
#include "engine/primitives/implementation.h"
#include "engine/primitives/primitive.h"

namespace tilewire {

namespace pooling {
// ImplementationTraits::algorithm: vectors of channels, and vectors of neighbouring windows.
enum Algorithm : uint8_t { kChannelRows = 1, kPlainRows };
}  // namespace pooling

enum class PoolingAlgorithm : uint8_t { kMax = 0, kAvgIncludePadding, kAvgExcludePadding };
absl::string_view AlgorithmName(PoolingAlgorithm algorithm);  // "max"

struct PoolingDesc {
  PropKind prop_kind = PropKind::kForwardInference;
  PoolingAlgorithm algorithm = PoolingAlgorithm::kMax;
  MemoryDesc src, dst;
  Dims kernel, strides, padding_left, padding_right;  // one per spatial dimension
  MemoryDesc workspace = {};                          // backward: that of the forward primitive
};
TILEWIRE_FIELDS(PoolingDesc, prop_kind, algorithm, src, dst, kernel, strides, padding_left,
                padding_right, workspace);

//   kInvalidArgument  shapes that do not fit each other, a window wholly in the padding, or a
//                     workspace of another problem
TILEWIRE_PRIMITIVE_FUNCTIONS(Pooling);

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_POOLING_POOLING_H_
