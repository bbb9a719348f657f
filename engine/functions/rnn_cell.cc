// SPDX-License-Identifier: Apache-2.0
#include "engine/functions/rnn_cell.h"

#include <cmath>

namespace tilewire::functions {

float RnnActivationScalar(const RnnActivation& activation, float x) {
  switch (activation.form) {
    case RnnActivation::Form::kEltwise:
      return EltwiseScalar(activation.op(), x);
    case RnnActivation::Form::kScaledTanh:
      return static_cast<float>(activation.alpha *
                                std::tanh(static_cast<double>(activation.beta) * x));
    case RnnActivation::Form::kSoftsign:
      return x / (1 + std::fabs(x));
    case RnnActivation::Form::kThresholdedRelu:
      return x > activation.alpha ? x : 0;
  }
  return x;
}

}  // namespace tilewire::functions
