// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/deconvolution/deconvolution.h"
#include "engine/primitives/probe_tensors.h"

namespace tilewire {

std::vector<DeconvolutionDesc> DeconvolutionProbes(DataType type) {
  DeconvolutionDesc desc;
  desc.src = probes::Any({1, 32, 7, 7}, type);
  desc.weights = probes::Any({16, 32, 2, 2}, type);
  desc.dst = probes::Any({1, 16, 14, 14}, type);
  desc.strides = {2, 2};
  desc.dilations = desc.padding_left = desc.padding_right = {0, 0};
  return {desc};
}

}  // namespace tilewire
