// SPDX-License-Identifier: Apache-2.0
//
// Gradients of operations of a network (network.h): what cannot be put together as well from other
// operations. The first source, dy, is the gradient of a number by the result of the forward
// operation and has its dims; the result is the gradient by one of the sources and has the dims of
// that one. Everything is f32 but for indices and the places of maxima.
#ifndef ENGINE_NETWORK_GRADIENT_OPERATIONS_H_
#define ENGINE_NETWORK_GRADIENT_OPERATIONS_H_

#include "engine/functions/function.h"
#include "engine/network/convolutions.h"
#include "engine/network/normalization.h"
#include "engine/network/pooling.h"
#include "engine/network/reduction.h"

namespace tilewire::network {

// By src. Sources are dy and weights.
struct ConvolutionDataGradient {
  ComputedConvolution forward;
};
// By weights, and by bias as a further result if `by_bias`. Sources are dy and src.
struct ConvolutionWeightsGradient {
  ComputedConvolution forward;
  bool by_bias = false;
};
// By one side of a product of matrices, summed where that side was broadcast. Sources are dy and
// the other side.
struct MatmulGradient {
  bool by_second = false;
};
// dy * f'(x). Sources are dy and x, or f(x) where that is enough (functions::HasResultSlope).
struct ActivationGradient {
  functions::EltwiseOp op;
  bool from_result = false;
};
// Sources are dy and, of a maximum, the places that the forward operation saved.
struct PoolingGradient {
  Pooling forward;
};
// y * (dy - sum of dy * y along the axis). Sources are dy and y.
struct SoftmaxGradient {
  int axis = 1;
};
// By src; by scale and shift as further results, in this order, if `by_parameters`, then by the
// addend if `by_addend`, which goes with relu. Sources are dy, src, scale, mean and variance, then,
// with relu, what it let through.
struct BatchNormalizationGradient {
  BatchNormalization forward;
  bool by_parameters = false, by_addend = false;
};
// By src; by scale and shift as further results, in this order, if `by_parameters`, which needs
// `scales`. Sources are dy, src, mean and variance, then, if it `scales`, scale.
struct LayerNormalizationGradient {
  float epsilon = 1e-5f;
  bool scales = false, by_parameters = false;
};
// Sources are dy and src.
struct LrnGradient {
  Lrn forward;
};
// Sources are dy and src. A maximum or minimum shares dy evenly among equals.
struct ReduceGradient {
  Reduce::Function function = Reduce::Function::kMax;
};
// By src of a gather along `axis`, or of a selection: dst[.., e, ..] is the sum of dy at the
// indices that name e, in their order. Sources are dy and the indices.
struct GatherGradient {
  int axis = 0;
};

}  // namespace tilewire::network

#endif  // ENGINE_NETWORK_GRADIENT_OPERATIONS_H_
