// SPDX-License-Identifier: Apache-2.0
//
// The purpose of a network for training. In it, floating-point initializers are values that a
// store keeps (Network::parameters) where they are in inference numbers that operations hold.
#ifndef ENGINE_ONNX_TRAINING_PURPOSE_H_
#define ENGINE_ONNX_TRAINING_PURPOSE_H_

#include <string>

#include "absl/container/flat_hash_set.h"

namespace tilewire::reader {

struct TrainingPurpose {
  // BatchNormalization takes the running statistics, which are then parameters that do not learn:
  // to evaluate, and to train with frozen statistics. Else those of the batch, and
  // Network::statistics says what becomes of the running ones. One whose scale and shift are frozen
  // always takes the running ones.
  bool uses_given_statistics = false;
  // Dropout drops at random, by masks that are inputs (Network::masks): for updates. Else nothing
  // is dropped.
  bool drops = false;
  // Names of parameters that stay as the file has them: numbers that operations hold.
  absl::flat_hash_set<std::string> frozen;
};

}  // namespace tilewire::reader

#endif  // ENGINE_ONNX_TRAINING_PURPOSE_H_
