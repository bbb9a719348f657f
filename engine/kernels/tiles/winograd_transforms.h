// SPDX-License-Identifier: Apache-2.0
//
// The interpolation points of Winograd's F(m x m, 3x3), and the transform of weights that follows
// from them. With points 0, +-p, (+-q,) infinity, a filter g of 3 taps and m + 2 inputs d give the
// m outputs
//
//   y = A^T ((G g) * (B^T d))
//
// B^T holds the coefficients of prod_{j != i} (x - p_j), row i of G is (1, p_i, p_i^2) divided by
// prod_{j != i} (p_i - p_j), column i of A^T is (1, p_i, ..., p_i^(m-1)); infinity has the leading
// coefficients. 5/8 and 3/2 halve the error of the textbook's 1 and 2, and every constant of B and
// A is exact in f32.
//
// Source: Lavin & Gray, "Fast algorithms for convolutional neural networks" (2015); Alam et al.,
// "Winograd convolution for deep neural networks: efficient point selection" (2022).
#ifndef ENGINE_KERNELS_TILES_WINOGRAD_TRANSFORMS_H_
#define ENGINE_KERNELS_TILES_WINOGRAD_TRANSFORMS_H_

#include <array>

namespace tilewire {

struct WinogradPoints {
  double p, q;  // q is unused by F(2,3)
};
constexpr WinogradPoints WinogradPointsOf(int tile) {
  return tile == 2 ? WinogradPoints{1, 0} : WinogradPoints{0.625, 1.5};
}

// G, of which the first tile + 2 rows count: the points 0, p, -p, (q, -q,) infinity.
constexpr std::array<std::array<double, 3>, 6> WinogradWeightsTransform(int tile) {
  const double p = WinogradPointsOf(tile).p, q = WinogradPointsOf(tile).q;
  const double pp = p * p, qq = q * q;
  if (tile == 2) {
    return {{{-1 / pp, 0, 0},
             {1 / (2 * pp), 1 / (2 * p), 0.5},
             {1 / (2 * pp), -1 / (2 * p), 0.5},
             {0, 0, 1}}};
  }
  const double at_p = 1 / (2 * pp * (pp - qq)), at_q = 1 / (2 * qq * (qq - pp));
  return {{{1 / (pp * qq), 0, 0},
           {at_p, at_p * p, at_p * pp},
           {at_p, -at_p * p, at_p * pp},
           {at_q, at_q * q, at_q * qq},
           {at_q, -at_q * q, at_q * qq},
           {0, 0, 1}}};
}

}  // namespace tilewire

#endif  // ENGINE_KERNELS_TILES_WINOGRAD_TRANSFORMS_H_
