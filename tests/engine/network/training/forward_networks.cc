// SPDX-License-Identifier: Apache-2.0
#include "tests/engine/network/training/forward_networks.h"

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engine/network/training/differentiate.h"
#include "engine/network/training/fuse_normalization.h"
#include "tests/engine/lowering/network_builder.h"
#include "tests/engine/network/training/random_forward.h"

namespace tilewire::testing {
namespace {

using functions::EltwiseAlgorithm;
using network::Function;
using network::Network;
using network::NetworkBuilder;
using network::Pooling;
using network::Reduce;
using network::ValueId;

ValueId Convolved(NetworkBuilder& b, const std::string& name, ValueId src, Dims weights,
                  network::ComputedConvolution window, bool has_bias = true) {
  Dims dims = b.dims(src);
  for (size_t d = 0; d + 2 < dims.size(); ++d) {
    const int64_t reach = (weights[d + 2] - 1) * (window.dilations[d] + 1) + 1;
    dims[d + 2] = (dims[d + 2] + window.padding_left[d] + window.padding_right[d] - reach) /
                      window.strides[d] +
                  1;
  }
  dims[1] = weights[0];
  std::vector<ValueId> srcs = {src, b.Input(name + ".w", weights)};
  if (has_bias) srcs.push_back(b.Input(name + ".b", {weights[0]}));
  return b.AddOperation(name, std::move(window), std::move(srcs), dims);
}

network::ComputedConvolution Square(int64_t stride, int64_t padding, int64_t groups = 1) {
  return {groups, {stride, stride}, {0, 0}, {padding, padding}, {padding, padding}};
}

ValueId Relu(NetworkBuilder& b, const std::string& name, ValueId src) {
  return b.Elementwise(name, src, {EltwiseAlgorithm::kRelu});
}

ValueId Of(NetworkBuilder& b, const std::string& name, Function function, std::vector<ValueId> srcs,
           Dims dims) {
  return b.AddOperation(name, network::Elementwise{function}, std::move(srcs), std::move(dims));
}

ValueId Reduced(NetworkBuilder& b, const std::string& name, Reduce::Function function, ValueId src,
                Dims dims) {
  return b.AddOperation(name, Reduce{function}, {src}, std::move(dims));
}

}  // namespace

Network ConvolvedAndClassified() {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {2, 3, 8, 8});
  const ValueId conv = Convolved(b, "conv", x, {8, 3, 3, 3}, Square(1, 1));
  const ValueId pool = b.MaxPool("pool", Relu(b, "relu", conv), 2, 2, 0);
  const ValueId flat = b.Reshaped("flat", pool, {2, 128});
  const ValueId turned = b.Transposed("turned", b.Input("w", {10, 128}), {1, 0});
  const ValueId product = b.AddOperation("product", network::Matmul{}, {flat, turned}, {2, 10});
  const ValueId bias = b.Input("b", {10});
  return b.Finish({Of(b, "logits", Function::kAdd, {product, bias}, {2, 10})});
}

namespace {

// ResNet's blocks: batch statistics, and a branch that is added.
Network ResidualBranches() {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {3, 16, 7, 6});
  const ValueId first =
      b.Normalized("bn1", Convolved(b, "c1", x, {24, 16, 3, 3}, Square(2, 1), false));
  const ValueId second = b.Normalized(
      "bn2", Convolved(b, "c2", Relu(b, "r1", first), {24, 24, 3, 3}, Square(1, 1), false));
  const ValueId skip =
      b.Normalized("bn3", Convolved(b, "c3", x, {24, 16, 1, 1}, Square(2, 0), false));
  const ValueId joined = Relu(b, "r2", b.SumOf("sum", {second, skip}));
  const ValueId again =
      b.SumOf("again", {joined, Convolved(b, "c4", joined, {24, 24, 3, 3}, Square(1, 1)), joined});
  const ValueId flat = b.Reshaped("flat", b.GlobalAverage("average", again), {3, 24});
  return b.Finish(
      {b.AddOperation("logits", network::Matmul{}, {flat, b.Input("w", {24, 5})}, {3, 5})});
}

