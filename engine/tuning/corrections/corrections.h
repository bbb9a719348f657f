// SPDX-License-Identifier: Apache-2.0
//
// Makes layers of integers lose less than plain rounding does. A value type.
//
//   shifts   rounding the weights and the source of a layer moves the mean of each of its outputs;
//            what it is moved by, over examples, is subtracted from the bias
//   factors  one scale serves all channels of a tensor, however small some of them are. Between two
//            layers of integers, channel c becomes x[c] / factor[c]: the layer that gives it
//            divides its weights and bias for c, the one that reads it multiplies its weights
//
// Source: M. Nagel et al., Data-Free Quantization through Weight Equalization and Bias Correction,
// 2019.
#ifndef ENGINE_TUNING_CORRECTIONS_CORRECTIONS_H_
#define ENGINE_TUNING_CORRECTIONS_CORRECTIONS_H_

#include <map>
#include <string>
#include <vector>

namespace tilewire::tuning {

// A tensor whose channels are divided by factors, and the only layers that give and read it.
struct EqualizedTensor {
  std::string name;
  int giver = 0, reader = 0;   // indices of layers
  std::vector<float> factors;  // of each channel: positive
};

struct Corrections {
  std::map<int, std::vector<float>> shifts;  // by index of the layer: one per output
  std::vector<EqualizedTensor> tensors;
};

}  // namespace tilewire::tuning

#endif  // ENGINE_TUNING_CORRECTIONS_CORRECTIONS_H_
