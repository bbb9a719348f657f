// SPDX-License-Identifier: Apache-2.0
//
// Values of a network for training without an operation that computes them: numbers of the file,
// which a store keeps from run to run, and masks, which every run draws anew.
#ifndef ENGINE_NETWORK_PARAMETER_H_
#define ENGINE_NETWORK_PARAMETER_H_

#include <cstdint>
#include <optional>
#include <string>

#include "engine/network/constant.h"
#include "engine/network/fused_step.h"

namespace tilewire::network {

// A floating-point initializer whose elements come from a store that outlives the run, at first
// `initial`. Its value is in no operation's dst.
struct Parameter {
  ValueId value = kNoValue;
  ValueId gradient = kNoValue;  // of the loss by it, which the run leaves in the store; or none
  std::string name;             // of the initializer
  ConstantPtr initial;
  bool learns = true;  // else statistics that a BatchNormalization is given
};

// The running statistics of a BatchNormalization that takes those of its batch. An update changes
// them by
//   running = momentum * running + (1 - momentum) * of the batch
// where the variance of the batch is unbiased: elements / (elements - 1) times `batch_variance`.
struct RunningStatistics {
  ConstantPtr mean, variance;  // [C], at first; with the names of their initializers
  float momentum = 0.9f;
  ValueId batch_mean = kNoValue, batch_variance = kNoValue;
  int64_t elements = 1;  // of a channel, in the batch
};

// A mask of dropout, an input of the network after the model's own: 0 where an element is dropped,
// at random, and 1 / (1 - ratio) where it is kept.
struct DropoutMask {
  ValueId value = kNoValue;
  float ratio = 0.5f;            // in (0, 1)
  std::optional<uint64_t> seed;  // the node's; else the trainer's holds
  uint32_t node = 0;             // tells nodes apart, in networks of any shapes
};

}  // namespace tilewire::network

#endif  // ENGINE_NETWORK_PARAMETER_H_
