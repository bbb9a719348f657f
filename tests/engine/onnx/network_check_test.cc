// SPDX-License-Identifier: Apache-2.0
//
// Networks of one operation that keeps its contract, and with one thing changed that breaks it.
#include "engine/network/network_check.h"

#include <utility>

#include "tests/engine/onnx/network_check_case.h"

namespace tilewire::reader {

using network::Activation;
using network::Attention;
using network::Concat;
using network::Convolution;
using network::Dequantize;
using network::Elementwise;
using network::Gather;
using network::GatherChannels;
using network::Interpolate;
using network::LayerNormalization;
using network::Matmul;
using network::Pooling;
using network::Shuffle;
using network::Transpose;
namespace {

network::Select Pick(std::vector<std::vector<IndexRun>> from) { return {std::move(from)}; }

TEST(NetworkCheckTest, MovesOfElements) {
  const char* const axis = "an axis";
  ExpectChecked({
      {"parts of one", Concat{1}, {{{2, 3}}, {{2, 1}}}, {{2, 4}}, nullptr},
      {"an axis outside", Concat{2}, {{{2, 3}}, {{2, 1}}}, {{2, 4}}, axis},
      {"no axis", Concat{-1}, {{{2, 3}}, {{2, 1}}}, {{2, 4}}, axis},
      {"another rank", Concat{1}, {{{2, 3}}, {{2, 1, 1}}}, {{2, 4}}, axis},
      {"too short", Concat{1}, {{{2, 3}}, {{2, 1}}}, {{2, 5}}, "sources as long"},
      {"another type", Concat{1}, {{{2, 3}, kU8}}, {{2, 3}}, "sources of its result's type"},
      {"no source", Concat{1}, {}, {{2, 3}}, "as many sources"},
      {"groups", Shuffle{1, 2}, {{{1, 4}}}, {{1, 4}}, nullptr},
      {"a part of a group", Shuffle{1, 3}, {{{1, 4}}}, {{1, 4}}, "whole groups"},
      {"no group", Shuffle{1, 0}, {{{1, 4}}}, {{1, 4}}, "whole groups"},
      {"as many", network::Reshape{}, {{{2, 3}}}, {{6}}, nullptr},
      {"fewer", network::Reshape{}, {{{2, 3}}}, {{5}}, "as many elements"},
      {"turned", Transpose{{1, 0}}, {{{2, 3}}}, {{3, 2}}, nullptr},
      {"of another rank", Transpose{{1, 0, 2}}, {{{2, 3}}}, {{3, 2}}, "an order"},
      {"twice the same", Transpose{{1, 1}}, {{{2, 3}}}, {{3, 3}}, "an order"},
      {"a dimension outside", Transpose{{1, 2}}, {{{2, 3}}}, {{3, 3}}, "an order"},
      {"chosen", Pick({{}, {{1, 1, 2}}}), {{{2, 3}}}, {{2, 2}}, nullptr},
      {"fewer lists", Pick({{}}), {{{2, 3}}}, {{2, 3}}, "a list per dimension"},
      {"more indices", Pick({{}, {{1, 1, 2}}}), {{{2, 3}}}, {{2, 3}}, "as many indices"},
      {"by index", Gather{1}, {{{2, 3}}, {{4, 5}, kS32}}, {{2, 4, 5}}, nullptr},
      {"an axis outside", Gather{2}, {{{2, 3}}, {{4, 5}, kS32}}, {{2, 4, 5}}, axis},
      {"fewer", Gather{1}, {{{2, 3}}, {{4, 5}, kS32}}, {{2, 4}}, "an index per part"},
      {"channels", GatherChannels{{{0, 2}, {1, 0}}}, {{{2, 3}}, {{2, 1}}}, {{2, 2}}, nullptr},
      {"a channel outside", GatherChannels{{{0, 3}}}, {{{2, 3}}}, {{2, 1}}, "channels of its"},
      {"a source outside", GatherChannels{{{1, 0}}}, {{{2, 3}}}, {{2, 1}}, "channels of its"},
      {"of rank 1", GatherChannels{{{0, 0}}}, {{{3}}}, {{1}}, axis},
  });
}

TEST(NetworkCheckTest, GradientsOfConvolutions) {
  using network::ConvolutionDataGradient;
  using network::ConvolutionWeightsGradient;
  const network::ComputedConvolution window{1, {1}, {0}, {1}, {1}};
  network::ComputedConvolution grouped = window, flat = window;
  grouped.groups = 2;
  flat.strides = {1, 1};
  const T dy = {{2, 4, 5}}, src = {{2, 3, 5}}, weights = {{4, 3, 3}};
  const char* const channels = "weights of its channels";
  ExpectChecked({
      {"by src", ConvolutionDataGradient{window}, {dy, weights}, src, nullptr},
      {"groups", ConvolutionDataGradient{grouped}, {dy, weights}, src, channels},
      {"a stride too many", ConvolutionDataGradient{flat}, {dy, weights}, src, "a stride"},
      {"another batch", ConvolutionDataGradient{window}, {dy, weights}, {{1, 3, 5}}, channels},
      {"by weights", ConvolutionWeightsGradient{window}, {dy, src}, weights, nullptr},
      {"turned", ConvolutionWeightsGradient{window}, {src, dy}, weights, channels},
      {"no bias", ConvolutionWeightsGradient{window, true}, {dy, src}, weights, "as many results"},
  });
  const auto by_bias = [&](T bias) {
    return network::CheckNetwork(
        WithFurther({dy, src, dy, weights, bias},
                    WithResult(ConvolutionWeightsGradient{window, true}, {0, 1})));
  };
  EXPECT_TRUE(by_bias({{4}}).ok()) << by_bias({{4}});
  EXPECT_THAT(std::string(by_bias({{5}}).message()), HasSubstr("lacks a bias per output"));
}

TEST(NetworkCheckTest, GradientsOfMatricesAndPoolings) {
  using network::MatmulGradient;
  using network::PoolingGradient;
  const Pooling average{Pooling::Algorithm::kAvgIncludePadding, {2}, {2}, {0}, {0}};
  const Pooling maximum{Pooling::Algorithm::kMax, {2}, {2}, {0}, {0}, true};
  Pooling unsaved = maximum;
  unsaved.saves_places = false;
  const char *const places = "the places of maxima", *const fit = "matrices that fit";
  const T dy = {{1, 2, 2}}, src = {{1, 2, 4}}, of_maxima = {{1, 2, 2}, kS32};
  ExpectChecked({
      {"by the left", MatmulGradient{}, {{{2, 3, 5}}, {{1, 4, 5}}}, {{2, 3, 4}}, nullptr},
      {"by the right", MatmulGradient{true}, {{{2, 3, 5}}, {{2, 3, 4}}}, {{1, 4, 5}}, nullptr},
      {"one for the other", MatmulGradient{true}, {{{2, 3, 5}}, {{1, 4, 5}}}, {{2, 3, 4}}, fit},
      {"another batch", MatmulGradient{}, {{{2, 3, 5}}, {{3, 4, 5}}}, {{2, 3, 4}}, fit},
      {"a vector", MatmulGradient{}, {{{3}}, {{3}}}, {{3}}, fit},
      {"shares", PoolingGradient{average}, {dy}, src, nullptr},
      {"spare places", PoolingGradient{average}, {dy, of_maxima}, src, places},
      {"places", PoolingGradient{maximum}, {dy, of_maxima}, src, nullptr},
      {"no places", PoolingGradient{maximum}, {dy}, src, places},
      {"not saved", PoolingGradient{unsaved}, {dy, of_maxima}, src, places},
      {"of others", PoolingGradient{maximum}, {dy, {{1, 2, 1}, kS32}}, src, "a place per result"},
      {"without a result", maximum, {src}, dy, "as many results"},
  });
}

TEST(NetworkCheckTest, GradientsOfElements) {
  using functions::Function;
  using network::ActivationGradient;
  using network::BatchNormalizationGradient;
  using network::GatherGradient;
  using network::LayerNormalizationGradient;
  using network::LrnGradient;
  using network::ReduceGradient;
  using network::SoftmaxGradient;
  const T x = {{2, 3}}, y = {{3, 2}}, c = {{3}};
  const char* const dims = "a gradient of its operand's dims";
  ExpectChecked({
      {"of x", ActivationGradient{{Function::kGelu}}, {x, x}, x, nullptr},
      {"of y alone", ActivationGradient{{Function::kGelu}, true}, {x, x}, x, "a function that has"},
      {"a truth", ActivationGradient{{Function::kNot}}, {x, x}, x, "a function that has"},
      {"of two", ActivationGradient{{Function::kAdd}}, {x, x}, x, "a function that has"},
      {"turned", ActivationGradient{}, {x, y}, x, dims},
      {"of integers", ActivationGradient{}, {x, {{2, 3}, kS32}}, x, "real numbers"},
      {"shares", SoftmaxGradient{1}, {x, x}, x, nullptr},
      {"an axis outside", SoftmaxGradient{2}, {x, x}, x, "an axis of its source"},
      {"channels", LrnGradient{}, {x, x}, x, nullptr},
      {"none", LrnGradient{}, {c, c}, c, "channels"},
      {"reduced", ReduceGradient{}, {{{2, 1}}, x}, x, nullptr},
      {"not reduced", ReduceGradient{}, {{{2, 2}}, x}, x, dims},
      {"statistics", BatchNormalizationGradient{}, {x, x, c, c, c}, x, nullptr},
      {"of rows", BatchNormalizationGradient{}, {x, x, c, c, {{2}}}, x, "a number per channel"},
      {"of relu",
       BatchNormalizationGradient{{.relu = true}},
       {x, x, c, c, c, {{2, 3}, kU8}},
       x,
       nullptr},
      {"of a wrong relu",
       BatchNormalizationGradient{{.relu = true}},
       {x, x, c, c, c, x},
       x,
       "what relu let through"},
      {"without parameters",
       BatchNormalizationGradient{{}, true},
       {x, x, c, c, c},
       x,
       "as many results"},
      {"rows", LayerNormalizationGradient{}, {x, x, {{2}}, {{2}}}, x, nullptr},
      {"scaled", LayerNormalizationGradient{1, true}, {x, x, {{2}}, {{2}}, c}, x, nullptr},
      {"columns", LayerNormalizationGradient{}, {x, x, c, c}, x, "a mean and a variance per row"},
      {"unscaled", LayerNormalizationGradient{1, true}, {x, x, {{2}}, {{2}}}, x, "as many sources"},
      {"of columns",
       LayerNormalizationGradient{1, true},
       {x, x, {{2}}, {{2}}, {{2}}},
       x,
       "a scale"},
      {"rows", GatherGradient{0}, {{{4, 3}}, {{4}, kS32}}, x, nullptr},
      {"more rows", GatherGradient{0}, {{{5, 3}}, {{4}, kS32}}, x, "an index per part"},
  });
}

TEST(NetworkCheckTest, FunctionsOfElements) {
  using Function = Elementwise::Function;
  const char* const same = "sources of its result's dims";
  const T x = {{2, 3}}, row = {{3}};
  const network::QuantizationParams one;
  ExpectChecked({
      {"as it is", Activation{}, {{{2, 3}}}, {{2, 3}}, nullptr},
      {"turned", Activation{}, {{{2, 3}}}, {{3, 2}}, same},
      {"of integers", Activation{}, {{{2, 3}, kS32}}, {{2, 3}, kS32}, "real numbers"},
      {"two", Elementwise{Function::kAdd}, {{{2, 3}}, {{3}}}, {{2, 3}}, nullptr},
      {"one of two", Elementwise{Function::kAdd}, {{{2, 3}}}, {{2, 3}}, "as many sources"},
      {"does not fit", Elementwise{Function::kAdd}, {{{2, 3}}, {{2}}}, {{2, 3}}, "sources that"},
      {"higher", Elementwise{Function::kAdd}, {{{2, 3}}, {{1, 2, 3}}}, {{2, 3}}, "sources that"},
      {"sums", network::Sum{}, {{{2, 3}}, {{2, 3}}}, {{2, 3}}, nullptr},
      {"broadcast", network::Sum{}, {{{2, 3}}, {{1, 3}}}, {{2, 3}}, same},
      {"shares", network::Softmax{1}, {{{2, 3}}}, {{2, 3}}, nullptr},
      {"an axis outside", network::Softmax{2}, {{{2, 3}}}, {{2, 3}}, "an axis"},
      {"rows", LayerNormalization{1, {1, 1, 1}, {0, 0, 0}}, {{{2, 3}}}, {{2, 3}}, nullptr},
      {"no shift", LayerNormalization{1, {1, 1, 1}, {}}, {{{2, 3}}}, {{2, 3}}, "a scale and a"},
      {"fewer", LayerNormalization{1, {1, 1}, {0, 0}}, {{{2, 3}}}, {{2, 3}}, "a scale and a"},
      {"computed", LayerNormalization{1, {}, {}, true}, {x, row, row}, x, nullptr},
      {"of columns", LayerNormalization{1, {}, {}, true}, {x, row, {{2}}}, x, "a scale and a"},
      {"both",
       LayerNormalization{1, {1, 1, 1}, {0, 0, 0}, true},
       {x, row, row},
       x,
       "a scale and a"},
      {"one", LayerNormalization{1, {}, {}, true}, {x, row}, x, "as many sources"},
      {"unsaved", LayerNormalization{1, {}, {}, false, true}, {x}, x, "as many results"},
      {"the largest", network::TopK{1}, {{{2, 3}}}, {{2, 2}}, nullptr},
      {"more than there are", network::TopK{1}, {{{2, 3}}}, {{2, 4}}, "an axis"},
      {"rows", network::Reduce{}, {{{2, 3}}}, {{2, 1}}, nullptr},
      {"of another rank", network::Reduce{}, {{{2, 3}}}, {{2}}, "a source of its result's rank"},
      {"taps", Interpolate{1, 1, {0, 2}, {1, 1}}, {{{2, 3}}}, {{2, 2}}, nullptr},
      {"a tap outside", Interpolate{1, 1, {0, 3}, {1, 1}}, {{{2, 3}}}, {{2, 2}}, "indices inside"},
      {"fewer taps", Interpolate{1, 2, {0, 2}, {1, 1}}, {{{2, 3}}}, {{2, 2}}, "an index and a"},
      {"per index", network::Quantize{1, {one, one, one}}, {{{2, 3}}}, {{2, 3}, kU8}, nullptr},
      {"fewer", network::Quantize{1, {one, one}}, {{{2, 3}}}, {{2, 3}, kU8}, "parameters"},
      {"none", Dequantize{1, {}}, {{{2, 3}, kU8}}, {{2, 3}}, "parameters"},
      {"an axis outside", Dequantize{2, {one}}, {{{2, 3}, kU8}}, {{2, 3}}, "parameters"},
      {"of s32", Dequantize{1, {one}}, {{{2, 3}, kS32}}, {{2, 3}}, "bytes"},
      {"no shift",
       network::ScaleBytes{0, {1}, {}},
       {{{2, 3}, kU8}},
       {{2, 3}},
       "a scale and a shift"},
      {"one of two",
       network::IntegerSum{{one}},
       {{{2}, kU8}, {{2}, kU8}},
       {{2}, kU8},
       "parameters"},
  });
}

// Weights of 1.
network::Weights WeightsOf(const Dims& dims) {
  static const std::vector<float> ones(4096, 1);
  network::Weights weights;
  weights.dims = dims;
  weights.data = absl::MakeConstSpan(ones).first(*ElementCount(dims));
  return weights;
}

Convolution ConvolutionOf(const Dims& weights, int64_t groups, size_t spatial) {
  Convolution convolution;
  convolution.weights = WeightsOf(weights);
  convolution.groups = groups;
  convolution.strides = Dims(spatial, 1);
  convolution.dilations = convolution.padding_left = convolution.padding_right = Dims(spatial, 0);
  return convolution;
}

TEST(NetworkCheckTest, ProductsWithWeights) {
  const T src = {{1, 4, 5}}, dst = {{1, 6, 5}};
  const Convolution whole = ConvolutionOf({6, 4, 1}, 1, 1);
  Convolution biased = whole, scaled = whole, short_of = whole, pooled = whole, sums = whole;
  biased.bias = {1, 2};
  scaled.weights.scale = {1, 2};
  short_of.weights.data = short_of.weights.data.first(3);
  pooled.pooling = network::FusedPooling{"p", dst.dims};
  sums.fused = {{.kind = network::FusedStep::Kind::kSum, .addend = 5}};
  network::InnerProduct product;
  product.weights = WeightsOf({3, 20});
  ExpectChecked({
      {"a row", whole, {src}, dst, nullptr},
      {"two rows of taps", ConvolutionOf({6, 4, 1}, 1, 2), {src}, dst, "a stride"},
      {"other channels", ConvolutionOf({6, 3, 1}, 1, 1), {src}, dst, "weights of its channels"},
      {"groups", ConvolutionOf({6, 2, 1}, 2, 1), {src}, dst, nullptr},
      {"a part of a group", ConvolutionOf({6, 1, 1}, 4, 1), {src}, dst, "weights of its channels"},
      {"weights of another rank", ConvolutionOf({6, 4}, 1, 1), {src}, dst, "weights of its"},
      {"another batch", whole, {src}, {{2, 6, 5}}, "a result of the same rank"},
      {"fewer biases", biased, {src}, dst, "a bias per output"},
      {"fewer factors", scaled, {src}, dst, "as many weights"},
      {"fewer weights", short_of, {src}, dst, "as many weights"},
      {"a maximum of one dimension", pooled, {src}, {{1, 6, 2}}, "a result of half"},
      {"an addend that nothing computes", sums, {src}, dst, "addends"},
      {"flattened", product, {{{2, 4, 5}}}, {{2, 3}}, nullptr},
      {"other inputs", product, {{{2, 4, 6}}}, {{2, 3}}, "weights of its inputs"},
      {"not of rows", product, {{{2, 4, 5}}}, {{2, 1, 3}}, "rows of its result"},
      {"one number", product, {{{20}}}, {{1, 3}}, "rows of its result"},
      {"windows",
       Pooling{Pooling::Algorithm::kMax, {2}, {1}, {0}, {0}},
       {{{1, 4, 5}}},
       {{1, 4, 4}},
       nullptr},
      {"of another rank",
       Pooling{Pooling::Algorithm::kMax, {2, 2}, {1, 1}, {0, 0}, {0, 0}},
       {{{1, 4, 5}}},
       {{1, 4, 4}},
       "a size, stride"},
  });
}

TEST(NetworkCheckTest, DeconvolutionsWithComputedWeights) {
  using network::ComputedDeconvolution;
  const ComputedDeconvolution up{{1, {2}, {0}, {0}, {0}}}, flat{{1, {2, 2}, {0}, {0}, {0}}};
  const T src = {{2, 3, 4}}, weights = {{3, 5, 2}}, bias = {{5}}, dst = {{2, 5, 8}};
  const char* const channels = "weights of its channels";
  ExpectChecked({
      {"plain", up, {src, weights}, dst, nullptr},
      {"with a bias", up, {src, weights, bias}, dst, nullptr},
      {"no weights", up, {src}, dst, "as many sources"},
      {"a stride too many", flat, {src, weights}, dst, "a stride"},
      {"weights of a convolution", up, {src, {{5, 3, 2}}}, dst, channels},
      {"another batch", up, {src, weights}, {{1, 5, 8}}, channels},
      {"a bias of inputs", up, {src, weights, {{3}}}, dst, "a bias per output"},
  });
}

TEST(NetworkCheckTest, ProductsOfMatrices) {
  const char* const factors = "matrices of its result's rank";
  ExpectChecked({
      {"stacks", Matmul{}, {{{5, 2, 3}}, {{1, 3, 4}}}, {{5, 2, 4}}, nullptr},
      {"another rank", Matmul{}, {{{5, 2, 3}}, {{3, 4}}}, {{5, 2, 4}}, factors},
      {"of rank 1", Matmul{}, {{{3}}, {{3}}}, {{1}}, factors},
      {"other inner sizes", Matmul{}, {{{2, 3}}, {{4, 4}}}, {{2, 4}}, factors},
      {"of real numbers",
       network::IntegerMatmul{},
       {{{2, 3}}, {{3, 4}}},
       {{2, 4}},
       "integers of 8 bits"},
      {"heads", Attention{}, {{{2, 3, 4}}, {{2, 4, 5}}, {{2, 5, 6}}}, {{2, 3, 6}}, nullptr},
      {"of rank 1", Attention{}, {{{4}}, {{4}}, {{5}}}, {{5}}, "queries, keys"},
      {"other heads", Attention{}, {{{2, 3, 4}}, {{1, 4, 5}}, {{2, 5, 6}}}, {{2, 3, 6}}, "queries"},
      {"values of another rank",
       Attention{},
       {{{3, 4}}, {{4, 5}}, {{1, 5, 6}}},
       {{3, 6}},
       "queries"},
      {"a mask that does not fit",
       Attention{},
       {{{2, 3, 4}}, {{2, 4, 5}}, {{2, 5, 6}}, {{3, 4}}},
       {{2, 3, 6}},
       "queries"},
      {"another result", Attention{}, {{{3, 4}}, {{4, 5}}, {{5, 6}}}, {{3, 5}}, "a row of values"},
  });
}

TEST(NetworkCheckTest, ValuesAreComputedOnceAndBefore) {
  const Network good = NetworkOfCheck({"", Activation{}, {{{2}}}, {{2}}, nullptr});
  const auto expect = [](Network network, const char* text) {
    EXPECT_THAT(std::string(network::CheckNetwork(network).message()), HasSubstr(text));
  };
  Network itself = good, twice = good, outside = good, nothing = good, scalar = good;
  itself.operations[0].srcs = {1};
  expect(itself, "sources that are computed before it");
  twice.operations.push_back(twice.operations[0]);
  expect(twice, "a result of its own");
  outside.operations[0].srcs = {7};
  expect(outside, "sources that are computed before it");
  nothing.operations.clear();
  expect(nothing, "an output that nothing computes");
  scalar.values[1].dims = {};
  expect(scalar, "a result of its own");
}

// By the statistics of the batch, which are further results.
Network NormalizedByBatch() {
  Network network;
  for (const Dims& dims : {Dims{2, 3, 4}, {3}, {3}, {2, 3, 4}, {3}, {3}})
    network.values.push_back({absl::StrCat("x", network.values.size()), DataType::kF32, dims});
  network.inputs = {0};
  network.parameters = {{.value = 1, .name = "scale"}, {.value = 2, .name = "shift"}};
  network.operations = {{"n", network::BatchNormalization{}, {0, 1, 2}, 3, {4, 5}}};
  network.outputs = {3, 4};
  return network;
}

TEST(NetworkCheckTest, SeveralResultsAndParameters) {
  EXPECT_TRUE(network::CheckNetwork(NormalizedByBatch()).ok());
  const struct {
    const char* lacks;
    void (*change)(Network* network);
  } kCases[] = {
      {"lacks as many results", [](Network* n) { n->operations[0].more_dsts = {4}; }},
      {"lacks further results of its own", [](Network* n) { n->operations[0].more_dsts[1] = 3; }},
      {"lacks further results of its own", [](Network* n) { n->operations[0].more_dsts[1] = 9; }},
      {"lacks a number per channel", [](Network* n) { n->values[5].dims = {2}; }},
      {"lacks a number per channel",
       [](Network* n) {
         n->values[1].dims = {3, 1};
       }},
      {"lacks sources of its result's dims",
       [](Network* n) {
         n->values[3].dims = {2, 3, 5};
       }},
      {"lacks as many sources",
       [](Network* n) {
         n->operations[0].srcs = {0, 1};
       }},
      {"lacks as many sources",
       [](Network* n) {
         n->operations[0].params = network::BatchNormalization{.uses_given_statistics = true};
         n->operations[0].more_dsts.clear();
       }},
      {"lacks as many sources",
       [](Network* n) { n->operations[0].params = network::BatchNormalization{.adds = true}; }},
      {"lacks sources of its result's dims",
       [](Network* n) {
         n->operations[0].params = network::BatchNormalization{.adds = true};
         n->operations[0].srcs = {0, 1, 2, 1};
       }},
      {"lacks statistics of its own to add",
       [](Network* n) {
         n->operations[0].params =
             network::BatchNormalization{.uses_given_statistics = true, .relu = true};
         n->operations[0].srcs = {0, 1, 2, 1, 2};
         n->operations[0].more_dsts.clear();
       }},
      {"lacks relu to save",
       [](Network* n) {
         n->operations[0].params = network::BatchNormalization{.saves_passed = true};
         n->values.push_back({"passed", kU8, {2, 3, 4}});
         n->operations[0].more_dsts.push_back(6);
       }},
      {"lacks bytes of its dims",
       [](Network* n) {
         n->operations[0].params = network::BatchNormalization{.relu = true, .saves_passed = true};
         n->values.push_back({"passed", DataType::kF32, {2, 3, 4}});
         n->operations[0].more_dsts.push_back(6);
       }},
      {"lacks sources that are computed", [](Network* n) { n->parameters.pop_back(); }},
      {"parameter 'shift' without", [](Network* n) { n->parameters[1].value = 1; }},
      {"an output that nothing computes", [](Network* n) { n->operations.clear(); }},
  };
  for (const auto& c : kCases) {
    Network network = NormalizedByBatch();
    c.change(&network);
    EXPECT_THAT(std::string(network::CheckNetwork(network).message()), HasSubstr(c.lacks));
  }
}

TEST(NetworkCheckTest, WhatARunLeavesBehindIsNotDead) {
  Network network = NormalizedByBatch();
  network.values.push_back({"unread", DataType::kF32, {2, 3, 4}});
  network.operations.push_back({"o", Activation{}, {0}, 6});
  network.outputs = {0};
  network.statistics = {{.mean = MakeFloats("mean", {3}, {0, 0, 0}),
                         .variance = MakeFloats("variance", {3}, {1, 1, 1}),
                         .batch_mean = 4,
                         .batch_variance = 5,
                         .elements = 8}};
  Network without = network;
  network::RemoveDead(&network);
  EXPECT_EQ(NetworkToText(network),
            "input x0 [2,3,4]\n"
            "parameter scale [3]\n"
            "parameter shift [3]\n"
            "x3 [2,3,4], x4 [3], x5 [3] = batch_normalization(x0, x1, x2) epsilon=1e-05\n"
            "statistics mean, variance by 0.9 of x4, x5; elements=8\n"
            "output x0\n");
  EXPECT_TRUE(network::CheckNetwork(network).ok());
  without.statistics.clear();
  network::RemoveDead(&without);
  EXPECT_TRUE(without.operations.empty());
}

TEST(NetworkCheckTest, DimsOfInputs) {
  OnnxBuilder model;
  model.Input("a", {1, 2}).Input("b", {1, 2}).Node("Add", {"a", "b"}, {"y"}).Output("y");
  EXPECT_THAT(BuiltText(model, {{1, 2}}), HasSubstr("dims of 1 inputs for a model of 2"));
  EXPECT_THAT(BuiltText(model, {{1, 2}, {1, -2}}), HasSubstr("input 'b' has dims [1,-2]"));
}

}  // namespace
}  // namespace tilewire::reader
