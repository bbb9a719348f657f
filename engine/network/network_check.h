// SPDX-License-Identifier: Apache-2.0
//
// The contracts of a network's operations (network.h) as a check: ranks, axes, sizes of lists and
// types, by which passes and lowering index. Pure functions; thread-safe.
#ifndef ENGINE_NETWORK_NETWORK_CHECK_H_
#define ENGINE_NETWORK_NETWORK_CHECK_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "engine/network/network.h"

namespace tilewire::network {

// kInternal: an operation that breaks its contract, or reads what nothing before it computes.
absl::Status CheckNetwork(const Network& network);

// An operation's sources and results.
struct Tensors {
  std::vector<const Value*> srcs;
  const Value* dst;
  const Network& network;
  std::vector<const Value*> more_results = {};

  const Dims& src(size_t i = 0) const { return srcs[i]->dims; }
  const Dims& result() const { return dst->dims; }
};

// Whether a result of `dst` has the dims of src with that of `axis` replaced by `indices`.
bool AreGathered(int axis, const Dims& src, const Dims& indices, const Dims& dst);

// The requirement that an operation does not meet; empty if it meets all. There are at least as
// many sources as it takes.
// weighted_check.cc: products with weights, and windows.
absl::string_view Lack(const Convolution& convolution, const Tensors& tensors);
absl::string_view Lack(const ComputedConvolution& convolution, const Tensors& tensors);
absl::string_view Lack(const Deconvolution& deconvolution, const Tensors& tensors);
absl::string_view Lack(const ComputedDeconvolution& deconvolution, const Tensors& tensors);
absl::string_view Lack(const DynamicConvolution& convolution, const Tensors& tensors);
absl::string_view Lack(const InnerProduct& product, const Tensors& tensors);
absl::string_view Lack(const DynamicInnerProduct& product, const Tensors& tensors);
absl::string_view Lack(const Pooling& pooling, const Tensors& tensors);
absl::string_view Lack(const MaxWindow& window, const Tensors& tensors);
absl::string_view Lack(const Rnn& rnn, const Tensors& tensors);
// gradient_check.cc: gradients.
absl::string_view Lack(const ConvolutionDataGradient& gradient, const Tensors& tensors);
absl::string_view Lack(const ConvolutionWeightsGradient& gradient, const Tensors& tensors);
absl::string_view Lack(const MatmulGradient& gradient, const Tensors& tensors);
absl::string_view Lack(const ActivationGradient& gradient, const Tensors& tensors);
absl::string_view Lack(const PoolingGradient& gradient, const Tensors& tensors);
absl::string_view Lack(const SoftmaxGradient& gradient, const Tensors& tensors);
absl::string_view Lack(const BatchNormalizationGradient& gradient, const Tensors& tensors);
absl::string_view Lack(const LayerNormalizationGradient& gradient, const Tensors& tensors);
absl::string_view Lack(const LrnGradient& gradient, const Tensors& tensors);
absl::string_view Lack(const ReduceGradient& gradient, const Tensors& tensors);
absl::string_view Lack(const GatherGradient& gradient, const Tensors& tensors);
// loss_check.cc.
absl::string_view Lack(const Loss& loss, const Tensors& tensors);

}  // namespace tilewire::network

#endif  // ENGINE_NETWORK_NETWORK_CHECK_H_