// MobileNet's: relu with a limit, a sum of an input and a normalization that no relu follows, and a
// normalization that is read twice.
Network LimitedBranches() {
  NetworkBuilder b;
  const auto limited = [&b](const std::string& name, ValueId src) {
    return b.Elementwise(name, src, {EltwiseAlgorithm::kClip, 0, 0.75f});
  };
  const ValueId x = b.Input("x", {3, 16, 5, 6});
  const ValueId wide = limited(
      "clip1", b.Normalized("bn1", Convolved(b, "c1", x, {40, 16, 1, 1}, Square(1, 0), false)));
  const ValueId narrow =
      b.Normalized("bn2", Convolved(b, "c2", wide, {16, 40, 3, 3}, Square(1, 1), false));
  const ValueId sum = b.SumOf("sum", {x, narrow});
  const ValueId second =
      b.Normalized("bn3", Convolved(b, "c3", sum, {16, 16, 3, 3}, Square(1, 1), false));
  const ValueId twice = b.SumOf("twice", {second, sum, second});
  return b.Finish({b.Elementwise("tanh", twice, {EltwiseAlgorithm::kTanh})});
}

template <Network (*make)()>
Network Fused() {
  Network network = make();
  network::FuseNormalization(&network);
  return network;
}

// GoogLeNet's: branches that are concatenated, one of them a maximum itself, and LRN.
Network ConcatenatedBranches() {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {2, 16, 6, 6});
  const ValueId one = Relu(b, "r1", Convolved(b, "c1", x, {16, 16, 1, 1}, Square(1, 0)));
  const ValueId reduced = Relu(b, "r2", Convolved(b, "c2", x, {8, 16, 1, 1}, Square(1, 0)));
  const ValueId three = Relu(b, "r3", Convolved(b, "c3", reduced, {32, 8, 3, 3}, Square(1, 1)));
  const ValueId pool = b.MaxPool("pool", x, 3, 1, 1);
  const ValueId projected = Relu(b, "r4", Convolved(b, "c4", pool, {16, 16, 1, 1}, Square(1, 0)));
  const ValueId joined = b.ConcatOf("join", {one, three, pool, projected});
  const ValueId lrn =
      b.AddOperation("lrn", network::Lrn{5, 0.5f, 0.75f, 1}, {joined}, b.dims(joined));
  const ValueId average = b.Pool("average", lrn, Pooling::Algorithm::kAvgIncludePadding, 3, 2, 1);
  return b.Finish({b.Pool("excluding", average, Pooling::Algorithm::kAvgExcludePadding, 2, 1, 1)});
}

// Groups, a window per channel, strides, dilations, paddings that differ, and three dimensions.
Network OtherConvolutions() {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {2, 12, 9, 8});
  const ValueId grouped =
      Convolved(b, "grouped", x, {18, 4, 3, 2}, {3, {2, 1}, {0, 1}, {1, 2}, {0, 1}});
  const ValueId single = Convolved(b, "single", grouped, {18, 1, 3, 3}, Square(1, 1, 18), false);
  const ValueId strided = Convolved(b, "strided", single, {5, 18, 2, 2}, Square(2, 0));
  const Dims dims = b.dims(strided);
  const ValueId deep = b.Reshaped("deep", strided, {dims[0], 1, dims[1], dims[2], dims[3]});
  return b.Finish({Convolved(b, "volume", deep, {3, 1, 2, 1, 2},
                             {1, {1, 1, 1}, {0, 0, 0}, {0, 0, 1}, {1, 0, 0}})});
}

