// SPDX-License-Identifier: Apache-2.0
#include "service/wire/operation_count.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <variant>

#include "engine/base/checked_math.h"

namespace tilewire::service {
namespace {

// A kernel may have sizes below 0, which the primitive refuses later: they count as none.
double Elements(const Dims& dims) {
  double elements = 1;
  for (int64_t dim : dims) elements *= static_cast<double>(std::max<int64_t>(0, dim));
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
  const double window = plane ? size * size * size : size;
  // Backward sums the squares again for each neighbour.
  return Elements(desc.src) * window * (IsBackward(desc.prop_kind) ? window : 1);
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

double ReferenceOperations(const OpDesc& desc) {
  const auto* const gather = std::get_if<GatherDesc>(&desc);
  if (gather == nullptr || !IsBackward(gather->prop_kind)) return DescribedOperations(desc);
  return Elements(gather->src) * Elements(gather->indices);
}

int64_t DescribedBytes(const OpDesc& desc) {
  std::optional<int64_t> total = 0;
  const auto add = [&total](const MemoryDesc& tensor) {
    if (tensor.IsZero() || !total) return;
    // Whatever layout the primitive chooses for `any`, it holds at least the elements; strides of 0
    // take fewer bytes, but as much work.
    const std::optional<int64_t> count = ElementCount(tensor.dims());
    const std::optional<int64_t> elements =
        count ? CheckedMul(*count, SizeOf(tensor.data_type())) : std::nullopt;
    total = elements ? CheckedAdd(*total, tensor.IsAny() ? *elements
                                                         : std::max(*elements, tensor.SizeBytes()))
                     : std::nullopt;
  };
  std::visit([&add](const auto& op) { VisitTensors(op, add); }, desc);
  return total.value_or(std::numeric_limits<int64_t>::max());
}

}  // namespace tilewire::service
