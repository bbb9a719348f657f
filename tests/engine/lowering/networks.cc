// SPDX-License-Identifier: Apache-2.0
#include "tests/engine/lowering/networks.h"

#include <algorithm>
#include <utility>

#include "engine/base/check.h"
#include "tests/engine/lowering/network_builder.h"

namespace tilewire::graph {
namespace {

using jit::EltwiseAlgorithm;
constexpr auto kMax = Pooling::Algorithm::kMax;
constexpr auto kAverage = Pooling::Algorithm::kAvgIncludePadding;

// The addend of the second sum is dead after it; that of the first is also a source.
Network Residual(int64_t n) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {n, 3, 9, 7});
  const ValueId stem = b.Conv("stem", x, 20, {.kernel = 3, .scale = true, .fused = {Relu()}});
  const ValueId one = b.Conv("one", stem, 20, {.fused = {Add(stem), Relu()}});
  const ValueId two = b.Conv("two", one, 20, {.kernel = 1, .padding = 0, .fused = {Relu()}});
  const ValueId three = b.Conv("three", two, 20, {.bias = false, .fused = {Add(one), Relu()}});
  return b.Finish({three});
}

Network StridedResidual(int64_t n) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {n, 3, 17, 15});
  const ValueId stem =
      b.Conv("stem", x, 32, {.kernel = 7, .stride = 2, .padding = 3, .fused = {Relu()}});
  const ValueId pool = b.Pool("pool", stem, kMax, 3, 2, 1);
  const ValueId a = b.Conv("a", pool, 16, {.kernel = 1, .padding = 0, .fused = {Relu()}});
  const ValueId c = b.Conv("c", a, 48, {.stride = 2});
  const ValueId down =
      b.Conv("down", pool, 48, {.kernel = 1, .stride = 2, .padding = 0, .fused = {Add(c), Relu()}});
  return b.Finish({down});
}

// Along other dimensions than the last: of an intermediate result, of one that is read again, and
// of a request.
Network SoftmaxAlongOthers(int64_t n) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {n, 20, 5, 3});
  const ValueId conv = b.Conv("conv", x, 21, {.kernel = 1, .padding = 0});
  const ValueId channels = b.SoftmaxOf("channels", conv, 1);
  const ValueId again = b.Conv("again", channels, 16, {});
  return b.Finish({b.SoftmaxOf("rows", again, 2), channels, b.SoftmaxOf("given", x, 1)});
}

Network BranchesAndConcat(int64_t n) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {n, 16, 8, 9});
  const ValueId one = b.Conv("one", x, 16, {.kernel = 1, .padding = 0, .fused = {Relu()}});
  const ValueId three = b.Conv("three", x, 24, {.fused = {Relu()}});
  const ValueId pool = b.Pool("pool", x, kAverage, 3, 1, 1);
  const ValueId all = b.ConcatOf("all", {one, three, pool});
  return b.Finish({b.Conv("last", all, 10, {.kernel = 1, .padding = 0})});
}

// A tensor of few channels, as in the middle of squeeze and excite.
Network FewChannels(int64_t n) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {n, 3, 9, 7});
  const ValueId stem = b.Conv("stem", x, 20, {.fused = {Relu()}});
  const ValueId few = b.Conv("few", stem, 3, {.kernel = 1, .padding = 0, .fused = {Relu()}});
  return b.Finish({b.Conv("back", few, 20, {.fused = {Add(stem)}})});
}

Network ValueUsedTwice(int64_t n) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {n, 5, 4, 6});
  const ValueId y = b.Conv("y", x, 16);
  const ValueId relu = b.Elementwise("relu", y, {EltwiseAlgorithm::kRelu});
  const ValueId twice = b.SumOf("twice", {y, y});
  const ValueId conv = b.Conv("conv", twice, 16, {.fused = {Add(relu)}});
  return b.Finish({b.SumOf("sum", {conv, y, relu})});
}

