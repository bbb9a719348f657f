// SPDX-License-Identifier: Apache-2.0
//
// The operations that normalize by statistics of a tensor. Shapes are in logical order
// [N, C, spatial...].
#ifndef ENGINE_NETWORK_NORMALIZATION_H_
#define ENGINE_NETWORK_NORMALIZATION_H_

#include <cstdint>
#include <limits>
#include <vector>

namespace tilewire::network {

// dst = src * (k + alpha / size * sum of src^2 over the `size` channels around)^-beta; size is odd.
struct Lrn {
  int64_t size = 5;
  float alpha = 1e-4f, beta = 0.75f, k = 1;
};
// (src - mean) / sqrt(variance + epsilon) along the last dimension, times scale plus shift, which
// have one number per element of that dimension or are both empty; with `reads_parameters` they are
// computed, the sources 1 and 2. src is of rank 2 to 5. With `saves_statistics` mean and biased
// variance of the rows, of src's dims without the last, are further results, in this order.
struct LayerNormalization {
  float epsilon = 1e-5f;
  std::vector<float> scale, shift;
  bool reads_parameters = false, saves_statistics = false;
};
// dst[n,c,s] = scale[c] * (src[n,c,s] - mean[c]) / sqrt(variance[c] + epsilon) + shift[c], with src
// of rank 2 to 5. Sources are src, scale [C] and shift [C]; then, if `uses_given_statistics`, mean
// and variance [C]. Else these are the mean and the biased variance of src over n and s, and the
// operation's further results, in this order: dst depends on the whole batch.
//
// Only then may it end as blocks of layers do: an addend of src's dims, the last source, if `adds`,
// then with `relu` min(max(dst, 0), relu_limit). What relu let through, in u8 and as the primitive
// has it (batch_normalization.h), is a last result if `saves_passed`.
struct BatchNormalization {
  float epsilon = 1e-5f;
  bool uses_given_statistics = false;
  bool adds = false, relu = false, saves_passed = false;
  float relu_limit = std::numeric_limits<float>::infinity();
};

}  // namespace tilewire::network

#endif  // ENGINE_NETWORK_NORMALIZATION_H_
