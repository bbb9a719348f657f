// SPDX-License-Identifier: Apache-2.0
//
// The oracle's gradients against central differences of the forward operations of its interpreter:
// of a random direction of each operand and of single elements, for the loss sum(diff_dst * dst),
// within 1e-7 of its magnitude.
#include "tests/support/oracle/gradients.h"

#include <cmath>
#include <functional>

#include "gtest/gtest.h"
#include "tests/support/oracle/operations.h"
#include "tests/support/random_tensor.h"

namespace tilewire::testing {
namespace {

// dst of src and weights.
using Forward = std::function<Elements(const Elements& src, const Elements& weights)>;

struct LayerCase {
  const char* why;
  Products products;
  Dims src, weights, dst;
  Forward forward;
};

Elements ValuesOf(const std::vector<ProductSum>& sums) {
  Elements values;
  for (const ProductSum& sum : sums) values.push_back(sum.value);
  return values;
}

Elements RandomElements(int64_t count, uint64_t seed) {
  const std::vector<float> values = RandomFloats(count, seed);
  return Elements(values.begin(), values.end());
}

double Dot(const Elements& a, const Elements& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

Elements Moved(Elements from, const Elements& direction, double step) {
  for (size_t i = 0; i < from.size(); ++i) from[i] += step * direction[i];
  return from;
}

// The loss' derivative along the direction, by the interpreter and by the gradient.
void ExpectDerivative(const std::function<double(const Elements&)>& loss, const Elements& at,
                      const Elements& direction, const Elements& gradient) {
  constexpr double kStep = 1e-5, kBound = 1e-7;
  const double difference =
      (loss(Moved(at, direction, kStep)) - loss(Moved(at, direction, -kStep))) / (2 * kStep);
  double magnitude = 1;
  for (size_t i = 0; i < gradient.size(); ++i)
    magnitude += std::abs(gradient[i] * direction[i]) + std::abs(gradient[i]);
  EXPECT_NEAR(Dot(gradient, direction), difference, kBound * magnitude);
}

void ExpectGradients(const std::function<double(const Elements&)>& loss, const Elements& at,
                     const Elements& gradient) {
  constexpr int kElements = 20;
  ExpectDerivative(loss, at, RandomElements(static_cast<int64_t>(at.size()), 9), gradient);
  Random random(10);
  for (int i = 0; i < kElements; ++i) {
    Elements direction(at.size());
    direction[random.Next() % at.size()] = 1;
    ExpectDerivative(loss, at, direction, gradient);
  }
}

LayerCase Convolved(const char* why, const WindowLayer& layer, const Dims& weights) {
  network::ComputedConvolution convolution{layer.groups, layer.strides, layer.dilations,
                                           layer.padding_left, layer.padding_left};
  return {why,
          ConvolutionProducts(layer),
          layer.src,
          weights,
          layer.dst,
          [layer, weights, convolution](const Elements& src, const Elements& numbers) {
            return Compute(convolution,
                           {{{src, layer.src}, {numbers, weights}}, layer.dst, DataType::kF32});
          }};
}

LayerCase Multiplied(const char* why, const Dims& src, const Dims& weights, const Dims& dst) {
  return {
      why,
      MatrixProducts(src, weights, dst),
      src,
      weights,
      dst,
      [=](const Elements& left, const Elements& right) {
        return Compute(network::Matmul{}, {{{left, src}, {right, weights}}, dst, DataType::kF32});
      }};
}

// A fully connected layer is the product by its transposed weights.
LayerCase Connected(const char* why, int64_t batch, int64_t outputs, int64_t inputs) {
  const Dims src = {batch, inputs}, weights = {outputs, inputs}, dst = {batch, outputs};
  return {why,
          InnerProducts(batch, outputs, inputs),
          src,
          weights,
          dst,
          [=](const Elements& images, const Elements& numbers) {
            Elements transposed(numbers.size());
            for (int64_t o = 0; o < outputs; ++o) {
              for (int64_t i = 0; i < inputs; ++i)
                transposed[i * outputs + o] = numbers[o * inputs + i];
            }
            const Dims matrix = {inputs, outputs};
            return Compute(network::Matmul{},
                           {{{images, src}, {transposed, matrix}}, dst, DataType::kF32});
          }};
}

TEST(OracleGradientsTest, AreCentralDifferences) {
  const LayerCase cases[] = {
      Convolved("padded", {{2, 3, 5, 6}, {2, 4, 5, 6}, {3, 3}, 1, {1, 1}, {0, 0}, {1, 1}},
                {4, 3, 3, 3}),
      Convolved("strided, dilated groups",
                {{2, 4, 9, 8}, {2, 6, 4, 8}, {3, 2}, 2, {2, 1}, {0, 1}, {0, 1}}, {6, 2, 3, 2}),
      Convolved("one dimension", {{1, 2, 9}, {1, 3, 3}, {3}, 1, {3}, {0}, {0}}, {3, 2, 3}),
      Convolved("three dimensions",
                {{1, 2, 3, 4, 5}, {1, 2, 3, 4, 5}, {3, 3, 1}, 2, {1, 1, 1}, {0, 0, 0}, {1, 1, 0}},
                {2, 1, 3, 3, 1}),
      Connected("fully connected", 3, 5, 7),
      Multiplied("a batch", {2, 3, 4}, {2, 4, 5}, {2, 3, 5}),
      Multiplied("shared weights", {2, 3, 4}, {1, 4, 5}, {2, 3, 5}),
      Multiplied("shared src", {1, 2, 3, 4}, {3, 2, 4, 2}, {3, 2, 3, 2}),
  };
  for (const LayerCase& c : cases) {
    SCOPED_TRACE(c.why);
    const Elements src = RandomElements(*ElementCount(c.src), 1);
    const Elements weights = RandomElements(*ElementCount(c.weights), 2);
    const Elements diff_dst = RandomElements(*ElementCount(c.dst), 3);
    const ProductSums sums = SumsOf(c.products, {src, weights, diff_dst});
    ExpectGradients([&](const Elements& at) { return Dot(diff_dst, c.forward(at, weights)); }, src,
                    ValuesOf(sums.src));
    ExpectGradients([&](const Elements& at) { return Dot(diff_dst, c.forward(src, at)); }, weights,
                    ValuesOf(sums.weights));
  }
}

// A deconvolution's dst is the gradient of the src of the convolution from dst to src whose weights
// are the same with input and output channels exchanged.
TEST(OracleGradientsTest, ADeconvolutionIsTheTransposeOfAConvolution) {
  const WindowLayer up = {{2, 3, 4, 5}, {2, 2, 9, 6}, {3, 2}, 1, {2, 1}, {0, 0}, {0, 0}};
  const WindowLayer down = {up.dst,     up.src,       up.kernel,      1,
                            up.strides, up.dilations, up.padding_left};
  const Elements src = RandomElements(2 * 3 * 4 * 5, 1), weights = RandomElements(2 * 3 * 6, 2);
  Elements exchanged(weights.size());
  for (int64_t o = 0; o < 2; ++o) {
    for (int64_t i = 0; i < 3; ++i) {
      for (int64_t tap = 0; tap < 6; ++tap)
        exchanged[(i * 2 + o) * 6 + tap] = weights[(o * 3 + i) * 6 + tap];
    }
  }
  const Elements dst(*ElementCount(up.dst));
  const Elements forward = ValuesOf(SumsOf(DeconvolutionProducts(up), {src, weights, dst}).dst);
  const Elements gradient = ValuesOf(SumsOf(ConvolutionProducts(down), {dst, exchanged, src}).src);
  ASSERT_EQ(forward.size(), gradient.size());
  for (size_t i = 0; i < forward.size(); ++i) EXPECT_NEAR(forward[i], gradient[i], 1e-12);
}

TEST(OracleGradientsTest, ABiasGetsTheSumOfItsChannel) {
  EXPECT_EQ(SumsOfChannels({2, 2, 2}, {1, 2, 3, 4, 10, 20, 30, 40}),
            (Elements{1 + 2 + 10 + 20, 3 + 4 + 30 + 40}));
}

}  // namespace
}  // namespace tilewire::testing