// Outputs: one that is consumed inside (also as an addend), one twice, and the input.
Network OutputsInsideTwiceAndInput(int64_t n) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {n, 3, 6, 6});
  const ValueId inside = b.Conv("inside", x, 18, {.fused = {Relu()}});
  const ValueId end =
      b.Conv("end", inside, 18, {.kernel = 1, .padding = 0, .fused = {Add(inside)}});
  const ValueId squashed = b.Elementwise("squashed", inside, {EltwiseAlgorithm::kTanh});
  return b.Finish({inside, end, end, x, squashed});
}

// ShuffleNet's shuffle as Reshape, Transpose and Reshape, then a flatten and a classifier.
Network ReshapesAndTransposes(int64_t n) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {n, 3, 4, 5});
  const ValueId conv = b.Conv("conv", x, 16);
  const ValueId split = b.Reshaped("split", conv, {n, 2, 8, 4, 5});
  const ValueId turned = b.Transposed("turned", split, {0, 2, 1, 3, 4});
  const ValueId joined = b.Reshaped("joined", turned, {n, 16, 4, 5});
  const ValueId next = b.Conv("next", joined, 20, {.fused = {Relu()}});
  const ValueId flat = b.Reshaped("flat", next, {n, 400});
  const ValueId fc = b.Fc("fc", flat, 11, {.transposed = true});
  const ValueId last = b.Transposed("last", next, {0, 3, 1, 2});
  return b.Finish({b.SoftmaxOf("softmax", fc, 1), last, split});
}

Network SumsOfThree(int64_t n) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {n, 4, 7, 3});
  const ValueId p = b.Conv("p", x, 17);
  const ValueId q = b.Conv("q", x, 17, {.kernel = 1, .padding = 0});
  const ValueId r =
      b.Conv("r", x, 17, {.padding = 2, .dilation = 1, .fused = {Add(p), Relu(), Add(q), Relu()}});
  const ValueId s = b.SumOf("s", {p, q, r});
  return b.Finish({b.Elementwise("clip", s, {EltwiseAlgorithm::kClip, -1, 1})});
}

Network WithPoolings(int64_t n, bool fused) {
  NetworkBuilder b;
  const auto pooled = [&](const std::string& name, ValueId src, int64_t channels,
                          ConvolutionOptions options) {
    options.pool = fused;
    const ValueId result = b.Conv(name, src, channels, options);
    return fused ? result : b.Pool(name + ".pool", result, kMax, 2, 2, 0);
  };
  const ValueId x = b.Input("x", {n, 16, 29, 31});
  const std::vector<FusedStep> five(5, Relu());
  const ValueId winograd = pooled("winograd", x, 40, {.fused = {Relu()}});
  const ValueId full = pooled("full", x, 40, {.fused = five});
  const ValueId both = b.SumOf("both", {winograd, full});
  const ValueId one = pooled("one", both, 24, {.kernel = 1, .padding = 0, .fused = {Relu()}});
  return b.Finish({pooled("small", one, 12, {.bias = false}), winograd});
}

Network Classifier(int64_t n) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {n, 3, 10, 8});
  const ValueId conv = b.Conv("conv", x, 40, {.stride = 2, .fused = {Relu()}});
  const ValueId pool = b.GlobalAverage("pool", conv);
  const ValueId hidden = b.Fc("hidden", pool, 24, {.scale = true, .fused = {Relu()}});
  const ValueId skip = b.Fc("skip", conv, 24, {.bias = false, .scale = true, .transposed = true});
  const ValueId more = b.Fc("more", hidden, 24, {.fused = {Add(skip)}});
  return b.Finish({b.SoftmaxOf("softmax", b.Fc("logits", more, 10), 1), conv});
}

Network TwoInputsOneAnAddend(int64_t n) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {n, 6, 5, 5});
  const ValueId y = b.Input("y", {n, 12, 5, 5});
  const ValueId conv = b.Conv("conv", x, 12, {.fused = {Add(y), Relu()}});
  return b.Finish({b.ConcatOf("concat", {conv, y, x})});
}

// The only reader of the request's bytes also adds them to its result.
Network AddsItsOwnInput(int64_t n) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {n, 3, 6, 5});
  return b.Finish({b.Conv("conv", x, 3, {.fused = {Add(x), Relu()}})});
}

