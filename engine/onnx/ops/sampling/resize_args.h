// SPDX-License-Identifier: Apache-2.0
//
// The attributes and inputs of Resize and Upsample, in all opsets. Pure functions; thread-safe.
#ifndef ENGINE_ONNX_OPS_SAMPLING_RESIZE_ARGS_H_
#define ENGINE_ONNX_OPS_SAMPLING_RESIZE_ARGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/onnx/node_context.h"

namespace tilewire::reader {

constexpr int64_t kLargestResized = int64_t{1} << 20;  // of a resized dimension

struct ResizeArgs {
  std::string mode, coordinates, rounding;
  std::string policy;     // for sizes: whether the scales of all axes are made one
  std::vector<int> axes;  // those that region, scales and sizes are given for
  float cubic_a = -0.75f;
  bool antialias = false;
  bool exclude_outside = false;
  bool crops = false;          // takes the part of the source that `roi` names
  std::vector<float> roi;      // all starts, then all ends; 1 is the last element
  float outside = 0;           // fills the part of a crop that lies outside the source
  std::vector<float> scales;   // one per dimension
  std::vector<int64_t> sizes;  // of the result, one per dimension
};

// The arguments of the node, whose input 0 is resized.
//   kInvalidArgument  what does not fit each other, names that are not known, sizes out of range
//   kUnimplemented    a region, scales or sizes that are computed
absl::StatusOr<ResizeArgs> ReadResizeArgs(const NodeContext& context);

}  // namespace tilewire::reader

#endif  // ENGINE_ONNX_OPS_SAMPLING_RESIZE_ARGS_H_
