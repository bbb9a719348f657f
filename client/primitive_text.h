// SPDX-License-Identifier: Apache-2.0
//
// A primitive described in words, as on a command line. Tensors are written [type:]dims[:tag],
// "1x64x56x56", "u8:1x64x56x56:nhwc"; sizes per spatial dimension "2" (all) or "2x1". Pure
// functions; thread-safe.
#ifndef CLIENT_PRIMITIVE_TEXT_H_
#define CLIENT_PRIMITIVE_TEXT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "protos/tilewire.pb.h"

namespace tilewire::client {

struct PrimitiveText {
  std::string kind;               // one of PrimitiveKinds()
  std::vector<std::string> srcs;  // one; two for binary, several for sum and concat
  std::string weights;            // [O, I/groups, ...]; of prelu the slopes
  std::string indices;            // of gather
  std::string dst;                // empty: the shape follows and the primitive chooses the layout
  bool bias = false, backward = false, global_stats = false, scale_shift = false;
  int32_t src_zero_point = 0, weights_zero_point = 0;  // of matmul
  std::string strides = "1", dilations = "0", padding = "0", padding_right, kernel;
  int64_t groups = 1, group_size = 1;
  int64_t hidden = 0;                    // the size of an rnn's state
  std::string direction = "left2right";  // of an rnn
  int axis = 1;
  std::string
      algorithm;  // convolution auto|direct|winograd, pooling max|avg_..., eltwise relu|tanh|...,
                  // rnn lstm|gru|...
  float alpha = 0, beta = 0, k = 1;        // of eltwise and lrn; k of lrn
  float p = 2, eps = 1e-5f;                // of reductions; eps of normalizations too
  int64_t local_size = 5;                  // of lrn
  std::vector<float> scales;               // of sum; 1 if none
  std::vector<std::string> post_ops;       // "relu", "sum", "mask", ... in order
  std::string precision = "exact";         // of products of f32: exact|fast|bf16
  std::string prop = "forward_inference";  // forward_training, backward, backward_data, ...
};

// kInvalidArgument  says which word, and what is allowed
absl::StatusOr<v1::MemoryDesc> ParseMemoryDesc(absl::string_view text);
absl::StatusOr<std::vector<int64_t>> ParseDims(absl::string_view text);

// "f32:1x64x56x56:nChw16c"
std::string ToText(const v1::MemoryDesc& desc);

}  // namespace tilewire::client

#endif  // CLIENT_PRIMITIVE_TEXT_H_
