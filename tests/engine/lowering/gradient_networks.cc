// SPDX-License-Identifier: Apache-2.0
//
// Gradients, as operations among others. Gradients of weights are of literals: those of the
// request's images would depend on the whole batch.
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tests/engine/lowering/network_builder.h"
#include "tests/engine/lowering/networks.h"

namespace tilewire::network {
namespace {

using functions::EltwiseAlgorithm;

ValueId RandomLiteral(NetworkBuilder& b, const std::string& name, Dims dims) {
  return b.AddOperation(
      name, Literal{MakeFloats(name, dims, PseudoRandom(name, *ElementCount(dims), -1, 1))}, {},
      dims);
}

Network GradientsOfProducts(int64_t n) {
  NetworkBuilder b;
  const ComputedConvolution window{1, {2, 1}, {0, 1}, {1, 2}, {1, 2}};
  const ValueId by_weights = b.AddOperation(
      "by_weights", ConvolutionWeightsGradient{window, /*by_bias=*/true},
      {RandomLiteral(b, "dy", {2, 24, 4, 9}), RandomLiteral(b, "src", {2, 20, 7, 9})},
      {24, 20, 3, 3});
  const ValueId by_bias = b.AddResult("by_bias", {24});
  const ValueId x = b.Input("x", {n, 20, 7, 9});
  const ValueId conv = b.AddOperation("conv", window, {x, by_weights, by_bias}, {n, 24, 4, 9});
  const ValueId by_src =
      b.AddOperation("by_src", ConvolutionDataGradient{window}, {conv, by_weights}, {n, 20, 7, 9});
  const ValueId rows = b.Reshaped("rows", x, {n, 20, 63});
  const ValueId by_second = b.AddOperation(
      "by_second", MatmulGradient{.by_second = true},
      {RandomLiteral(b, "e", {1, 5, 11}), RandomLiteral(b, "f", {1, 5, 63})}, {1, 63, 11});
  const ValueId product = b.AddOperation("product", Matmul{}, {rows, by_second}, {n, 20, 11});
  const ValueId by_first =
      b.AddOperation("by_first", MatmulGradient{}, {product, by_second}, {n, 20, 63});
  return b.Finish({conv, by_src, by_first});
}

// Sums of gradients. In one, all terms add to the first; in another, a term is read again; in the
// third, a term that adds stands between two that do not.
Network GradientsOfBranches(int64_t n) {
  NetworkBuilder b;
  const ComputedConvolution window{1, {1, 1}, {0, 0}, {1, 1}, {1, 1}};
  const ComputedConvolution strided{1, {2, 2}, {0, 0}, {1, 1}, {1, 1}};
  const ValueId x = b.Input("x", {n, 20, 8, 7});
  const Dims dims = {n, 24, 8, 7};
  const ValueId half = b.Conv("half", x, 20, {.stride = 2});
  const auto by = [&](const std::string& name, ValueId dy, const ComputedConvolution& forward) {
    const ValueId weights = RandomLiteral(b, name + ".w", {20, 24, 3, 3});
    return b.AddOperation(name, ConvolutionDataGradient{forward}, {dy, weights}, dims);
  };
  const ValueId first = b.Conv("first", x, 24);
  const ValueId whole = b.SumOf("whole", {first, by("a", half, strided), by("c", x, window)});
  const ValueId again = b.Conv("again", whole, 24);
  const ValueId kept = b.SumOf("kept", {again, by("d", half, strided)});
  const ValueId tanh = b.Elementwise("tanh", again, {EltwiseAlgorithm::kTanh});
  const ValueId added = by("e", x, window);
  const ValueId last = b.Elementwise("last", x, {EltwiseAlgorithm::kLinear, 2, 0});
  const ValueId narrow = b.Conv("narrow", last, 24, {.kernel = 1, .padding = 0});
  return b.Finish({kept, b.SumOf("mixed", {tanh, added, narrow})});
}

// Derivatives that follow from x and from the value of a function, over a dead gradient and over
// one that is read again.
Network GradientsOfElements(int64_t n) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {n, 20, 4, 5}), dy = b.Input("dy", {n, 20, 4, 5});
  const Dims dims = b.dims(x);
  const ValueId conv = b.Conv("conv", x, 20);
  const ValueId relu = b.Elementwise("relu", conv, {EltwiseAlgorithm::kRelu});
  const ValueId scaled = b.Elementwise("scaled", dy, {EltwiseAlgorithm::kLinear, 2, 0});
  const ValueId by_conv = b.AddOperation(
      "by_conv", ActivationGradient{{EltwiseAlgorithm::kRelu}, true}, {scaled, relu}, dims);
  const ValueId twice =
      b.AddOperation("twice", ActivationGradient{{EltwiseAlgorithm::kGelu}}, {by_conv, conv}, dims);
  const ValueId shares = b.SoftmaxOf("shares", conv, 1);
  const ValueId by_shares =
      b.AddOperation("by_shares", SoftmaxGradient{1}, {by_conv, shares}, dims);
  const ValueId by_lrn =
      b.AddOperation("by_lrn", LrnGradient{{5, 0.5f, 0.75f, 1}}, {twice, conv}, dims);
  const ValueId normalized = b.AddOperation(
      "normalized", BatchNormalizationGradient{{1e-3f, /*uses_given_statistics=*/true}},
      {by_lrn, conv, b.Numbers("scale", {20}), b.Numbers("mean", {20}),
       b.Numbers("variance", {20})},
      dims);
  const ValueId rows = b.AddOperation(
      "rows", LayerNormalization{.epsilon = 1e-3f, .saves_statistics = true}, {x}, dims);
  const ValueId mean = b.AddResult("rows.mean", {n, 20, 4});
  const ValueId variance = b.AddResult("rows.variance", {n, 20, 4});
  const ValueId by_rows =
      b.AddOperation("by_rows", LayerNormalizationGradient{1e-3f, /*scales=*/true},
                     {by_lrn, x, mean, variance, b.Numbers("row", {5})}, dims);
  const ValueId highest =
      b.AddOperation("highest", Reduce{Reduce::Function::kMax}, {conv}, {n, 20, 1, 5});
  const ValueId by_highest =
      b.AddOperation("by_highest", ReduceGradient{Reduce::Function::kMax}, {highest, conv}, dims);
  return b.Finish({by_shares, by_lrn, normalized, rows, by_rows, by_highest});
}

