// SPDX-License-Identifier: Apache-2.0
//
// The layers of a model that can compute in integers: convolutions and products with one matrix,
// whose weights are f32 initializers.
#ifndef ENGINE_TUNING_LAYERS_H_
#define ENGINE_TUNING_LAYERS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/base/precision.h"
#include "engine/cpu/isa.h"
#include "engine/tuner.h"
#include "engine/tuning/byte_weights.h"
#include "engine/tuning/model_source.h"

namespace tilewire::tuning {

struct Layer {
  int node = 0;      // into ModelSource::nodes()
  std::string name;  // unlike that of any other layer: the node's, or that of its first output
  std::string step;  // the name that steps have in plans of the file as it is
  std::string op;
  std::string input, weights;
  std::string bias;  // an initializer with a number per output; else empty
  int sum = -1;      // of a MatMul: the node that alone reads its result, and adds `bias`
  int axis = 0;      // of the weights: the outputs
  // Whether it has a bias or room for one, so that its outputs can be shifted.
  bool can_shift = false;
  // Where it is int8, its weights are integers from minus this to this.
  int largest_weight = kLargestWeight;
};

// In the order of the file.
//   kFailedPrecondition  the model is quantized already; no layer at all, with the reason
absl::StatusOr<std::vector<Layer>> FindLayers(const ModelSource& source);

// Makes weights as small as a CPU of `isa` needs them to be for products in pairs: those of layers
// that are not depthwise, whose products do not come in pairs.
void FitWeightsTo(cpu::Isa isa, const ModelSource& source, std::vector<Layer>* layers);

// Per layer.
using Precisions = std::vector<TunedPrecision>;
std::vector<bool> IsInt8(const Precisions& precisions);
// LoadOptions::node_precisions of all layers, for files of QdqWriter.
std::map<std::string, Precision> NodePrecisions(const std::vector<Layer>& layers,
                                                const Precisions& precisions);

}  // namespace tilewire::tuning

#endif  // ENGINE_TUNING_LAYERS_H_
