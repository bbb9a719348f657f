// SPDX-License-Identifier: Apache-2.0
//
// Convolutions and inner products, with what is fused into them and what else reads their results.
#include "engine/onnx/ops/weights.h"
#include "tests/engine/lowering/network_builder.h"
#include "tests/engine/lowering/networks.h"

namespace tilewire::network {
namespace {

using functions::EltwiseAlgorithm;

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
  const ValueId pool = b.MaxPool("pool", stem, 3, 2, 1);
  const ValueId a = b.Conv("a", pool, 16, {.kernel = 1, .padding = 0, .fused = {Relu()}});
  const ValueId c = b.Conv("c", a, 48, {.stride = 2});
  const ValueId down =
      b.Conv("down", pool, 48, {.kernel = 1, .stride = 2, .padding = 0, .fused = {Add(c), Relu()}});
  return b.Finish({down});
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

// The same of deconvolutions: one with what follows it, others whose windows leave elements, whose
// groups fill no vector, and without a stride.
Network ComputedDeconvolutions(int64_t n) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {n, 20, 5, 4});
  const auto computed = [&b](const std::string& name, Dims dims) {
    const ValueId literal = b.AddOperation(
        name, Literal{MakeFloats(name, dims, PseudoRandom(name, *ElementCount(dims), -1, 1))}, {},
        dims);
    return b.Elementwise(name + ".tanh", literal, {EltwiseAlgorithm::kTanh});
  };
  const auto window = [](int64_t groups, Dims strides, Dims left, Dims right) {
    return ComputedDeconvolution{
        {groups, std::move(strides), {0, 0}, std::move(left), std::move(right)}};
  };
  const ValueId up =
      b.AddOperation("up", window(1, {2, 2}, {0, 0}, {0, 0}),
                     {x, computed("w", {20, 32, 2, 2}), computed("c", {32})}, {n, 32, 10, 8});
  const ValueId relu = b.Elementwise("relu", up, {EltwiseAlgorithm::kRelu});
  const ValueId grouped = b.AddOperation("grouped", window(2, {1, 2}, {1, 1}, {1, 0}),
                                         {relu, computed("g", {32, 16, 3, 3})}, {n, 32, 10, 16});
  const ValueId beyond =
      b.AddOperation("beyond", window(1, {3, 2}, {0, 0}, {0, 0}),
                     {x, computed("v", {20, 7, 2, 1}), computed("e", {7})}, {n, 7, 16, 8});
  const ValueId single =
      b.AddOperation("single", window(20, {2, 2}, {1, 1}, {1, 1}),
                     {x, computed("d", {20, 1, 3, 3}), computed("f", {20})}, {n, 20, 10, 8});
  const ValueId few = b.AddOperation("few", window(5, {2, 1}, {0, 0}, {0, 0}),
                                     {x, computed("h", {20, 3, 2, 2})}, {n, 15, 10, 5});
  const ValueId same =
      b.AddOperation("same", window(1, {1, 1}, {1, 1}, {1, 1}),
                     {x, computed("s", {20, 24, 3, 3}), computed("t", {24})}, {n, 24, 5, 4});
  return b.Finish({grouped, beyond, single, few, same, relu});
}

// Windows that overlap and that do not, groups that fill vectors, and steps after the sums.
Network Deconvolutions(int64_t n) {
  NetworkBuilder b;
  // Weights [O, I/groups, k...]; strides, dilations and paddings are those of `window`.
  const auto deconvolved = [&](const std::string& name, ValueId src, Dims weights, bool bias,
                               Deconvolution window, Dims dst) {
    const int64_t count = *ElementCount(weights);
    if (bias) window.bias = PseudoRandom(name + ".b", weights[0], -1, 1);
    window.weights = reader::WeightsOf(MakeFloats(name, weights, PseudoRandom(name, count, -1, 1)));
    return b.AddOperation(name, std::move(window), {src}, std::move(dst));
  };
  const auto window = [](Dims strides, Dims dilations, Dims left, Dims right) {
    return Deconvolution{{}, {}, 1, strides, dilations, left, right, {}};
  };
  const ValueId x = b.Input("x", {n, 20, 5, 4});
  Deconvolution tiles = window({2, 2}, {0, 0}, {0, 0}, {0, 0}), grouped = tiles;
  tiles.fused = {Relu()};
  const ValueId tiled = deconvolved("tiled", x, {32, 20, 2, 2}, true, tiles, {n, 32, 10, 8});
  grouped.groups = 2;
  grouped.fused = {Add(tiled)};
  const ValueId overlapping = deconvolved("overlapping", tiled, {7, 32, 3, 4}, false,
                                          window({2, 3}, {0, 1}, {1, 2}, {0, 1}), {n, 7, 20, 25});
  grouped.strides = grouped.padding_left = grouped.padding_right = {1, 1};
  const ValueId groups =
      deconvolved("groups", tiled, {32, 16, 3, 3}, true, grouped, {n, 32, 10, 8});
  return b.Finish({overlapping, b.Conv("end", groups, 8)});
}

