// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "tests/support/oracle/operations.h"

namespace tilewire::testing {
namespace {

// The index along dimension 1 of each element.
std::vector<int64_t> ChannelsOf(const Dims& dims) {
  std::vector<int64_t> channels;
  ForEachIndex(dims, [&](const Dims& index) { channels.push_back(index[1]); });
  return channels;
}

// Mean and biased variance of each channel.
void ComputeStatistics(const Shaped& src, Elements* mean, Elements* variance) {
  const std::vector<int64_t> channels = ChannelsOf(src.dims);
  const double count = static_cast<double>(channels.size()) / static_cast<double>(src.dims[1]);
  mean->assign(src.dims[1], 0);
  variance->assign(src.dims[1], 0);
  for (size_t i = 0; i < channels.size(); ++i) (*mean)[channels[i]] += src.elements[i] / count;
  for (size_t i = 0; i < channels.size(); ++i) {
    const double difference = src.elements[i] - (*mean)[channels[i]];
    (*variance)[channels[i]] += difference * difference / count;
  }
}

}  // namespace

std::vector<Elements> ComputeAll(const network::LayerNormalization& norm,
                                 const Operands& operands) {
  const size_t columns = operands.dst.back();
  Elements dst = operands.srcs[0].elements, means, variances;
  const auto parameter = [&](size_t c, const std::vector<float>& known, size_t src) {
    return norm.reads_parameters ? operands.srcs[src].elements[c] : double(known[c]);
  };
  for (size_t row = 0; row < dst.size(); row += columns) {
    double mean = 0, variance = 0;
    for (size_t c = 0; c < columns; ++c) mean += dst[row + c] / double(columns);
    for (size_t c = 0; c < columns; ++c)
      variance += std::pow(dst[row + c] - mean, 2) / double(columns);
    for (size_t c = 0; c < columns; ++c) {
      double& x = dst[row + c];
      x = (x - mean) / std::sqrt(variance + norm.epsilon);
      if (norm.reads_parameters || !norm.scale.empty())
        x = x * parameter(c, norm.scale, 1) + parameter(c, norm.shift, 2);
    }
    means.push_back(mean);
    variances.push_back(variance);
  }
  return {dst, means, variances};
}

std::vector<Elements> ComputeAll(const network::BatchNormalization& norm,
                                 const Operands& operands) {
  const std::vector<Shaped>& srcs = operands.srcs;
  Elements mean, variance;
  if (norm.uses_given_statistics) {
    mean = srcs[3].elements;
    variance = srcs[4].elements;
  } else {
    ComputeStatistics(srcs[0], &mean, &variance);
  }
  Elements dst = srcs[0].elements, passed;
  const std::vector<int64_t> channels = ChannelsOf(srcs[0].dims);
  for (size_t i = 0; i < dst.size(); ++i) {
    const int64_t c = channels[i];
    dst[i] = srcs[1].elements[c] * (dst[i] - mean[c]) / std::sqrt(variance[c] + norm.epsilon) +
             srcs[2].elements[c];
    if (norm.adds) dst[i] += srcs.back().elements[i];
    passed.push_back(dst[i] > 0 && dst[i] < norm.relu_limit ? 1 : 0);
    if (norm.relu) dst[i] = std::min<double>(std::max(dst[i], 0.0), norm.relu_limit);
  }
  if (norm.saves_passed) return {dst, mean, variance, passed};
  return {dst, mean, variance};
}

}  // namespace tilewire::testing
