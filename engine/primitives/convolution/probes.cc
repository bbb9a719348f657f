// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/convolution/convolution.h"
#include "engine/primitives/probe_tensors.h"

namespace tilewire {

namespace {

ConvolutionDesc ProbeOf(DataType type, DataType to, Dims src, Dims weights) {
  ConvolutionDesc desc;
  const int64_t kernel = weights.back();
  const int64_t channels = weights.size() == 5 ? weights[0] * weights[1] : weights[0];
  desc.dst = probes::Any({src[0], channels, src[2], src[3]}, to);
  desc.src = probes::Any(std::move(src), type);
  desc.weights = probes::Any(std::move(weights), probes::WeightsType(type));
  desc.strides = {1, 1};
  desc.dilations = {0, 0};
  desc.padding_left = desc.padding_right = {kernel / 2, kernel / 2};
  return desc;
}

}  // namespace

std::vector<ConvolutionDesc> ConvolutionProbes(DataType type) {
  std::vector<ConvolutionDesc> descs;
  for (DataType to : probes::ResultTypes(type)) {
    descs.push_back(ProbeOf(type, to, {1, 32, 14, 14}, {32, 32, 3, 3}));
    descs.push_back(ProbeOf(type, to, {1, 256, 56, 56}, {256, 256, 3, 3}));
    ConvolutionDesc winograd = descs.back();
    winograd.algorithm = ConvolutionAlgorithm::kWinograd;
    descs.push_back(winograd);
    descs.push_back(ProbeOf(type, to, {1, 32, 14, 14}, {32, 32, 1, 1}));
    descs.push_back(ProbeOf(type, to, {1, 64, 64, 64}, {1, 64, 3, 3}));
    descs.push_back(ProbeOf(type, to, {1, 3, 14, 14}, {32, 3, 3, 3}));
    descs.push_back(descs.back());
    descs.back().dst = probes::Any({1, 32, 7, 7}, to);
    descs.back().strides = {2, 2};
    descs.push_back(ProbeOf(type, to, {1, 32, 14, 14}, {2, 16, 16, 3, 3}));
    descs.push_back(ProbeOf(type, to, {1, 32, 14, 14}, {8, 4, 4, 3, 3}));
    descs.push_back(ProbeOf(type, to, {1, 32, 14, 14}, {32, 1, 1, 3, 3}));
    descs.push_back(descs.back());
    descs.back().src = probes::Tagged({1, 32, 14, 14}, type, "nchw");
    descs.back().dst = probes::Tagged({1, 32, 14, 14}, to, "nchw");
    descs.push_back(ProbeOf(type, to, {1, 32, 14, 14}, {32, 32, 3, 3}));
    descs.back().dst = probes::Tagged({1, 32, 14, 14}, to, "nchw");
    descs.push_back(ProbeOf(type, to, {1, 32, 14, 14}, {32, 32, 3, 3}));
    descs.back().weights = probes::Tagged({32, 32, 3, 3}, probes::WeightsType(type), "oihw");
  }
  return descs;
}

}  // namespace tilewire