// With so many elements beyond the last window.
ValueId Deconvolved(NetworkBuilder& b, const std::string& name, ValueId src, Dims weights,
                    network::ComputedConvolution window, bool has_bias = true, Dims beyond = {}) {
  Dims dims = b.dims(src);
  for (size_t d = 0; d + 2 < dims.size(); ++d) {
    const int64_t reach = (weights[d + 2] - 1) * (window.dilations[d] + 1) + 1;
    dims[d + 2] = (dims[d + 2] - 1) * window.strides[d] + reach - window.padding_left[d] -
                  window.padding_right[d] + (beyond.empty() ? 0 : beyond[d]);
  }
  dims[1] = weights[1] * window.groups;
  std::vector<ValueId> srcs = {src, b.Input(name + ".w", weights)};
  if (has_bias) srcs.push_back(b.Input(name + ".b", {dims[1]}));
  return b.AddOperation(name, network::ComputedDeconvolution{std::move(window)}, std::move(srcs),
                        dims);
}

// A decoder's: windows that overlap and that do not, before relu and joined with what was there; a
// few channels at the end.
Network Decoder() {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {2, 20, 3, 4}), skipped = b.Input("skipped", {2, 8, 6, 8});
  const ValueId up = Relu(b, "relu", Deconvolved(b, "up", x, {20, 24, 2, 2}, Square(2, 0)));
  const ValueId joined = b.ConcatOf("join", {up, skipped});
  const ValueId wide = Deconvolved(b, "wide", joined, {32, 16, 4, 4}, Square(2, 1), false);
  const ValueId same =
      Deconvolved(b, "same", b.Normalized("norm", wide), {16, 16, 3, 3}, Square(1, 1));
  const ValueId image = Deconvolved(b, "image", same, {16, 3, 4, 4}, Square(2, 1));
  return b.Finish({b.Elementwise("tanh", image, {EltwiseAlgorithm::kTanh})});
}

// Groups, a window per channel, dilations, paddings that differ and exceed what windows reach,
// elements beyond all windows, and one and three dimensions.
Network OtherDeconvolutions() {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {2, 32, 4, 3});
  const ValueId grouped =
      Deconvolved(b, "grouped", x, {32, 16, 3, 2}, {2, {2, 3}, {0, 1}, {1, 0}, {0, 1}}, true);
  const ValueId single =
      Deconvolved(b, "single", grouped, {32, 1, 3, 3}, Square(2, 1, 32), true, {1, 1});
  const ValueId beyond = Deconvolved(b, "beyond", single, {32, 5, 2, 1},
                                     {1, {3, 2}, {0, 0}, {1, 2}, {0, 0}}, true, {2, 1});
  const ValueId pooled = b.Pool("pool", beyond, Pooling::Algorithm::kAvgIncludePadding, 5, 5, 0);
  const Dims dims = b.dims(pooled);
  const ValueId line = b.Reshaped("line", pooled, {dims[0], dims[1], dims[2] * dims[3]});
  const ValueId lines = Deconvolved(b, "lines", line, {5, 4, 3}, {1, {2}, {1}, {1}, {0}}, true);
  const Dims longer = b.dims(lines);
  const ValueId deep = b.Reshaped("deep", lines, {longer[0], longer[1], 1, 1, longer[2]});
  return b.Finish({Deconvolved(b, "volume", deep, {4, 3, 2, 1, 2},
                               {1, {1, 1, 2}, {0, 0, 0}, {0, 0, 1}, {1, 0, 0}})});
}

// Functions of two and three tensors, broadcast to each other in every way.
Network BroadcastFunctions() {
  NetworkBuilder b;
  const Dims dims = {2, 6, 5};
  const ValueId a = b.Input("a", dims), row = b.Input("row", {5}),
                column = b.Input("column", {6, 1}), one = b.Input("one", {1, 1, 1}),
                c = b.Input("c", {2, 1, 5});
  ValueId y = Of(b, "mul", Function::kMul, {a, row}, dims);
  y = Of(b, "sub", Function::kSub, {column, y}, dims);
  y = Of(b, "add", Function::kAdd, {y, one}, dims);
  // Away from 0: 3 + x^2.
  const ValueId above =
      b.Elementwise("above", b.Elementwise("square", c, {EltwiseAlgorithm::kSquare}),
                    {EltwiseAlgorithm::kLinear, 1, 3});
  y = Of(b, "div", Function::kDiv, {y, above}, dims);
  const ValueId power =
      Of(b, "power", Function::kPower, {above, b.Numbers("exponents", {5})}, {2, 1, 5});
  y = Of(b, "with_power", Function::kMul, {power, y}, dims);
  y = Of(b, "max", Function::kMax, {y, column}, dims);
  y = Of(b, "min", Function::kMin, {b.Input("d", dims), y}, dims);
  y = Of(b, "prelu", Function::kPRelu, {y, b.Input("slopes", {6, 1})}, dims);
  const ValueId less = Of(b, "less", Function::kLess, {a, c}, dims);
  return b.Finish({Of(b, "where", Function::kWhere, {less, y, row}, dims)});
}