// All poolings; one of the maxima is a part of a concatenation, and stays where it is.
Network GradientsOfPlaces(int64_t n) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {n, 16, 7, 6});
  const ValueId conv = b.Conv("conv", x, 16);
  std::vector<ValueId> results;
  const auto pooled = [&](const std::string& name, ValueId src, Pooling::Algorithm algorithm) {
    const ValueId dst = b.Pool(name, src, algorithm, 3, 2, 1);
    PoolingGradient gradient{std::get<Pooling>(b.last().params)};
    std::vector<ValueId> srcs = {dst};  // any gradient of its dims
    if (algorithm == Pooling::Algorithm::kMax) {
      gradient.forward.saves_places = true;
      std::get<Pooling>(b.last().params).saves_places = true;
      const ValueId places = b.AddResult(name + ".places", b.dims(dst));
      b.SetType(places, DataType::kS32);
      srcs.push_back(places);
    }
    results.push_back(b.AddOperation(name + ".gradient", gradient, srcs, b.dims(src)));
    return dst;
  };
  const ValueId plain = pooled("plain", x, Pooling::Algorithm::kMax);
  const ValueId blocked = pooled("blocked", conv, Pooling::Algorithm::kMax);
  pooled("including", conv, Pooling::Algorithm::kAvgIncludePadding);
  pooled("excluding", x, Pooling::Algorithm::kAvgExcludePadding);
  const ValueId again = b.Conv("again", blocked, 32, {.kernel = 1, .padding = 0});
  results.push_back(b.ConcatOf("join", {blocked, again, plain}));
  const ValueId rows = b.AddOperation(
      "indices", Literal{MakeInts("indices", {2, 2}, {3, 0, -1, 3})}, {}, {2, 2}, DataType::kS64);
  const ValueId picked = b.AddOperation("picked", Gather{3}, {x, rows}, {n, 16, 7, 2, 2});
  results.push_back(b.AddOperation("scattered", GatherGradient{3}, {picked, rows}, {n, 16, 7, 6}));
  return b.Finish(std::move(results));
}

}  // namespace

absl::Span<const NetworkCase> GradientNetworks() {
  static constexpr NetworkCase kCases[] = {{"GradientsOfProducts", GradientsOfProducts},
                                           {"GradientsOfBranches", GradientsOfBranches},
                                           {"GradientsOfElements", GradientsOfElements},
                                           {"GradientsOfPlaces", GradientsOfPlaces}};
  return kCases;
}

}  // namespace tilewire::network
