// SPDX-License-Identifier: Apache-2.0
//
// The layers of a model that can compute in integers: convolutions and products with one matrix,
// whose weights are f32 initializers.
#ifndef ENGINE_TUNING_LAYERS_H_
#define ENGINE_TUNING_LAYERS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/tuning/model_source.h"

namespace tilewire::tuning {

struct Layer {
  int node = 0;  // into ModelSource::nodes()
  std::string name, op;
  std::string input, weights;
  std::string bias;  // an initializer with a number per output; else empty
  int axis = 0;      // of the weights: the outputs
};

// In the order of the file.
//   kFailedPrecondition  the model is quantized already; no layer at all, with the reason
absl::StatusOr<std::vector<Layer>> FindLayers(const ModelSource& source);

}  // namespace tilewire::tuning

#endif  // ENGINE_TUNING_LAYERS_H_
