// SPDX-License-Identifier: Apache-2.0
//
// The sliding window that convolutions and poolings share: kernel, strides, dilations and padding
// of a node, and the size of what they give:
//
//   dst = (src + left + right - ((kernel - 1) * dilation + 1)) / stride + 1   rounded down, or up
//   with ceil_mode
//
// auto_pad: SAME_UPPER and SAME_LOWER give dst = src / stride rounded up; VALID pads nothing.
#ifndef ENGINE_ONNX_OPS_WINDOWS_WINDOW_H_
#define ENGINE_ONNX_OPS_WINDOWS_WINDOW_H_

#include "absl/status/statusor.h"
#include "engine/memory/dims.h"
#include "engine/onnx/file/node.h"

namespace tilewire::reader {

// One entry per spatial dimension. Dilations count from 1, as in ONNX.
struct Window {
  Dims kernel, strides, dilations, padding_left, padding_right;
  Dims dst;             // spatial sizes of the result
  Dims ceil_extension;  // elements by which the last window reaches past padding_right (ceil_mode)
};

// `src` is [N, C, spatial...]; reads every attribute but kernel_shape.
//   kInvalidArgument  attributes of the wrong length or range, a window larger than the padded
//   source
absl::StatusOr<Window> ReadWindow(const Node& node, const Dims& src, Dims kernel, bool ceil_mode);

}  // namespace tilewire::reader

#endif  // ENGINE_ONNX_OPS_WINDOWS_WINDOW_H_