Network FunctionsOfOne() {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {3, 40});
  std::vector<ValueId> parts;
  const functions::EltwiseOp ops[] = {
      {EltwiseAlgorithm::kRelu, 0.1f},  {EltwiseAlgorithm::kTanh},
      {EltwiseAlgorithm::kElu, 0.7f},   {EltwiseAlgorithm::kElu, -0.7f},
      {EltwiseAlgorithm::kAbs},         {EltwiseAlgorithm::kLogistic},
      {EltwiseAlgorithm::kExp},         {EltwiseAlgorithm::kGelu},
      {EltwiseAlgorithm::kGeluErf},     {EltwiseAlgorithm::kClip, -0.5f, 0.25f},
      {EltwiseAlgorithm::kSwish, 1.5f}, {EltwiseAlgorithm::kHardSwish, 0.5f, 0.4f},
      {EltwiseAlgorithm::kErf},         {EltwiseAlgorithm::kSoftRelu}};
  for (const functions::EltwiseOp& op : ops)
    parts.push_back(b.Elementwise("f" + std::to_string(parts.size()), x, op));
  parts.push_back(Of(b, "sin", Function::kSin, {x}, {3, 40}));
  const ValueId all = b.ConcatOf("all", parts, 0);
  return b.Finish({b.SoftmaxOf("softmax", all, 0)});
}

Network Reductions() {
  NetworkBuilder b;
  const Dims dims = {3, 4, 5};
  const ValueId x = b.Input("x", dims);
  const ValueId sum = Reduced(b, "sum", Reduce::Function::kSum, x, {3, 1, 5});
  const ValueId mean = Reduced(b, "mean", Reduce::Function::kMean, x, {1, 4, 1});
  const ValueId highest = Reduced(b, "max", Reduce::Function::kMax, x, {3, 4, 1});
  const ValueId least = Reduced(b, "min", Reduce::Function::kMin, x, {1, 1, 5});
  const ValueId product = Reduced(b, "product", Reduce::Function::kProduct, x, {3, 1, 1});
  const ValueId absolute = Reduced(b, "abs", Reduce::Function::kSumOfAbs, x, {1, 4, 5});
  const ValueId squares = Reduced(b, "squares", Reduce::Function::kSumOfSquares, x, {3, 4, 1});
  ValueId y = Of(b, "y1", Function::kMul, {x, sum}, dims);
  int step = 1;
  for (ValueId next : {mean, highest, least, product, absolute, squares}) {
    ++step;
    y = Of(b, "y" + std::to_string(step), step % 2 == 0 ? Function::kAdd : Function::kMul,
           {y, next}, dims);
  }
  return b.Finish({y});
}

// A normalization of rows as exporters write it, with scale and shift as values.
Network NormalizedRows() {
  NetworkBuilder b;
  const Dims dims = {4, 24};
  const ValueId x = b.Input("x", dims);
  const ValueId mean = Reduced(b, "mean", Reduce::Function::kMean, x, {4, 1});
  const ValueId centred = Of(b, "centred", Function::kSub, {x, mean}, dims);
  const ValueId squares = b.Elementwise("squares", centred, {EltwiseAlgorithm::kSquare});
  const ValueId variance = Reduced(b, "variance", Reduce::Function::kMean, squares, {4, 1});
  const ValueId root =
      Of(b, "root", Function::kSquareRoot,
         {b.Elementwise("eps", variance, {EltwiseAlgorithm::kLinear, 1, 1e-3f})}, {4, 1});
  const ValueId normal = Of(b, "normal", Function::kDiv, {centred, root}, dims);
  const ValueId scaled = Of(b, "scaled", Function::kMul, {normal, b.Input("scale", {24})}, dims);
  return b.Finish({Of(b, "shifted", Function::kAdd, {scaled, b.Input("shift", {24})}, dims)});
}

