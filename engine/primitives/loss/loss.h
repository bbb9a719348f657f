// SPDX-License-Identifier: Apache-2.0
//
// The loss of a batch, a number, and its gradient by what the batch gave, in one pass. x is src and
// t are the targets; sums go over what counts, and D is 1, or for means what is named:
//
//   softmax_cross_entropy  factor / D * sum over positions of -sum over c of w_c q_c log p_c, where
//                          p = softmax(x) along dimension 1, w are the class weights (1 if there
//                          are none) and q = (1 - smoothing) t + smoothing / C, t being 1 at a
//                          label and 0 elsewhere, or probabilities. D is the sum of w at the
//                          labels that count, or the number of positions. Positions whose label is
//                          `ignore_index` do not count, and their gradient is 0.
//   binary_cross_entropy   factor / D * sum of w_c (max(x, 0) - x t + log(1 + e^-|x|)), with the
//                          weight of the element's class c, its index along dimension 1
//   mean_squared_error     factor / D * sum of (x - t)^2
//   huber                  factor / D * sum of d^2 / 2 where d = |x - t| is at most delta, else of
//                          delta (d - delta / 2)
//
// D of the last three is the number of elements, whatever their weights. The mean of nothing is
// NaN. An image's part of the loss is rounded to f32, and the parts are added in double, in the
// order of the images: the bits depend on no thread.
//
// Shapes    src [N, ...], of softmax_cross_entropy and with class weights [N, C, d...]; targets as
//           src, or labels [N, d...]; dst [1]; diff_src as src.
// Types     src, dst, diff_src: f32; labels: s32, s64; other targets: f32.
// Layouts   any; diff_src may be `any`: that of src. Not in place.
// Arguments kArgSrc, kArgSrc1 (targets), kArgDst, and kArgDiffSrc unless diff_src is the zero
//           descriptor.
// Execute   kInvalidArgument for a label outside [0, C) that is not ignored, and for a probability
//           outside [0, 1]; the message names its index, and nothing is written.
// Threads   immutable; see primitive.h.
// Wire      not offered: only trainers use it.
// Source    torch 1.13: cross_entropy, binary_cross_entropy_with_logits, mse_loss, huber_loss.
#ifndef ENGINE_PRIMITIVES_LOSS_LOSS_H_
#define ENGINE_PRIMITIVES_LOSS_LOSS_H_

#include <cstdint>
#include <vector>

#include "engine/functions/loss_function.h"
#include "engine/primitives/fields.h"
#include "engine/primitives/implementation.h"

namespace tilewire {

using functions::LossFunction;

struct LossDesc {
  LossFunction algorithm = LossFunction::kSoftmaxCrossEntropy;
  bool mean = true;
  double factor = 1;
  double delta = 1;  // of huber
  // The others are of softmax_cross_entropy, class weights of binary_cross_entropy too.
  double label_smoothing = 0;
  bool ignores = false;  // labels that are ignore_index
  int64_t ignore_index = 0;
  std::vector<float> class_weights;  // [C], or empty: 1 each
  MemoryDesc src, targets, dst, diff_src;
};
TILEWIRE_FIELDS(LossDesc, algorithm, mean, factor, delta, label_smoothing, ignores, ignore_index,
                class_weights, src, targets, dst, diff_src);

//   kInvalidArgument  dims that do not fit; a factor that is not finite, a delta that is not
//                     positive, smoothing outside [0, 1), class weights that are not C numbers from
//                     0 on, or a setting that the algorithm does not have
TILEWIRE_PRIMITIVE_FUNCTIONS(Loss);

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_LOSS_LOSS_H_