// Parts of a blocked tensor: some consist of whole blocks (views), others cut blocks. They are read
// by operations that take views and by others. One is an output; one is the first images of its
// source.
Network PartsOfBlockedTensors(int64_t n) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {n, 3, 6, 5});
  const ValueId conv = b.Conv("conv", x, 48, {.fused = {Relu()}});
  const auto channels = [&](const std::string& name, int64_t first, int64_t count) {
    return b.AddOperation(name, Select{{{}, {{first, 1, count}}, {}, {}}}, {conv},
                          {n, count, 6, 5});
  };
  const ValueId low = channels("low", 0, 16), high = channels("high", 16, 32);
  const ValueId cut = channels("cut", 7, 20);
  const ValueId convolved = b.Conv("convolved", high, 32, {.fused = {Add(high)}});
  const ValueId tanh = b.Elementwise("tanh", low, {EltwiseAlgorithm::kTanh});
  const ValueId pooled = b.Pool("pooled", high, kMax, 2, 1, 0);
  const ValueId more = b.Conv("more", cut, 8, {.kernel = 1, .padding = 0});
  const ValueId all = b.ConcatOf("all", {high, low, cut, low});
  return b.Finish({b.SumOf("sum", {convolved, high}), tanh, pooled, more, all, low, cut});
}

// Repeats, mirrored edges, gaps and fills, in blocked and in plain layouts.
Network SelectedElements(int64_t n) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {n, 3, 4, 5});
  const ValueId conv = b.Conv("conv", x, 20);
  const ValueId padded = b.AddOperation(
      "padded",
      Select{{{}, {{-1, 0, 1}, {0, 1, 20}}, {{2, -1, 2}, {0, 1, 4}}, {{0, 0, 3}, {1, 2, 2}}}, 0.5f},
      {conv}, {n, 21, 6, 5});
  const ValueId again = b.Conv("again", padded, 16, {.kernel = 1, .padding = 0});
  const ValueId rows =
      b.AddOperation("rows", Select{{{}, {}, {{3, 0, 2}, {1, 1, 1}}, {}}}, {x}, {n, 3, 3, 5});
  return b.Finish({again, padded, rows});
}

ConstantPtr Numbers(const Dims& dims) {
  std::vector<float> values;
  for (int64_t i = 0; i < *ElementCount(dims); ++i)
    values.push_back(0.25f + 0.1f * static_cast<float>(i % 7));
  return MakeFloats("numbers", dims, std::move(values));
}

// Squeeze and excite with broadcast products, a reduction, a literal, and interpolation between
// neighbours.
Network LoopsWithoutPrimitives(int64_t n) {
  using Function = graph::Elementwise::Function;
  NetworkBuilder b;
  const ValueId x = b.Input("x", {n, 3, 6, 5});
  const ValueId conv = b.Conv("conv", x, 20);
  const ValueId pool = b.GlobalAverage("pool", conv);
  const ValueId gate = b.Conv("gate", pool, 20, {.kernel = 1, .padding = 0});
  const Dims dims = {n, 20, 6, 5};
  const ValueId product =
      b.AddOperation("product", graph::Elementwise{Function::kMul}, {conv, gate}, dims);
  const ValueId literal = b.AddOperation("literal", Literal{Numbers({6, 1})}, {}, {6, 1});
  const ValueId quotient =
      b.AddOperation("quotient", graph::Elementwise{Function::kDiv}, {product, literal}, dims);
  const ValueId peaks =
      b.AddOperation("peaks", Reduce{Reduce::Function::kMax}, {quotient}, {n, 20, 1, 5});
  const ValueId wide = b.AddOperation(
      "wide", Interpolate{3, 2, {0, 0, 0, 1, 2, 3, 4, 4}, {1, 0, .5f, .5f, .25f, .75f, 0, 1}}, {x},
      {n, 3, 6, 4});
  const ValueId high =
      b.AddOperation("high", Interpolate{2, 2, {0, 0, 0, 1, 4, 5}, {1, 0, .5f, .5f, .25f, .75f}},
                     {product}, {n, 20, 3, 5});
  const ValueId deep = b.AddOperation(
      "deep", Interpolate{1, 4, {0, 1, 2, 3, 16, 17, 18, 19}, {1, .5f, .5f, 2, .5f, 1, 1, .5f}},
      {product}, {n, 2, 6, 5});
  const ValueId spread =
      b.AddOperation("spread", Interpolate{2, 1, {0, 0, 0}, {1, 2, 3}}, {gate}, {n, 20, 3, 1});
  return b.Finish({quotient, peaks, wide, high, deep, spread, b.Conv("end", product, 8)});
}