ValueId NormalizedRowsOf(NetworkBuilder& b, const std::string& name, ValueId src, ValueId scale,
                         ValueId shift) {
  network::LayerNormalization norm{.epsilon = 1e-3f, .reads_parameters = true};
  return b.AddOperation(name, norm, {src, scale, shift}, b.dims(src));
}

// A block of a transformer, of rows that are neither whole vectors nor whole pieces, between
// normalizations that share a scale.
Network TransformerBlock() {
  NetworkBuilder b;
  const Dims dims = {2, 35, 24};
  const ValueId x = b.Input("x", dims), scale = b.Input("scale", {24});
  const auto product = [&b](const std::string& name, ValueId src, Dims weights) {
    Dims to = b.dims(src);
    to.back() = weights.back();
    return b.AddOperation(name, network::Matmul{}, {src, b.Input(name + ".w", weights)}, to);
  };
  const ValueId first = NormalizedRowsOf(b, "ln1", x, scale, b.Input("shift1", {24}));
  const ValueId queries = product("q", first, {1, 24, 24}), keys = product("k", first, {1, 24, 24});
  const ValueId turned = b.Transposed("turned", keys, {0, 2, 1});
  const ValueId scores =
      b.AddOperation("scores", network::Matmul{}, {queries, turned}, {2, 35, 35});
  const ValueId shares = b.SoftmaxOf("shares", scores, 2);
  const ValueId mixed = b.AddOperation("mixed", network::Matmul{}, {shares, first}, dims);
  const ValueId sum = b.SumOf("sum", {mixed, x});
  const ValueId second = NormalizedRowsOf(b, "ln2", sum, scale, b.Input("shift2", {24}));
  const ValueId wide =
      b.Elementwise("gelu", product("up", second, {1, 24, 40}), {EltwiseAlgorithm::kGeluErf});
  return b.Finish({b.SumOf("out", {product("down", wide, {1, 40, 24}), sum})});
}

// ConvNeXt's: pixels of a convolution, in the order that it leaves, ranks 2 to 5, one parameter
// that does not learn, and a source without a gradient.
Network NormalizedPixels() {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {2, 16, 4, 3});
  const ValueId conv = Convolved(b, "c", x, {20, 16, 3, 3}, Square(1, 1));
  const ValueId pixels = b.Transposed("pixels", conv, {0, 2, 3, 1});
  const ValueId first =
      NormalizedRowsOf(b, "ln4", pixels, b.Input("scale", {20}), b.Numbers("zeros", {20}));
  const ValueId images = b.Transposed("images", first, {0, 3, 1, 2});
  const ValueId cube = b.Reshaped("cube", images, {2, 4, 5, 4, 3});
  const ValueId second =
      NormalizedRowsOf(b, "ln5", cube, b.Numbers("ones", {3}), b.Input("shift", {3}));
  const ValueId rows = b.Reshaped("rows", second, {40, 12});
  const ValueId known = NormalizedRowsOf(b, "known", b.Numbers("numbers", {40, 12}),
                                         b.Input("scale2", {12}), b.Input("shift2", {12}));
  const ValueId fixed = b.AddOperation("bare", network::LayerNormalization{}, {rows}, {40, 12});
  return b.Finish({Of(b, "joined", Function::kMul, {known, fixed}, {40, 12})});
}

// By statistics that are given, as fine-tuning with frozen ones does.
Network NormalizedByConstants() {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {2, 20, 3, 4});
  std::vector<ValueId> srcs = {Convolved(b, "c", x, {20, 20, 1, 1}, Square(1, 0)),
                               b.Input("scale", {20}), b.Input("shift", {20}),
                               b.Numbers("mean", {20}), b.Numbers("variance", {20})};
  return b.Finish({b.AddOperation("bn", network::BatchNormalization{1e-3f, true}, std::move(srcs),
                                  {2, 20, 3, 4})});
}

