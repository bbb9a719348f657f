// SPDX-License-Identifier: Apache-2.0
//
// The functions that LSTM, GRU and RNN name in their attributes.
#ifndef ENGINE_ONNX_OPS_RECURRENT_RNN_ACTIVATIONS_H_
#define ENGINE_ONNX_OPS_RECURRENT_RNN_ACTIVATIONS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "engine/functions/rnn_cell.h"
#include "engine/onnx/file/node.h"

namespace tilewire::reader {

// The functions named by `activations`, with the numbers of `activation_alpha` and
// `activation_beta`, which the functions that have such numbers take one after the other; without
// them the usual ones.
//   kInvalidArgument  another count than the cell has in all directions, a name that ONNX does not
//                     know, more numbers than are taken
absl::StatusOr<std::vector<functions::RnnActivation>> ReadRnnActivations(const Node& node,
                                                                         functions::RnnCell cell,
                                                                         int64_t directions);

}  // namespace tilewire::reader

#endif  // ENGINE_ONNX_OPS_RECURRENT_RNN_ACTIVATIONS_H_
