// SPDX-License-Identifier: Apache-2.0
//
// A copy of those pixels of src that a convolution of one tap reads with a stride, without gaps
// between them: it makes the gradient of weights one of stride 1, whose rows are joined.
//
// Immutable; thread-safe.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_BACKWARD_DENSE_PIXELS_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_BACKWARD_DENSE_PIXELS_H_

#include <cstdint>

#include "engine/primitives/convolution/backward/weights_gradient_problem.h"
#include "engine/threading/arena.h"

namespace tilewire::convolution {

class DensePixels {
 public:
  // Whether `problem` has one tap, a stride and no padding, and its src neighbouring channels.
  static bool Take(const WeightsGradientProblem& problem);

  // `problem` is one that Take() takes.
  explicit DensePixels(const WeightsGradientProblem& problem);

  // The same gradient, from the copy.
  const WeightsGradientProblem& dense() const { return dense_; }
  int64_t floats() const { return dense_.geometry.batch * dense_.src.image; }

  // From the first element of src.
  void Run(const float* src, float* copy, const threading::Team& team) const;
  // One image, into a copy of its own.
  void RunImage(const float* src, int64_t image, float* copy) const;

 private:
  int64_t BlocksOfImage() const;  // of channels, in all groups
  void CopyBlock(const float* src, int64_t index, float* copy) const;
  void CopyRow(const float* src, float* copy, int64_t channels) const;

  Geometry geometry_;
  ActivationStrides src_;
  WeightsGradientProblem dense_;
};

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_BACKWARD_DENSE_PIXELS_H_