// A slope per channel after convolutions of all kinds, with a sum before it and an activation
// after.
Network SlopesOfChannels(int64_t n) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {n, 3, 14, 13});
  const auto slopes = [](const std::string& name, int64_t count) {
    return FusedStep{.kind = FusedStep::Kind::kPRelu,
                     .slopes = PseudoRandom(name, count, -0.5f, 0.5f)};
  };
  const ValueId first = b.Conv("first", x, 40, {.fused = {slopes("f", 40)}});
  const ValueId deep = b.Conv("deep", first, 40, {.groups = 40, .fused = {slopes("d", 40)}});
  const ValueId wide = b.Conv("wide", deep, 64, {.fused = {slopes("w", 64), Relu()}});
  const ValueId sum =
      b.Conv("sum", wide, 40, {.kernel = 1, .padding = 0, .fused = {Add(first), slopes("s", 40)}});
  const ValueId groups = b.Conv("groups", sum, 60, {.groups = 5, .fused = {slopes("g", 60)}});
  const ValueId alone = b.AddOperation(
      "alone", Elementwise{Elementwise::Function::kPRelu},
      {b.MaxPool("pool", groups, 2, 2, 0), b.Numbers("a", {60, 1, 1})}, {n, 60, 7, 6});
  return b.Finish({sum, b.Conv("end", alone, 8)});
}

Network WithPoolings(int64_t n, bool fused) {
  NetworkBuilder b;
  const auto pooled = [&](const std::string& name, ValueId src, int64_t channels,
                          ConvolutionOptions options) {
    options.pool = fused;
    const ValueId result = b.Conv(name, src, channels, options);
    return fused ? result : b.MaxPool(name + ".pool", result, 2, 2, 0);
  };
  const ValueId x = b.Input("x", {n, 16, 29, 31});
  const std::vector<FusedStep> five(5, Relu());
  const ValueId winograd = pooled("winograd", x, 40, {.fused = {Relu()}});
  const ValueId full = pooled("full", x, 40, {.fused = five});
  const ValueId both = b.SumOf("both", {winograd, full});
  const ValueId one = pooled("one", both, 24, {.kernel = 1, .padding = 0, .fused = {Relu()}});
  return b.Finish({pooled("small", one, 12, {.bias = false}), winograd});
}

}  // namespace

Network PooledConvolutions(int64_t n) { return WithPoolings(n, /*fused=*/true); }
Network ConvolutionsAndPoolings(int64_t n) { return WithPoolings(n, /*fused=*/false); }

absl::Span<const NetworkCase> ConvolutionNetworks() {
  static constexpr NetworkCase kCases[] = {
      {"Residual", Residual},
      {"StridedResidual", StridedResidual},
      {"FewChannels", FewChannels},
      {"ValueUsedTwice", ValueUsedTwice},
      {"OutputsInsideTwiceAndInput", OutputsInsideTwiceAndInput},
      {"SumsOfThree", SumsOfThree},
      {"Classifier", Classifier},
      {"TwoInputsOneAnAddend", TwoInputsOneAnAddend},
      {"AddsItsOwnInput", AddsItsOwnInput},
      {"ComputedWeights", ComputedWeights},
      {"ComputedDeconvolutions", ComputedDeconvolutions},
      {"Deconvolutions", Deconvolutions},
      {"SlopesOfChannels", SlopesOfChannels},
      {"PooledConvolutions", PooledConvolutions}};
  return kCases;
}

}  // namespace tilewire::network