Network MovedElements() {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {2, 8, 4, 6});
  const ValueId turned =
      b.Transposed("turned", b.Shuffled("shuffled", x, 4), {0, 3, 1, 2});  // [2,6,8,4]
  // Every second row, from the end; padding; one column twice.
  const ValueId selected = b.AddOperation(
      "selected",
      network::Select{
          {{}, {{5, -2, 3}}, {{-1, 0, 1}, {1, 1, 6}, {-1, 0, 2}}, {{0, 1, 4}, {2, 0, 2}}}, 0.5f},
      {turned}, {2, 3, 9, 6});
  const ValueId repeated = b.AddOperation("repeated", network::Select{{{}, {}, {}, {{0, 0, 6}}}},
                                          {b.Input("thin", {2, 3, 9, 1})}, {2, 3, 9, 6});
  network::GatherChannels channels;
  for (int64_t c : {2, 0, 1, 1}) channels.from.push_back({static_cast<int>(c % 2), c});
  const ValueId picked = b.AddOperation("picked", channels, {selected, repeated}, {2, 4, 9, 6});
  network::Interpolate halves{.axis = 2, .taps = 2};
  for (int64_t i = 0; i < 5; ++i) {
    halves.indices.insert(halves.indices.end(), {2 * i, std::min<int64_t>(2 * i + 1, 8)});
    halves.weights.insert(halves.weights.end(), {0.75f, 0.25f});
  }
  const ValueId halved = b.AddOperation("halved", halves, {picked}, {2, 4, 5, 6});
  const ValueId rows =
      b.AddOperation("rows", network::Literal{network::MakeInts("rows", {4}, {3, 0, -1, 3})}, {},
                     {4}, DataType::kS64);
  const ValueId gathered =
      b.AddOperation("gathered", network::Gather{2}, {halved, rows}, {2, 4, 4, 6});
  return b.Finish({b.AddOperation("same", network::Convert{}, {gathered}, {2, 4, 4, 6})});
}

// The largest and the smallest elements along two dimensions.
Network BestElements() {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {3, 7, 5});
  const ValueId best = b.AddOperation("best", network::TopK{1}, {x}, {3, 3, 5});
  const ValueId least =
      b.AddOperation("least", network::TopK{2, /*largest=*/false},
                     {b.Elementwise("tanh", x, {EltwiseAlgorithm::kTanh})}, {3, 7, 2});
  const ValueId turned = b.Transposed("turned", least, {0, 2, 1});
  const ValueId product = b.AddOperation("product", network::Matmul{}, {turned, x}, {3, 2, 5});
  return b.Finish({b.ConcatOf("all", {best, product})});
}

// Products of batches: of equal ones, of a shared left and of a shared right side.
Network BatchedProducts() {
  NetworkBuilder b;
  const ValueId a = b.Input("a", {2, 3, 4, 5}), w = b.Input("w", {1, 3, 5, 6}),
                v = b.Input("v", {1, 1, 7, 4});
  const ValueId first = b.AddOperation("first", network::Matmul{}, {a, w}, {2, 3, 4, 6});
  const ValueId second = b.AddOperation("second", network::Matmul{}, {v, first}, {2, 3, 7, 6});
  const ValueId turned = b.Transposed("turned", second, {0, 1, 3, 2});
  return b.Finish({b.AddOperation("scores", network::Matmul{},
                                  {b.SoftmaxOf("shares", second, 3), turned}, {2, 3, 7, 7})});
}

