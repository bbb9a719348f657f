// SPDX-License-Identifier: Apache-2.0
//
// The plain path of a training: layers as loops over row-major tensors of T, each with its
// gradients written by hand, in the order in which they are called. It shares nothing with the
// engine. Images are [N, C, H, W]; gradients of a value that several layers read are added up.
//
//   Tape<double> tape;
//   const int y = tape.Product(tape.Leaf({8, 5}, x), tape.Leaf({3, 5}, w), -1);
//   const double loss = tape.CrossEntropy(y, labels);  // and gradients of all values
//
// Thread-compatible.
#ifndef TESTS_SUPPORT_TAPE_TAPE_H_
#define TESTS_SUPPORT_TAPE_TAPE_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "engine/memory/dims.h"

namespace tilewire::testing {

struct TapeWindow {
  int64_t kernel = 1, stride = 1, pad = 0;  // the same for rows and columns

  // Windows that begin before the end of what is padded in front.
  int64_t CountIn(int64_t size) const {
    return (size + 2 * pad - kernel + stride - 1) / stride + 1;
  }
};

template <typename T>
class Tape {
 public:
  struct Node {
    Dims dims;
    std::vector<T> x, gradient;
  };

  // A value that no layer computes.
  int Leaf(const Dims& dims, std::vector<T> x);
  const Node& node(int id) const { return nodes_[id]; }

  // weights [O, C, k, k]; bias [O], or -1: none. Sizes are rounded down.
  int Convolution(int src, int weights, int bias, int64_t pad, int64_t stride = 1);
  // src is flattened; weights [O, I].
  int Product(int src, int weights, int bias);
  int Relu(int src);
  int Add(int a, int b);
  int Concat(int a, int b);  // along channels
  // Windows are rounded up. Averages are of what is inside src; of equals the first is the maximum.
  int AveragePool(int src, const TapeWindow& window);
  int MaxPool(int src, const TapeWindow& window);
  // By the batch's statistics, which `mean` and `variance` (biased) receive.
  int Normalize(int src, int scale, int shift, std::vector<T>* mean, std::vector<T>* variance);
  // The mean over the batch, and gradients of everything before it.
  double CrossEntropy(int scores, const std::vector<int64_t>& labels);

 private:
  static constexpr T kEpsilon = 1e-5f;

  int New(Dims dims);
  // Calls visit(place in dst, place in src) for each pixel of each window inside src.
  void ForEachTap(int src, int dst, const TapeWindow& window,
                  const std::function<void(int64_t, int64_t)>& visit) const;

  std::vector<Node> nodes_;
  std::vector<std::function<void()>> backward_;
};

extern template class Tape<float>;
extern template class Tape<double>;

}  // namespace tilewire::testing

#endif  // TESTS_SUPPORT_TAPE_TAPE_H_