// Operations on rows whose primitives take several layouts. The sources are blocked or plain; some
// operations write over a source that nothing else reads.
Network NormalizationsAndProducts(int64_t n) {
  using Function = graph::Elementwise::Function;
  NetworkBuilder b;
  const ValueId x = b.Input("x", {n, 3, 6, 5});
  const ValueId y = b.Input("y", {n, 20, 6, 5});
  const auto two = [&](const std::string& name, Function function, std::vector<ValueId> srcs) {
    return b.AddOperation(name, graph::Elementwise{function}, std::move(srcs), {n, 20, 6, 5});
  };
  const ValueId conv = b.Conv("conv", x, 20);
  const ValueId lrn = b.AddOperation("lrn", Lrn{3, 0.5f, 0.75f, 1}, {conv}, {n, 20, 6, 5});
  const ValueId plain = b.AddOperation("plain", Lrn{5, 0.1f, 0.5f, 2}, {y}, {n, 20, 6, 5});
  const ValueId both = two("both", Function::kSub, {y, lrn});
  const ValueId one = b.AddOperation("one", Literal{Numbers({1})}, {}, {1});
  const ValueId shifted = two("shifted", Function::kMax, {one, both});
  const ValueId mask = b.Conv("mask", conv, 1, {.kernel = 1, .padding = 0});
  const ValueId masked = two("masked", Function::kMul, {shifted, mask});
  const ValueId channels = b.AddOperation("channels", Literal{Numbers({20, 1, 1})}, {}, {20, 1, 1});
  const ValueId scaled = two("scaled", Function::kDiv, {masked, channels});
  const ValueId floor = two("floor", Function::kFloor, {y});
  const ValueId row =
      b.AddOperation("row", Reduce{Reduce::Function::kSumOfSquares}, {conv}, {n, 20, 1, 1});
  const ValueId rows = b.Reshaped("rows", conv, {n, 4, 5, 30});
  const LayerNormalization factors{1e-3f, PseudoRandom("scale", 30, 0.5f, 1),
                                   PseudoRandom("shift", 30, -1, 1)};
  const ValueId norm = b.AddOperation("norm", factors, {rows}, {n, 4, 5, 30});
  const ValueId bare = b.AddOperation("bare", LayerNormalization{}, {rows}, {n, 4, 5, 30});
  const ValueId turned = b.Transposed("turned", norm, {0, 1, 3, 2});
  const ValueId product = b.AddOperation("product", Matmul{}, {bare, turned}, {n, 4, 5, 5});
  const ValueId matrix = b.AddOperation("matrix", Literal{Numbers({5, 7})}, {}, {5, 7});
  const ValueId more = b.AddOperation("more", Matmul{}, {product, matrix}, {n, 4, 5, 7});
  return b.Finish({plain, scaled, floor, row, more});
}

// Concatenations of whole blocks, one inside the other. Their sources are read again before and
// after, are written over, appear twice, are the request's, an output, or not whole blocks.
Network ConcatsOfWholeBlocks(int64_t n) {
  NetworkBuilder b;
  const ConvolutionOptions point = {.kernel = 1, .padding = 0};
  const ValueId x = b.Input("x", {n, 16, 3, 2});
  const ValueId first = b.Conv("first", x, 32, {.kernel = 1, .padding = 0, .fused = {Relu()}});
  const ValueId second = b.Conv("second", first, 16, point);
  const ValueId both = b.ConcatOf("both", {first, second});
  const ValueId third =
      b.Conv("third", both, 16, {.kernel = 1, .padding = 0, .fused = {Add(second)}});
  const ValueId all = b.ConcatOf("all", {both, third, second, x, third});
  const ValueId tanh = b.Elementwise("tanh", third, {EltwiseAlgorithm::kTanh});
  const ValueId over = b.Elementwise("over", both, {EltwiseAlgorithm::kSquare});
  const ValueId cut =
      b.AddOperation("cut", Select{{{}, {{16, 1, 48}}, {}, {}}}, {all}, {n, 48, 3, 2});
  const ValueId mixed = b.SumOf("mixed", {cut, over});
  const ValueId end = b.Conv("end", all, 32, point);
  const ValueId last = b.ConcatOf("last", {end, tanh});
  return b.Finish({mixed, end, last, b.Conv("tail", last, 8, point)});
}

