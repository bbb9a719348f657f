// SPDX-License-Identifier: Apache-2.0
//
// How large the tensors of a descriptor are, and how much work one execution is.
#include <algorithm>
#include <variant>

#include "tests/engine/primitives/random_descriptors/random_descriptor.h"

namespace tilewire::testing {
namespace {

double Elements(const MemoryDesc& desc) {
  if (desc.IsZero()) return 0;
  double count = 1;
  for (int64_t dim : desc.dims()) count *= static_cast<double>(dim);
  return count;
}

// Operations per element of dst.
double Taps(const ConvolutionDesc& desc) {
  const double channels = static_cast<double>(std::max<int64_t>(desc.dst.dim(1), 1));
  return Elements(desc.weights) / channels;
}
double Taps(const DeconvolutionDesc& desc) {
  const double channels = static_cast<double>(std::max<int64_t>(desc.dst.dim(1), 1));
  return Elements(desc.weights) / channels;
}
double Taps(const PoolingDesc& desc) {
  double taps = 1;
  for (size_t d = 0; d < desc.kernel.size() && d + 2 < desc.src.dims().size(); ++d) {
    taps *= static_cast<double>(std::min(desc.kernel[d], desc.src.dim(static_cast<int>(d) + 2)));
  }
  return taps;
}
double Taps(const InnerProductDesc& desc) {
  return Elements(desc.src) / static_cast<double>(std::max<int64_t>(desc.src.dim(0), 1));
}
double Taps(const MatmulDesc& desc) {
  return static_cast<double>(desc.src.dim(desc.src.rank() - 1));
}
double Taps(const LrnDesc& desc) {
  const bool within = desc.algorithm == LrnAlgorithm::kWithinChannel;
  double taps = 1;
  for (int d = within ? 2 : 1; d < (within ? desc.src.rank() : std::min(2, desc.src.rank())); ++d) {
    taps *= static_cast<double>(std::min(desc.local_size, desc.src.dim(d)));
  }
  return IsBackward(desc.prop_kind) ? taps * taps : taps;  // each neighbour sums its own
}
double Taps(const InterpolateDesc& desc) { return static_cast<double>(desc.taps); }
double Taps(const MaxWindowDesc& desc) {
  double taps = 1;
  for (int64_t size : desc.kernel) taps *= static_cast<double>(size);
  return taps;
}
double Taps(const RnnDesc& desc) {
  if (desc.weights_layer.rank() != 5) return 1;
  return static_cast<double>(desc.weights_layer.dim(3)) *
         (Elements(desc.weights_layer) + Elements(desc.weights_iter));
}
double Taps(const RoiAlignDesc& desc) {
  const auto samples = static_cast<double>(std::max<int64_t>(desc.samples_per_bin, 1));
  return 4 * samples * samples;
}
template <typename Desc>
double Taps(const Desc&) {
  return 1;
}

template <typename Desc>
const MemoryDesc& DstOf(const Desc& desc) {
  if constexpr (requires { desc.dst_layer; }) {
    return desc.dst_layer;
  } else {
    return desc.dst;
  }
}

// Elements of what the operation writes.
template <typename Desc>
double Results(const Desc& desc) {
  if constexpr (requires { desc.diff_src; }) {
    return std::max(Elements(DstOf(desc)), Elements(desc.diff_src));
  } else {
    return Elements(DstOf(desc));
  }
}

}  // namespace

std::vector<const MemoryDesc*> TensorsOf(const OpDesc& desc) {
  return std::visit(
      [](const auto& op) {
        std::vector<const MemoryDesc*> tensors = {&DstOf(op)};
        if constexpr (requires { op.dst_layer; }) {
          VisitTensors(op, [&](const MemoryDesc& tensor) { tensors.push_back(&tensor); });
        } else if constexpr (requires { op.srcs; }) {
          for (const MemoryDesc& src : op.srcs) tensors.push_back(&src);
        } else if constexpr (requires { op.src1; }) {
          tensors.insert(tensors.end(), {&op.src0, &op.src1});
        } else {
          tensors.push_back(&op.src);
        }
        if constexpr (requires { op.indices.IsZero(); }) tensors.push_back(&op.indices);
        if constexpr (requires { op.rois; }) {
          tensors.insert(tensors.end(), {&op.rois, &op.batches});
        }
        if constexpr (requires { op.targets; }) tensors.push_back(&op.targets);
        if constexpr (requires { op.diff_src; }) tensors.push_back(&op.diff_src);
        if constexpr (requires { op.diff_src0; }) {
          tensors.insert(tensors.end(), {&op.diff_src0, &op.diff_src1});
        }
        if constexpr (requires { op.diff_dst; }) tensors.push_back(&op.diff_dst);
        if constexpr (requires { op.workspace; }) tensors.push_back(&op.workspace);
        if constexpr (requires { op.weights.IsZero(); }) tensors.push_back(&op.weights);
        if constexpr (requires { op.bias.IsZero(); }) tensors.push_back(&op.bias);
        return tensors;
      },
      desc);
}

double DescribedBytes(const OpDesc& desc) {
  double bytes = 0;
  for (const MemoryDesc* tensor : TensorsOf(desc)) {
    double dense = static_cast<double>(SizeOf(tensor->data_type()));
    for (int64_t dim : tensor->dims()) dense *= static_cast<double>(std::max<int64_t>(dim, 1));
    const bool has_size = !tensor->IsZero() && !tensor->IsAny();
    bytes += std::max(dense, has_size ? static_cast<double>(tensor->SizeBytes()) : 0);
  }
  return bytes;
}

double Operations(const OpDesc& desc) {
  double elements = 0;
  for (const MemoryDesc* tensor : TensorsOf(desc)) elements += Elements(*tensor);
  return std::visit([elements](const auto& op) { return elements + Results(op) * Taps(op); }, desc);
}

}  // namespace tilewire::testing
