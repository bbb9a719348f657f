// SPDX-License-Identifier: Apache-2.0
//
// The rows of differentiation: for each operation that has gradients a function that appends, to
// the context's network, the operations that compute them for its sources, given that of its
// result, and adds them (gradient_context.h). A file per family. An operation without a row has no
// gradient. Derivatives at kinks are those of functions/functions.inc.
//
//   kUnimplemented  why this operation has none
#ifndef ENGINE_NETWORK_TRAINING_GRADIENTS_GRADIENTS_H_
#define ENGINE_NETWORK_TRAINING_GRADIENTS_GRADIENTS_H_

#include "absl/status/status.h"
#include "engine/network/network.h"
#include "engine/network/training/gradient_context.h"

namespace tilewire::network {

// elements.cc: element by element.
absl::Status AppendGradients(const Activation& activation, GradientContext& context);
absl::Status AppendGradients(const Elementwise& elementwise, GradientContext& context);
absl::Status AppendGradients(const Sum& sum, GradientContext& context);

// products.cc: sums of products.
absl::Status AppendGradients(const ComputedConvolution& convolution, GradientContext& context);
absl::Status AppendGradients(const ComputedDeconvolution& deconvolution, GradientContext& context);
absl::Status AppendGradients(const Matmul& matmul, GradientContext& context);

// frozen_products.cc: with weights that do not learn.
absl::Status AppendGradients(const Convolution& convolution, GradientContext& context);
absl::Status AppendGradients(const Deconvolution& deconvolution, GradientContext& context);
absl::Status AppendGradients(const InnerProduct& product, GradientContext& context);

// reductions.cc: of several elements.
absl::Status AppendGradients(const Pooling& pooling, GradientContext& context);
absl::Status AppendGradients(const Reduce& reduce, GradientContext& context);
absl::Status AppendGradients(const Softmax& softmax, GradientContext& context);
absl::Status AppendGradients(const Lrn& lrn, GradientContext& context);
absl::Status AppendGradients(const Interpolate& interpolate, GradientContext& context);

// normalizations.cc: with a scale and a shift.
absl::Status AppendGradients(const LayerNormalization& norm, GradientContext& context);
absl::Status AppendGradients(const BatchNormalization& norm, GradientContext& context);

// movement.cc: elements that only move.
absl::Status AppendGradients(const Concat& concat, GradientContext& context);
absl::Status AppendGradients(const Convert& convert, GradientContext& context);
absl::Status AppendGradients(const Gather& gather, GradientContext& context);
absl::Status AppendGradients(const GatherChannels& gather, GradientContext& context);
absl::Status AppendGradients(const Reshape& reshape, GradientContext& context);
absl::Status AppendGradients(const Select& select, GradientContext& context);
absl::Status AppendGradients(const Shuffle& shuffle, GradientContext& context);
absl::Status AppendGradients(const Transpose& transpose, GradientContext& context);

// ranks.cc: elements that are chosen by their size.
absl::Status AppendGradients(const TopK& top, GradientContext& context);

// refused.cc: without a gradient, with the reason.
absl::Status AppendGradients(const Attention& attention, GradientContext& context);
absl::Status AppendGradients(const MaxWindow& window, GradientContext& context);
absl::Status AppendGradients(const Rnn& rnn, GradientContext& context);
absl::Status AppendGradients(const RoiAlign& pooling, GradientContext& context);

}  // namespace tilewire::network

#endif  // ENGINE_NETWORK_TRAINING_GRADIENTS_GRADIENTS_H_