// Nested concatenations of what several implementations write and read: a chain as in densely
// connected networks, and branches whose results are read before.
Network ConcatsOfSeveralImages(int64_t n) {
  NetworkBuilder b;
  const ConvolutionOptions point = {.kernel = 1, .padding = 0, .fused = {Relu()}};
  const ConvolutionOptions scale = {.kernel = 1, .padding = 0, .groups = 48, .fused = {Relu()}};
  const ValueId x = b.Input("x", {n, 3, 12, 11});
  const ValueId stem = b.Conv("stem", x, 32, {.fused = {Relu()}});
  const ValueId narrow = b.Conv("narrow", stem, 16, {.fused = {Relu()}});
  const ValueId two = b.ConcatOf("two", {stem, narrow});
  const ValueId normal = b.Conv("normal", two, 48, scale);
  const ValueId more = b.Conv("more", b.Conv("wide", normal, 64, point), 16);
  const ValueId three = b.ConcatOf("three", {two, more});
  const ValueId pool = b.Pool("pool", three, kMax, 3, 1, 1);
  const ValueId depthwise = b.Conv("depthwise", pool, 64, {.groups = 64});
  const ValueId sum = b.Conv("sum", stem, 16, {.kernel = 1, .padding = 0, .fused = {Add(more)}});
  const ValueId four = b.ConcatOf("four", {three, pool, depthwise, sum});
  const ValueId cut =
      b.AddOperation("cut", Select{{{}, {{32, 1, 48}}, {}, {}}}, {four}, {n, 48, 12, 11});
  return b.Finish({b.Conv("end", four, 16, point), b.Conv("part", cut, 16, point)});
}

// Channels of three tensors, one of which is the request's, in blocked and in plain layouts.
Network GatheredChannels(int64_t n) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {n, 20, 3, 5});
  const ValueId y = b.Input("y", {n, 7, 3, 5});
  const ConvolutionOptions point = {.kernel = 1, .padding = 0};
  const ValueId first = b.Conv("first", x, 29, point), second = b.Conv("second", first, 33, point);
  GatherChannels three, plain;
  for (int64_t c = 0; c < 41; ++c)
    three.from.push_back({static_cast<int>(c % 3), c * 7 %
                                                       (c % 3 == 0   ? 29
                                                        : c % 3 == 1 ? 33
                                                                     : 20)});
  for (int64_t c = 0; c < 9; ++c) plain.from.push_back({0, c * 3 % 7});
  const ValueId mixed = b.AddOperation("mixed", three, {first, second, x}, {n, 41, 3, 5});
  const ValueId turned = b.AddOperation("turned", plain, {y}, {n, 9, 3, 5});
  return b.Finish({b.Conv("end", mixed, 16, point), mixed, turned});
}

// Reads the request's numbers directly, so that rounding cannot change their order.
Network BestElements(int64_t n) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {n, 20, 6, 5});
  const ValueId values = b.AddOperation("values", TopK{1, true, false}, {x}, {n, 3, 6, 5});
  const ValueId places = b.AddOperation("places", TopK{1, true, true}, {x}, {n, 3, 6, 5});
  const ValueId least = b.AddOperation("least", TopK{3, false, true, true}, {x}, {n, 20, 6, 1});
  return b.Finish({values, places, least});
}

