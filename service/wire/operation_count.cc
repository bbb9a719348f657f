// SPDX-License-Identifier: Apache-2.0
#include "service/wire/operation_count.h"

#include <algorithm>
#include <variant>

namespace tilewire::service {
namespace {

double Elements(const Dims& dims) {
  double elements = 1;
  for (int64_t dim : dims) elements *= static_cast<double>(dim);
  return elements;
}

double Elements(const MemoryDesc& desc) { return desc.IsZero() ? 0 : Elements(desc.dims()); }

double Channels(const MemoryDesc& desc) {
  return desc.rank() < 2 ? 1 : std::max<double>(1, static_cast<double>(desc.dims()[1]));
}

double Width(const MemoryDesc& desc) {
  return desc.rank() < 1 ? 1 : static_cast<double>(desc.dims().back());
}

double Count(const ConvolutionDesc& desc) {
  return Elements(desc.dst) * Elements(desc.weights) / Channels(desc.dst);
}
double Count(const DeconvolutionDesc& desc) {
  return Elements(desc.src) * Elements(desc.weights) / Channels(desc.src);
}
double Count(const InnerProductDesc& desc) {
  return Elements(desc.dst) * Elements(desc.weights) / Channels(desc.dst);
}
double Count(const MatmulDesc& desc) { return Elements(desc.dst) * Width(desc.src); }
// A region's bins of as many samples as it has pixels are counted with one each.
double Count(const RoiAlignDesc& desc) {
  const auto samples = static_cast<double>(std::max<int64_t>(1, desc.samples_per_bin));
  return 4 * Elements(desc.dst) * samples * samples;
}
double Count(const RnnDesc& desc) {  // each weight once per step of each sequence
  const double results = Elements(desc.dst_layer) / std::max<double>(1, Width(desc.dst_layer));
  return results * (Elements(desc.weights_layer) + Elements(desc.weights_iter));
}
double Count(const PoolingDesc& desc) { return Elements(desc.dst) * Elements(desc.kernel); }
double Count(const LrnDesc& desc) {
  const double size = static_cast<double>(std::max<int64_t>(1, desc.local_size));
  const bool plane = desc.algorithm == LrnAlgorithm::kWithinChannel;
  return Elements(desc.src) * (plane ? size * size * size : size);
}

// The tensors of all others are read or written once.
template <typename Desc>
double Count(const Desc& desc) {
  double elements = Elements(desc.dst);
  if constexpr (requires { desc.srcs; }) {
    for (const MemoryDesc& source : desc.srcs) elements += Elements(source);
  } else if constexpr (requires { desc.src; }) {
    elements += Elements(desc.src);
  }
  return elements;
}

}  // namespace

double DescribedOperations(const OpDesc& desc) {
  return std::visit([](const auto& operation) { return Count(operation); }, desc);
}

}  // namespace tilewire::service
