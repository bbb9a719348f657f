// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/probe_tensors.h"
#include "engine/primitives/rnn/rnn.h"

namespace tilewire {

std::vector<RnnDesc> RnnProbes(DataType type) {
  RnnDesc desc;
  desc.activations = {
      {functions::Function::kLogistic}, {functions::Function::kTanh}, {functions::Function::kTanh}};
  desc.src_layer = probes::Tagged({3, 2, 32}, type, "abc");
  desc.weights_layer = probes::Any({1, 1, 32, 4, 32}, type);
  desc.weights_iter = probes::Any({1, 1, 32, 4, 32}, type);
  desc.bias = probes::Any({1, 1, 4, 32}, type);
  desc.dst_layer = probes::Any({3, 2, 32}, type);
  return {desc};
}

}  // namespace tilewire