// Rows of a table and of a blocked tensor. The request's numbers are the indices; some count
// from the end.
Network GatheredByComputedIndices(int64_t n) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {n, 20, 3, 5});
  const ValueId best = b.AddOperation("best", TopK{1, true, true}, {x}, {n, 2, 3, 5});
  const ValueId back = b.Elementwise("back", best, {EltwiseAlgorithm::kLinear, -1, -1});
  const ValueId table = b.AddOperation("table", Literal{Numbers({20, 7})}, {}, {20, 7});
  const ValueId rows = b.AddOperation("rows", Gather{0}, {table, best}, {n, 2, 3, 5, 7});
  const ValueId last = b.AddOperation("last", Gather{0}, {table, back}, {n, 2, 3, 5, 7});
  const ValueId conv = b.Conv("conv", x, 24);
  const ValueId order =
      b.AddOperation("order", Literal{MakeFloats("order", {2, 2}, {23, -1, 0, -24})}, {}, {2, 2});
  const ValueId channels = b.AddOperation("channels", Gather{1}, {conv, order}, {n, 2, 2, 3, 5});
  return b.Finish({rows, last, channels});
}

// Computed weights: dense with a bias, grouped, depthwise, and of a 1x1 window with two readers.
Network ComputedWeights(int64_t n) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {n, 20, 7, 9});
  const auto computed = [&](const std::string& name, Dims dims) {
    const ValueId literal = b.AddOperation(
        name, Literal{MakeFloats(name, dims, PseudoRandom(name, *ElementCount(dims), -1, 1))}, {},
        dims);
    return b.Elementwise(name + ".tanh", literal, {EltwiseAlgorithm::kTanh});
  };
  const ComputedConvolution padded{1, {2, 1}, {0, 1}, {1, 2}, {1, 2}};
  const ComputedConvolution point{1, {1, 1}, {0, 0}, {0, 0}, {0, 0}};
  ComputedConvolution groups = point, depthwise = padded;
  groups.groups = 4;
  depthwise.groups = 20;
  const ValueId dense = b.AddOperation(
      "dense", padded, {x, computed("w", {24, 20, 3, 3}), computed("c", {24})}, {n, 24, 4, 9});
  const ValueId grouped =
      b.AddOperation("grouped", groups, {x, computed("g", {12, 5, 1, 1})}, {n, 12, 7, 9});
  const ValueId single =
      b.AddOperation("single", depthwise, {x, computed("d", {20, 1, 3, 3})}, {n, 20, 4, 9});
  const ValueId shared = computed("s", {16, 24, 1, 1});
  const ValueId one = b.AddOperation("one", point, {dense, shared}, {n, 16, 4, 9});
  const ValueId two = b.AddOperation("two", point, {b.Conv("conv", x, 24), shared}, {n, 16, 7, 9});
  return b.Finish({grouped, single, one, two});
}

// The maxima of the windows of every image, and their indices for the first image only: indices
// also count the elements of all images before.
Network WindowsMaxima(int64_t n) {
  using Result = MaxWindow::Result;
  NetworkBuilder b;
  const ValueId x = b.Input("x", {n, 3, 6, 5});
  const MaxWindow window{Result::kElement, {3, 2}, {2, 1}, {1, 3}, {2, 1}};
  MaxWindow rows = window, columns = window;
  rows.result = Result::kIndex;
  columns.result = Result::kColumnMajorIndex;
  const ValueId first =
      b.AddOperation("first", Select{{{{0, 0, n}}, {}, {}, {}}}, {x}, {n, 3, 6, 5});
  const ValueId one =
      b.AddOperation("one", Select{{{{0, 1, 1}}, {}, {}, {}}}, {first}, {1, 3, 6, 5});
  const ValueId by_rows = b.AddOperation("rows", rows, {one}, {1, 3, 3, 4});
  const ValueId by_columns = b.AddOperation("columns", columns, {one}, {1, 3, 3, 4});
  const ValueId maxima = b.AddOperation("maxima", window, {x}, {n, 3, 3, 4});
  const auto repeated = [&](const std::string& name, ValueId value) {
    return b.AddOperation(name, Select{{{{0, 0, n}}, {}, {}, {}}}, {value}, {n, 3, 3, 4});
  };
  return b.Finish({maxima, repeated("all_rows", by_rows), repeated("all_columns", by_columns)});
}

