// SPDX-License-Identifier: Apache-2.0
//
// Numbers of the file that are values of a network for training, without an operation that computes
// them: a store keeps them from run to run.
#ifndef ENGINE_NETWORK_PARAMETER_H_
#define ENGINE_NETWORK_PARAMETER_H_

#include <cstdint>
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

}  // namespace tilewire::network

#endif  // ENGINE_NETWORK_PARAMETER_H_