// Layers that do not learn between others that do.
Network FrozenLayers() {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {2, 3, 6, 5});
  const ValueId conv = b.Conv("conv", x, 16, {.stride = 2, .scale = true});
  network::LayerNormalization rows{1e-3f, {1, 2, 0.5f}, {0, 0, 1}};
  const ValueId scaled = b.AddOperation("scaled", rows, {conv}, b.dims(conv));
  const ValueId normal =
      b.AddOperation("normal", network::LayerNormalization{}, {scaled}, b.dims(scaled));
  ValueId wide = b.Deconv("wide", normal, 12, {.stride = 2});
  const Dims dims = b.dims(wide);
  network::Deconvolution grouped{
      .weights = std::get<network::Deconvolution>(b.last().params).weights,
      .groups = 3,
      .strides = {1, 1},
      .dilations = {0, 0},
      .padding_left = {1, 1},
      .padding_right = {1, 1}};
  grouped.weights.key = "grouped.weight";
  grouped.weights.dims = {48, 4, 3, 3};  // the same elements
  wide = b.AddOperation("grouped", grouped, {wide}, {dims[0], 48, dims[2], dims[3]});
  const ValueId product = b.Fc("product", wide, 7, {.scale = true, .transposed = true});
  return b.Finish({b.Elementwise("squashed", product, {EltwiseAlgorithm::kTanh})});
}

template <uint64_t number>
Network AtRandom() {
  return RandomForward(number);
}

template <Network (*make)()>
Network Differentiated(int64_t) {
  Network network = make();
  const std::vector<ValueId> by = network.inputs;
  const ValueId y = network.outputs[0];
  const auto seed = static_cast<ValueId>(network.values.size());
  network.values.push_back({"seed", DataType::kF32, network.values[y].dims});
  network.inputs.push_back(seed);
  const network::GradientSeed from = {y, seed};
  network.outputs = network::Differentiate({from}, by, &network).value();
  return network;
}

template <Network (*make)()>
constexpr ForwardCase CaseOf(const char* name) {
  return {name, Differentiated<make>, make};
}

}  // namespace

absl::Span<const ForwardCase> ForwardCases() {
  static constexpr ForwardCase kCases[] = {CaseOf<ConvolvedAndClassified>("ConvolvedAndClassified"),
                                           CaseOf<ResidualBranches>("ResidualBranches"),
                                           CaseOf<Fused<ResidualBranches>>("FusedResiduals"),
                                           CaseOf<LimitedBranches>("LimitedBranches"),
                                           CaseOf<Fused<LimitedBranches>>("FusedLimited"),
                                           CaseOf<ConcatenatedBranches>("ConcatenatedBranches"),
                                           CaseOf<OtherConvolutions>("OtherConvolutions"),
                                           CaseOf<Decoder>("Decoder"),
                                           CaseOf<OtherDeconvolutions>("OtherDeconvolutions"),
                                           CaseOf<BroadcastFunctions>("BroadcastFunctions"),
                                           CaseOf<FunctionsOfOne>("FunctionsOfOne"),
                                           CaseOf<Reductions>("Reductions"),
                                           CaseOf<NormalizedRows>("NormalizedRows"),
                                           CaseOf<TransformerBlock>("TransformerBlock"),
                                           CaseOf<NormalizedPixels>("NormalizedPixels"),
                                           CaseOf<NormalizedByConstants>("NormalizedByConstants"),
                                           CaseOf<MovedElements>("MovedElements"),
                                           CaseOf<BestElements>("BestElements"),
                                           CaseOf<BatchedProducts>("BatchedProducts"),
                                           CaseOf<FrozenLayers>("FrozenLayers"),
                                           CaseOf<AtRandom<1>>("AtRandom1"),
                                           CaseOf<AtRandom<2>>("AtRandom2"),
                                           CaseOf<AtRandom<3>>("AtRandom3"),
                                           CaseOf<AtRandom<4>>("AtRandom4"),
                                           CaseOf<AtRandom<5>>("AtRandom5"),
                                           CaseOf<AtRandom<6>>("AtRandom6"),
                                           CaseOf<AtRandom<7>>("AtRandom7"),
                                           CaseOf<AtRandom<8>>("AtRandom8"),
                                           CaseOf<AtRandom<9>>("AtRandom9"),
                                           CaseOf<AtRandom<10>>("AtRandom10"),
                                           CaseOf<AtRandom<11>>("AtRandom11"),
                                           CaseOf<AtRandom<12>>("AtRandom12")};
  return kCases;
}

}  // namespace tilewire::testing