constexpr NetworkCase kCases[] = {
    {"Residual", Residual},
    {"StridedResidual", StridedResidual},
    {"SoftmaxAlongOthers", SoftmaxAlongOthers},
    {"BranchesAndConcat", BranchesAndConcat},
    {"FewChannels", FewChannels},
    {"GroupedShuffleDepthwise", GroupedShuffleDepthwise},
    {"NarrowGroups", NarrowGroups},
    {"ValueUsedTwice", ValueUsedTwice},
    {"OutputsInsideTwiceAndInput", OutputsInsideTwiceAndInput},
    {"ReshapesAndTransposes", ReshapesAndTransposes},
    {"SumsOfThree", SumsOfThree},
    {"Classifier", Classifier},
    {"TwoInputsOneAnAddend", TwoInputsOneAnAddend},
    {"AddsItsOwnInput", AddsItsOwnInput},
    {"PartsOfBlockedTensors", PartsOfBlockedTensors},
    {"SelectedElements", SelectedElements},
    {"LoopsWithoutPrimitives", LoopsWithoutPrimitives},
    {"NormalizationsAndProducts", NormalizationsAndProducts},
    {"TransposesBetweenConvolutions", TransposesBetweenConvolutions},
    {"ConcatsOfWholeBlocks", ConcatsOfWholeBlocks},
    {"ConcatsOfSeveralImages", ConcatsOfSeveralImages},
    {"GatheredChannels", GatheredChannels},
    {"BestElements", BestElements},
    {"GatheredByComputedIndices", GatheredByComputedIndices},
    {"ComputedWeights", ComputedWeights},
    {"WindowsMaxima", WindowsMaxima},
    {"PooledConvolutions", PooledConvolutions},
    {"QuantizedResidual", QuantizedResidual},
    {"QuantizedGroups", QuantizedGroups},
    {"QuantizedSums", QuantizedSums},
};

class HandMade : public OnnxModel {
 public:
  explicit HandMade(Network (*make)(int64_t)) : make_(make) {
    const Network network = make(1);
    for (ValueId id : network.inputs) inputs_.push_back(Signature(network.values[id]));
    for (ValueId id : network.outputs) outputs_.push_back(Signature(network.values[id]));
  }
  const std::vector<TensorSpec>& inputs() const override { return inputs_; }
  const std::vector<TensorSpec>& outputs() const override { return outputs_; }
  int64_t weights_bytes() const override { return 0; }
  absl::StatusOr<Network> Specialize(absl::Span<const Dims> dims) const override {
    return make_(dims[0][0]);
  }

 private:
  static TensorSpec Signature(const Value& value) {
    TensorSpec signature{value.name, value.type, value.dims};
    signature.dims[0] = -1;
    return signature;
  }

  Network (*const make_)(int64_t);
  std::vector<TensorSpec> inputs_, outputs_;
};

}  // namespace

Network GatheredByTheRequest(int64_t n) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {n, 3});
  const ValueId table = b.AddOperation("table", Literal{Numbers({4, 2})}, {}, {4, 2});
  return b.Finish({b.AddOperation("rows", Gather{0}, {table, x}, {n, 3, 2})});
}

Network PooledConvolutions(int64_t n) { return WithPoolings(n, /*fused=*/true); }
Network ConvolutionsAndPoolings(int64_t n) { return WithPoolings(n, /*fused=*/false); }

absl::Span<const NetworkCase> NetworkCases() { return kCases; }

Network (*FindNetwork(absl::string_view name))(int64_t batch) {
  const auto cases = NetworkCases();
  const auto found = std::find_if(cases.begin(), cases.end(),
                                  [&](const NetworkCase& one) { return one.name == name; });
  TILEWIRE_CHECK(found != cases.end(), "a case has the name");
  return found->make;
}

std::shared_ptr<const OnnxModel> HandMadeModel(Network (*make)(int64_t batch)) {
  return std::make_shared<HandMade>(make);
}

}  // namespace tilewire::graph
